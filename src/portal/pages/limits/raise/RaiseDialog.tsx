import { Modal } from "@mantine/core"
import { useState } from "react"
import { useUtc } from "../../../address/useUtc.ts"
import type { ApiError } from "../../../api/ApiError.ts"
import { call } from "../../../api/control.ts"
import type { BodyOf } from "../../../api/Endpoints.ts"
import { useApi, useApiWrite } from "../../../api/queries.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import { clockText } from "../../../shared/words/format.ts"
import { endRaisePath, ownLimits, statePath } from "../state/limitStates.ts"
import { KeySelect } from "./KeySelect.tsx"
import { RaiseForm } from "./RaiseForm.tsx"
import type { RaiseValues } from "./raiseProblems.ts"

const raisesPath = "/admin-ui/admin/limits/:key_id/raises"
const raisePath = "/admin-ui/admin/limits/:key_id/raise"

interface Props {
  readonly keyId: string | undefined
  readonly meter: string | undefined
  readonly onKey: (id: string | undefined) => void
  readonly onClose: () => void
}

const bodyOf = ({ amount, meter, reason, until }: RaiseValues): BodyOf<"POST", typeof raisePath> => ({
  [meter]: amount,
  until: until.toISOString(),
  reason
})

/** Raises a limit of a key until a time: the form, then the difference, then the change. */
export const RaiseDialog = ({ keyId, meter, onClose, onKey }: Props) => {
  const utc = useUtc()
  const [values, setValues] = useState<RaiseValues>()
  const limits = useApi(statePath, { query: { scope: "key", id: keyId, limit: 100 } }, { enabled: keyId !== undefined })
  const tell = useTell()
  const raise = useApiWrite("POST", raisePath, [statePath, raisesPath])
  const own = ownLimits(limits.data?.limits ?? [])
  const before = own.find((limit) => limit.meter === values?.meter)?.limit

  if (keyId !== undefined && values !== undefined && !isOfField(raise.error))
    return (
      <ChangeDialog
        title="Raise a limit"
        action="Raise it"
        isBusy={raise.isPending}
        error={raise.error}
        onClose={() => {
          raise.reset()
          setValues(undefined)
        }}
        onConfirm={() =>
          raise.mutate(
            { params: { key_id: keyId }, body: bodyOf(values) },
            {
              onSuccess: ({ id, until }) => {
                tell({
                  done: `${values.meter} is raised until ${clockText(new Date(String(until)), utc)}.`,
                  audit: { type: "key", id: keyId },
                  undo: () => call("POST", endRaisePath, { params: { key_id: keyId, id } }),
                  undone: "The exception has ended."
                })
                onClose()
              }
            }
          )
        }
      >
        <FieldDiff before={{ [values.meter]: before }} after={{ [values.meter]: values.amount }} />
        <p>
          For {own[0]?.scope_name ?? "this key"}, until {clockText(values.until, utc)}. Then the former limit is back by
          itself. What was counted stays counted. Limits that layers share stay as they are.
        </p>
        <p>
          Reason: <ForeignText>{values.reason}</ForeignText>
        </p>
      </ChangeDialog>
    )
  return (
    <Modal opened onClose={onClose} title="Raise a limit until a time" size="lg">
      <KeySelect id={keyId} name={own[0]?.scope_name} onChange={onKey} />
      {keyId !== undefined && (
        <RaiseForm
          key={keyId}
          limits={own}
          isLoading={limits.isPending}
          error={limits.error}
          fields={isOfField(raise.error) ? raise.error.fields : []}
          before={values}
          meter={meter}
          onSubmit={(next) => {
            raise.reset()
            setValues(next)
          }}
          onCancel={onClose}
        />
      )}
    </Modal>
  )
}

/** An error of a field is shown at the field. */
const isOfField = (error: ApiError | null): error is ApiError => error !== null && error.fields.length > 0
