import { Button } from "@mantine/core"
import { useState } from "react"
import { useApiWrite } from "../../../api/queries.ts"
import { readSession } from "../../../api/session.ts"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"

/** Ends the key for good, such as after others saw its secret. The session ends with it. */
export const Revocation = ({ prefix }: { readonly prefix: string }) => {
  const [isOpen, setOpen] = useState(false)
  const write = useApiWrite("POST", "/admin-ui/v1/me/revoke", [])
  return (
    <>
      <Button variant="default" onClick={() => setOpen(true)}>
        End this key for good
      </Button>
      {isOpen && (
        <ChangeDialog
          title="End this key for good"
          action="End it for good"
          name={prefix}
          isBusy={write.isPending}
          error={write.error}
          onConfirm={() => write.mutate({ body: {} }, { onSuccess: () => void readSession() })}
          onClose={() => setOpen(false)}
        >
          <p>
            Every program that has this key stops working at once, and nobody can take it back. Do this if others may
            have seen its secret and you do not need the key any more. If you need it, get a new secret instead.
          </p>
        </ChangeDialog>
      )}
    </>
  )
}
