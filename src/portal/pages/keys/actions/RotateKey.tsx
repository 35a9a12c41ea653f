import { useState } from "react"
import { useApiWrite } from "../../../api/queries.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { SecretOnce } from "../../../shared/dialogs/SecretOnce.tsx"
import { useUnstoredSecret } from "../../../shared/dialogs/useUnstoredSecret.ts"
import { When } from "../../../shared/words/When.tsx"
import { type Key, keyName, staleAfterKeys } from "../words/key.ts"
import { atOnceSentence, GraceSelect, usualGrace } from "./GraceSelect.tsx"

interface Props {
  readonly of: Key
  readonly onClose: () => void
}

/** Gives a key a new secret. Its policy, its counters and its id stay. */
export const RotateKey = ({ of: key, onClose }: Props) => {
  const [grace, setGrace] = useState(usualGrace)
  const rotate = useApiWrite("POST", "/admin-ui/admin/keys/:id/rotate", staleAfterKeys, { hasSecret: true })
  const tell = useTell()
  useUnstoredSecret(rotate.isPending)
  const end = () => {
    onClose()
    tell({ done: `${keyName(key)} has a new secret.`, audit: { type: "key", id: key.id } })
  }
  if (rotate.data !== undefined) {
    return (
      <SecretOnce title={`The new secret of ${keyName(key)}`} secret={rotate.data.raw_key} onStored={end}>
        <p>
          {rotate.data.key.previous_key_expires_at === null ? (
            "The old secret does not work any more."
          ) : (
            <>
              The old secret stops working <When at={rotate.data.key.previous_key_expires_at} />.
            </>
          )}
        </p>
      </SecretOnce>
    )
  }
  return (
    <ChangeDialog
      title={`Rotate ${keyName(key)}`}
      action="Make a new secret"
      isBusy={rotate.isPending}
      {...(grace === 0 && { name: keyName(key) })}
      error={rotate.error}
      onClose={onClose}
      onConfirm={() => rotate.mutate({ params: { id: key.id }, body: { grace_seconds: grace } })}
    >
      <GraceSelect value={grace} onChange={setGrace} />
      {grace === 0 && <p>{atOnceSentence}</p>}
    </ChangeDialog>
  )
}
