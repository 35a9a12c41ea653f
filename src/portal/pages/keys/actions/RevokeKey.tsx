import { useApiWrite } from "../../../api/queries.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { When } from "../../../shared/words/When.tsx"
import { type Key, keyName, staleAfterKeys } from "../words/key.ts"

interface Props {
  readonly of: Key
  readonly onClose: () => void
}

/** Ends a key. It cannot be taken back, so the name is typed. */
export const RevokeKey = ({ of: key, onClose }: Props) => {
  const tell = useTell()
  const revoke = useApiWrite("POST", "/admin-ui/admin/keys/:id/revoke", staleAfterKeys)
  return (
    <ChangeDialog
      title="Revoke the key"
      action="Revoke for ever"
      name={keyName(key)}
      isBusy={revoke.isPending}
      error={revoke.error}
      onClose={onClose}
      onConfirm={() =>
        revoke.mutate(
          { params: { id: key.id } },
          {
            onSuccess: () => {
              tell({ done: `${keyName(key)} is revoked.`, audit: { type: "key", id: key.id } })
              onClose()
            }
          }
        )
      }
    >
      <p>
        Every gateway refuses it within a second, and it cannot be enabled again. It was last used{" "}
        <When at={key.last_used_at} absent="never" />. To stop it for a time, disable it.
      </p>
    </ChangeDialog>
  )
}
