import { useApiWrite } from "../../api/queries.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../shared/dialogs/ChangeDialog.tsx"
import { When } from "../../shared/words/When.tsx"
import { staleAfterTokens, type Token } from "./operator.ts"

interface Props {
  readonly of: Token
  readonly onClose: () => void
}

/** Ends a token. It cannot be taken back, so the name is typed. */
export const RevokeToken = ({ of: token, onClose }: Props) => {
  const tell = useTell()
  const revoke = useApiWrite("POST", "/admin-ui/admin/operator-tokens/:id/revoke", staleAfterTokens)
  return (
    <ChangeDialog
      title={token.kind === "person" ? "Sign the person out" : "Revoke the token"}
      action="Revoke for ever"
      name={token.name}
      isBusy={revoke.isPending}
      error={revoke.error}
      onClose={onClose}
      onConfirm={() =>
        revoke.mutate(
          { params: { id: token.id } },
          {
            onSuccess: () => {
              tell({ done: `${token.name} is revoked.`, audit: { type: "operator_token", id: token.id } })
              onClose()
            }
          }
        )
      }
    >
      <p>
        It stops working at once, and its browsers are signed out. It was last used{" "}
        <When at={token.last_used_at} absent="never" />.
        {token.kind === "person" && " The person can sign in again while the identity provider allows it."}
        {token.is_caller && " It is your own: you are signed out."}
      </p>
    </ChangeDialog>
  )
}
