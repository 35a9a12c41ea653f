import { Button } from "@mantine/core"
import { useState } from "react"
import { useApiWrite } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ReasonDialog } from "../../../shared/dialogs/ReasonDialog.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { amountText } from "../../../shared/words/amountText.ts"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import { When } from "../../../shared/words/When.tsx"
import { type LimitState, statePath } from "../state/limitStates.ts"

/** Sets what is used of a limit back to zero. Limits of a minute begin anew by themselves. */
export const ResetLimit = ({ state }: { readonly state: LimitState }) => {
  const { limit, meter, reserved, scope, scope_id, scope_name, unit, used, window } = state
  const mayReset = useAllowed("policies:update")
  const reset = useApiWrite("POST", "/admin-ui/admin/limits/reset", [statePath])
  const tell = useTell()
  const [isOpen, setOpen] = useState(false)
  if (!mayReset || meter === "rpm_limit" || meter === "tpm_limit") return null
  const close = () => {
    reset.reset()
    setOpen(false)
  }
  return (
    <>
      <Button
        variant="subtle"
        size="compact-sm"
        aria-label={`Reset ${meter} of ${scope_name}`}
        onClick={() => setOpen(true)}
      >
        Reset …
      </Button>
      {isOpen && (
        <ReasonDialog
          title="Reset a limit"
          action="Reset it"
          placeholder="the loop was our mistake"
          isBusy={reset.isPending}
          error={reset.error}
          onClose={close}
          onConfirm={({ reason }) =>
            reset.mutate(
              { body: { scope, scope_id, meter, reason } },
              {
                onSuccess: () => {
                  tell({
                    done: `${meter} is reset.`,
                    audit:
                      scope === "key" && scope_id !== null ? { type: "key", id: scope_id } : { type: "policy_layer" }
                  })
                  close()
                }
              }
            )
          }
        >
          <FieldDiff
            before={{ [`${meter} used`]: used === null ? "unknown" : amountText(used, unit) }}
            after={{ [`${meter} used`]: amountText(0, unit) }}
          />
          <p>
            For <ForeignText>{scope_name}</ForeignText>, in this {window}: all {amountText(limit, unit)} can be used
            until the next one begins <When at={state.resets_at} />.
            {reserved !== null && reserved > 0 && ` Running requests keep ${amountText(reserved, unit)} reserved.`}
          </p>
          <p>Reports still show the usage. It cannot be undone.</p>
        </ReasonDialog>
      )}
    </>
  )
}
