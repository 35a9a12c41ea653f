import { Button } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useState } from "react"
import { useApiWrite } from "../../../api/queries.ts"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"

const stale = ["/admin-ui/v1/me"] as const

/** Stops the secret that a rotation replaced, such as once every program has the new one. */
export const StopOldSecret = () => {
  const [isOpen, setOpen] = useState(false)
  const end = useApiWrite("POST", "/admin-ui/v1/me/end-grace", stale)
  const close = () => setOpen(false)
  return (
    <>
      <Button variant="subtle" size="compact-xs" onClick={() => setOpen(true)}>
        Stop it now
      </Button>
      {isOpen && (
        <ChangeDialog
          title="Stop the old secret now"
          action="Stop it"
          isBusy={end.isPending}
          error={end.error}
          onClose={close}
          onConfirm={() =>
            end.mutate(
              { body: {} },
              {
                onSuccess: () => {
                  notifications.show({ message: "The old secret does not work any more." })
                  close()
                }
              }
            )
          }
        >
          <p>
            Programs that still have the old secret are refused within a second. A session that began with it ends, too.
          </p>
        </ChangeDialog>
      )}
    </>
  )
}
