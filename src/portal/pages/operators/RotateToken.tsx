import { useMutation, useQueryClient } from "@tanstack/react-query"
import type { ApiError } from "../../api/ApiError.ts"
import { call } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useHeldSession } from "../../api/heldSession.ts"
import { signIn } from "../../api/session.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../shared/dialogs/ChangeDialog.tsx"
import { SecretOnce } from "../../shared/dialogs/SecretOnce.tsx"
import { useUnstoredSecret } from "../../shared/dialogs/useUnstoredSecret.ts"
import { staleAfterTokens, type Token } from "./operator.ts"

const rotatePath = "/admin-ui/admin/operator-tokens/:id/rotate"

interface Props {
  readonly of: Token
  readonly onClose: () => void
}

/**
 * Gives a token a new secret. The session of the browser ends with the old secret of the own token, so the browser
 * signs in with the new one before anything else is asked.
 */
export const RotateToken = ({ of: token, onClose }: Props) => {
  const client = useQueryClient()
  const session = useHeldSession()
  const tell = useTell()
  const rotate = useMutation<ResponseOf<"POST", typeof rotatePath>, ApiError>({
    mutationFn: async () => {
      if (token.is_caller) session.hold()
      const minted = await call("POST", rotatePath, { params: { id: token.id } })
      // where that fails, the person signs in with the stored secret
      if (token.is_caller) await signIn(minted.raw_token).catch(() => {})
      return minted
    },
    onError: session.release,
    gcTime: 0
  })
  useUnstoredSecret(rotate.isPending)
  const secret = rotate.data?.raw_token
  if (secret !== undefined) {
    return (
      <SecretOnce
        title={`The new secret of ${token.name}`}
        secret={secret}
        onStored={() => {
          rotate.reset()
          session.release()
          onClose()
          tell({ done: `${token.name} has a new secret.`, audit: { type: "operator_token", id: token.id } })
          for (const path of staleAfterTokens) void client.invalidateQueries({ queryKey: [path] })
        }}
      >
        <p>
          {token.is_caller
            ? "The old secret does not work any more. This browser is signed in with the new one."
            : "The old secret does not work any more, and browsers that were signed in with it are signed out."}
        </p>
      </SecretOnce>
    )
  }
  return (
    <ChangeDialog
      title={token.is_caller ? "Rotate your own token" : `Rotate ${token.name}`}
      action="Make a new secret"
      name={token.name}
      isBusy={rotate.isPending}
      error={rotate.error}
      onClose={onClose}
      onConfirm={() => rotate.mutate()}
    >
      <p>
        The old secret stops working at once. The name, the scopes and the expiry stay.
        {token.session_count > 0 && !token.is_caller && ` ${token.session_count} browsers are signed in with it.`}
      </p>
    </ChangeDialog>
  )
}
