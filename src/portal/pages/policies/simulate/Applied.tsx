import { Button, Group } from "@mantine/core"
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { call } from "../../../api/control.ts"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useApi, useApiWrite } from "../../../api/queries.ts"
import { formerOf } from "../../../shared/change/changed.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { GuardedChange } from "../../../shared/dialogs/GuardedChange.tsx"
import { flatFields } from "../../../shared/policy/flatFields.ts"
import { LayerReview } from "../editor/LayerReview.tsx"
import { prefixed } from "../words/layer.ts"
import { changesOf, type ProposalDraft } from "./proposal.ts"

interface Props {
  readonly draft: ProposalDraft
  readonly keyId: string | undefined
  /** The id of the form that has the change. What cannot be read there is no part of the change yet. */
  readonly form: string
  readonly onDone: () => void
}

/** Makes the change that was tried out. */
export const Applied = ({ draft, form, keyId, onDone }: Props) => {
  const [isOpen, setOpen] = useState(false)
  const close = () => setOpen(false)
  const finish = () => {
    close()
    onDone()
  }
  return (
    <Group justify="end" mt="sm">
      <Button
        form={form}
        onClick={({ currentTarget }) => {
          if (currentTarget.form?.reportValidity() === true) setOpen(true)
        }}
      >
        Make this change
      </Button>
      {isOpen && draft.what === "layer" && draft.layer !== undefined && (
        <LayerReview layer={draft.layer} changes={changesOf(draft)} onClose={close} onDone={finish} />
      )}
      {isOpen && draft.what === "key" && keyId !== undefined && (
        <KeyReview id={keyId} policy={draft.policy} onClose={close} onDone={finish} />
      )}
    </Group>
  )
}

const keyPath = "/admin-ui/admin/keys/:id"
const stale = [keyPath, "/admin-ui/admin/keys", "/admin-ui/admin/policy/effective", "/admin-ui/admin/policy/impact"]

interface KeyProps {
  readonly id: string
  readonly policy: ProposalDraft["policy"]
  readonly onClose: () => void
  readonly onDone: () => void
}

const KeyReview = ({ id, ...rest }: KeyProps) => {
  const key = useApi(keyPath, { params: { id } })
  return key.data?.id === id ? <ReadKeyReview of={key.data} {...rest} /> : null
}

interface ReadKeyProps extends Omit<KeyProps, "id"> {
  readonly of: ResponseOf<"GET", typeof keyPath>
}

const ReadKeyReview = ({ of, onClose, onDone, policy }: ReadKeyProps) => {
  const client = useQueryClient()
  const tell = useTell()
  // what the person saw when the change began
  const [base] = useState(of)
  const params = { id: base.id }
  const update = useApiWrite("PATCH", keyPath, stale)
  return (
    <GuardedChange
      title="Change the policy of the key"
      action="Change it"
      base={base}
      reread={() =>
        client.fetchQuery({
          staleTime: 0,
          queryKey: [keyPath, params, undefined],
          queryFn: () => call("GET", keyPath, { params })
        })
      }
      fieldsOf={({ policy: current }) => flatFields({ policy: current })}
      changes={prefixed("policy", policy)}
      isBusy={update.isPending}
      error={update.error}
      onConfirm={(version) =>
        update.mutate(
          { params, body: { policy, expected_updated_at: version.updated_at } },
          {
            onSuccess: (after) => {
              tell({
                done: "The policy of the key is changed.",
                audit: { type: "key", id: base.id },
                undo: () =>
                  call("PATCH", keyPath, {
                    params,
                    body: { ...formerOf(version, { policy }), expected_updated_at: after.updated_at }
                  })
              })
              onDone()
            }
          }
        )
      }
      onClose={onClose}
    />
  )
}
