import { Button } from "@mantine/core"
import { useState } from "react"
import { call } from "../../../api/control.ts"
import { useApi, useApiWrite } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import { statePath } from "../state/limitStates.ts"

const keysPath = "/admin-ui/admin/keys"
const keyPath = "/admin-ui/admin/keys/:id"
const disablePath = "/admin-ui/admin/keys/:id/disable"
const enablePath = "/admin-ui/admin/keys/:id/enable"
const stale = [keysPath, keyPath, statePath]

/** Stops a key at once, and lets it go on later. Its counters keep their values. */
export const FreezeKey = ({ id }: { readonly id: string }) => {
  const mayFreeze = useAllowed("keys:disable")
  const mayRead = useAllowed("operators:manage")
  const key = useApi(keyPath, { params: { id } }, { enabled: mayFreeze && mayRead })
  const disable = useApiWrite("POST", disablePath, stale)
  const enable = useApiWrite("POST", enablePath, stale)
  const tell = useTell()
  const [isOpen, setOpen] = useState(false)
  const isFrozen = key.data?.disabled === true
  if (!mayFreeze || (key.data !== undefined && key.data.revoked_at !== null)) return null
  const write = isFrozen ? enable : disable
  const done = () => {
    setOpen(false)
    tell({
      done: isFrozen ? "The key works again." : "The key is frozen: its requests are refused.",
      audit: { type: "key", id },
      undone: isFrozen ? "The key is frozen again." : "The key works again.",
      undo: () => call("POST", isFrozen ? disablePath : enablePath, { params: { id } })
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
