import { useApiWrite } from "../../../api/queries.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { When } from "../../../shared/words/When.tsx"
import { type Key, staleAfterKeys } from "../words/key.ts"

interface Props {
  readonly of: Key
  readonly onClose: () => void
}

/** Stops the secret that a rotation replaced, before its grace is over. */
export const StopOldSecret = ({ of: key, onClose }: Props) => {
  const tell = useTell()
  const end = useApiWrite("POST", "/admin-ui/admin/keys/:id/end-grace", staleAfterKeys)
  return (
    <ChangeDialog
      title="Stop the old secret now"
      action="Stop it"
      isBusy={end.isPending}
      error={end.error}
      onClose={onClose}
      onConfirm={() =>
        end.mutate(
          { params: { id: key.id } },
          {
            onSuccess: () => {
              tell({ done: "The old secret does not work any more.", audit: { type: "key", id: key.id } })
              onClose()
            }
          }
        )
      }
    >
      <p>
        It would stop working <When at={key.previous_key_expires_at} />. Programs that still have it are refused within
        a second; those that have the new one notice nothing.
      </p>
    </ChangeDialog>
  )
}
