import { useQueryClient } from "@tanstack/react-query"
import type { ReactNode } from "react"
import type { FieldError } from "../../../api/ApiError.ts"
import { call } from "../../../api/control.ts"
import type { BodyOf } from "../../../api/Endpoints.ts"
import { useApiWrite } from "../../../api/queries.ts"
import { formerOf } from "../../../shared/change/changed.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { GuardedChange, tellRefused } from "../../../shared/dialogs/GuardedChange.tsx"
import { type Key, keyFields, keyName, keyPath, staleAfterKeys } from "../words/key.ts"

export type KeyPatch = Omit<BodyOf<"PATCH", typeof keyPath>, "expected_updated_at">

interface Props {
  readonly base: Key
  readonly changes: KeyPatch
  /** Said once it is changed. */
  readonly done: string
  readonly onClose: () => void
  readonly onDone: () => void
  /** The server refused values: the form shows why. */
  readonly onRefused?: (errors: ReadonlyArray<FieldError>) => void
  readonly children?: ReactNode
}

/** The fields that the patch sets, by the same names as those of the key. */
const flat = ({ guardrail_policy, policy, ...rest }: KeyPatch): Readonly<Record<string, unknown>> => ({
  ...rest,
  ...prefixed("policy", policy),
  ...prefixed("guardrail_policy", guardrail_policy)
})

const prefixed = (prefix: string, fields: object | null | undefined): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(fields ?? {}).map(([name, value]) => [`${prefix}.${name}`, value]))

/** Shows the difference of a change of a key, and makes it unless somebody else was faster. */
export const ChangeKey = ({ base, changes, children, done, onClose, onDone, onRefused }: Props) => {
  const client = useQueryClient()
  const tell = useTell()
  const update = useApiWrite("PATCH", keyPath, staleAfterKeys)
  const params = { id: base.id }
  const reread = () =>
    client.fetchQuery({
      staleTime: 0,
      queryKey: [keyPath, params, undefined],
      queryFn: () => call("GET", keyPath, { params })
    })
  return (
    <GuardedChange
      title={`Change ${keyName(base)}`}
      action="Change it"
      base={base}
      reread={reread}
      fieldsOf={keyFields}
      changes={flat(changes)}
      isBusy={update.isPending}
      error={update.error}
      onConfirm={(version) =>
        update.mutate(
          { params, body: { ...changes, expected_updated_at: version.updated_at } },
          {
            onSuccess: (after) => {
              tell({
                done,
                audit: { type: "key", id: base.id },
                undo: () =>
                  call("PATCH", keyPath, {
                    params,
                    body: { ...formerOf(version, changes), expected_updated_at: after.updated_at }
                  })
              })
              onDone()
            },
            onError: (error) => tellRefused(error, onRefused)
          }
        )
      }
      onClose={onClose}
    >
      {children}
    </GuardedChange>
  )
}
