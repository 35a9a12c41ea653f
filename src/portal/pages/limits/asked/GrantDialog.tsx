import { Modal, Textarea } from "@mantine/core"
import { useState } from "react"
import { useUtc } from "../../../address/useUtc.ts"
import { call } from "../../../api/control.ts"
import { useApi, useApiWrite } from "../../../api/queries.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import { clockText } from "../../../shared/words/format.ts"
import { RaiseForm } from "../raise/RaiseForm.tsx"
import type { RaiseValues } from "../raise/raiseProblems.ts"
import { endRaisePath, ownLimits, statePath } from "../state/limitStates.ts"
import { type Asked, askedPath, nameOf } from "./asked.ts"

interface Props {
  readonly asked: Asked
  readonly onClose: () => void
}

const dayMs = 86_400_000

/** Grants what a holder asks for, or another amount: the form, then the difference, then the exception. */
export const GrantDialog = ({ asked, onClose }: Props) => {
  const utc = useUtc()
  const [values, setValues] = useState<RaiseValues>()
  const [answer, setAnswer] = useState("")
  const limits = useApi(statePath, { query: { scope: "key", id: asked.key_id, limit: 100 } })
  const tell = useTell()
  const grant = useApiWrite("POST", "/admin-ui/admin/limits/raise-requests/:id/grant", [
    askedPath,
    statePath,
    "/admin-ui/admin/limits/:key_id/raises"
  ])
  const own = ownLimits(limits.data?.limits ?? [])
  const fields = grant.error?.fields ?? []

  if (values === undefined || fields.length > 0)
    return (
      <Modal opened onClose={onClose} title="Grant a raise" size="lg">
        <p>
          <ForeignText>{nameOf(asked)}</ForeignText> asks: <ForeignText>{asked.reason}</ForeignText>
        </p>
        <RaiseForm
          limits={own}
          isLoading={limits.isPending}
          error={limits.error}
          fields={fields}
          before={
            values ?? {
              reason: asked.reason,
              until: new Date(Date.now() + dayMs),
              ...(asked.meter !== null && { meter: asked.meter }),
              ...(asked.amount !== null && { amount: asked.amount })
            }
          }
          meter={asked.meter ?? undefined}
          extra={
            <Textarea
              label="Answer"
              description="The holder reads it. The reason stays in the audit log."
              value={answer}
              onChange={({ currentTarget }) => setAnswer(currentTarget.value)}
              error={fields.find(({ field }) => field === "answer")?.message}
              autosize
            />
          }
          onSubmit={(next) => {
            grant.reset()
            setValues(next)
          }}
          onCancel={onClose}
        />
      </Modal>
    )
  return (
    <ChangeDialog
      title="Grant a raise"
      action="Grant it"
      isBusy={grant.isPending}
      error={grant.error}
      onClose={() => {
        grant.reset()
        setValues(undefined)
      }}
      onConfirm={() =>
        grant.mutate(
          {
            params: { id: asked.id },
            body: {
              [values.meter]: values.amount,
              until: values.until.toISOString(),
              reason: values.reason,
              ...(answer.trim() !== "" && { answer: answer.trim() })
            }
          },
          {
            onSuccess: ({ granted }) => {
              tell({
                done: "It is granted. The holder sees it, and your answer.",
                audit: { type: "key", id: asked.key_id },
                // the request stays answered
                undone: "The exception has ended.",
                ...(granted !== null && {
                  undo: () => call("POST", endRaisePath, { params: { key_id: asked.key_id, id: granted.id } })
                })
              })
              onClose()
            }
          }
        )
      }
    >
      <FieldDiff
        before={{ [values.meter]: own.find(({ meter }) => meter === values.meter)?.limit }}
        after={{ [values.meter]: values.amount }}
      />
      <p>
        For <ForeignText>{nameOf(asked)}</ForeignText>, until {clockText(values.until, utc)}. Then the former limit is
        back by itself.
      </p>
      {answer.trim() !== "" && (
        <p>
          Answer: <ForeignText>{answer}</ForeignText>
        </p>
      )}
    </ChangeDialog>
  )
}
