import { Button } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useState } from "react"
import { useApi, useApiWrite } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import { statePath } from "../state/limitStates.ts"

const keysPath = "/admin-ui/admin/keys"
const keyPath = "/admin-ui/admin/keys/:id"
const stale = [keysPath, keyPath, statePath]

/** Stops a key at once, and lets it go on later. Its counters keep their values. */
export const FreezeKey = ({ id }: { readonly id: string }) => {
  const mayFreeze = useAllowed("keys:disable")
  const mayRead = useAllowed("operators:manage")
  const key = useApi(keyPath, { params: { id } }, { enabled: mayFreeze && mayRead })
  const disable = useApiWrite("POST", "/admin-ui/admin/keys/:id/disable", stale)
  const enable = useApiWrite("POST", "/admin-ui/admin/keys/:id/enable", stale)
  const [isOpen, setOpen] = useState(false)
  const isFrozen = key.data?.disabled === true
  if (!mayFreeze || (key.data !== undefined && key.data.revoked_at !== null)) return null
  const write = isFrozen ? enable : disable
  const done = () => {
    setOpen(false)
    notifications.show({
      message: isFrozen ? (
        "The key works again."
      ) : (
        <>
          The key is frozen: its requests are refused. <Unfreeze id={id} />
        </>
      )
    })
  }
  return (
    <>
      <Button variant="default" onClick={() => setOpen(true)}>
        {isFrozen ? "Unfreeze the key" : "Freeze the key"}
      </Button>
      {isOpen && (
        <ChangeDialog
          title={isFrozen ? "Unfreeze the key" : "Freeze the key"}
          action={isFrozen ? "Unfreeze" : "Freeze"}
          isBusy={write.isPending}
          error={write.error}
          onClose={() => {
            write.reset()
            setOpen(false)
          }}
          onConfirm={() => write.mutate({ params: { id } }, { onSuccess: done })}
        >
          <FieldDiff before={{ disabled: isFrozen }} after={{ disabled: !isFrozen }} />
          <p>
            {isFrozen
              ? "Its next requests are admitted again, as far as its limits allow."
              : "Every gateway refuses its next requests. Running ones end. It can be undone, and its counters keep their values."}
          </p>
        </ChangeDialog>
      )}
    </>
  )
}

/** Stands in the message that outlives the drawer. */
const Unfreeze = ({ id }: { readonly id: string }) => {
  const enable = useApiWrite("POST", "/admin-ui/admin/keys/:id/enable", stale)
  return (
    <Button
      variant="subtle"
      disabled={enable.isSuccess}
      loading={enable.isPending}
      onClick={() =>
        enable.mutate(
          { params: { id } },
          {
            onSuccess: () => notifications.show({ message: "The key works again." }),
            onError: ({ message }) => notifications.show({ color: "red", message })
          }
        )
      }
    >
      Undo
    </Button>
  )
}
