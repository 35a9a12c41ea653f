import { Button, Radio, Stack } from "@mantine/core"
import { onlineManager, useQueryClient } from "@tanstack/react-query"
import { useEffect, useState } from "react"
import { ApiError } from "../../../api/ApiError.ts"
import { call } from "../../../api/control.ts"
import { useHeldSession } from "../../../api/heldSession.ts"
import { signIn } from "../../../api/session.ts"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { SecretOnce } from "../../../shared/dialogs/SecretOnce.tsx"
import { useUnstoredSecret } from "../../../shared/dialogs/useUnstoredSecret.ts"
import { Snippets } from "../../../shared/snippets/Snippets.tsx"
import { useModels } from "../common/useModels.ts"

const graces = [
  { seconds: 3_600, label: "One more hour" },
  { seconds: 86_400, label: "One more day" },
  { seconds: 0, label: "Not at all: it stops at once, with every program that has it" }
] as const

/**
 * Gives the key a new secret. The session lasts as long as the secret that it began with, so the page signs in again
 * with the new one. Until the person has stored it nothing else is asked: an answer that the session has ended would
 * take the secret away with the page.
 */
export const Rotation = ({ prefix }: { readonly prefix: string }) => {
  const client = useQueryClient()
  const models = useModels()
  const [isOpen, setOpen] = useState(false)
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)
  const [grace, setGrace] = useState<number>(graces[0].seconds)
  const [secret, setSecret] = useState<string>()

  const session = useHeldSession()
  useUnstoredSecret(isBusy)

  useEffect(() => () => onlineManager.setOnline(true), [])

  const letGo = () => {
    onlineManager.setOnline(true)
    session.release()
  }

  const rotate = async () => {
    setBusy(true)
    setError(null)
    onlineManager.setOnline(false)
    session.hold()
    try {
      await client.cancelQueries()
      const { raw_key } = await call("POST", "/admin-ui/v1/me/rotate", { body: { grace_seconds: grace } })
      // The new session begins before the secret is shown, so that the page goes on once it is stored. If it does not
      // begin, the holder signs in with the stored secret.
      await signIn(raw_key).catch(() => {})
      setSecret(raw_key)
      setOpen(false)
    } catch (cause) {
      letGo()
      if (!(cause instanceof ApiError)) throw cause
      setError(cause)
    } finally {
      setBusy(false)
    }
  }

  const finish = () => {
    setSecret(undefined)
    letGo()
    void client.invalidateQueries()
  }
  return (
    <>
      <Button onClick={() => setOpen(true)}>Get a new secret</Button>
      {isOpen && (
        <ChangeDialog
          title="Get a new secret"
          action="Get a new secret"
          {...(grace === 0 && { name: prefix })}
          isBusy={isBusy}
          error={error}
          onConfirm={() => void rotate()}
          onClose={() => setOpen(false)}
        >
          <p>Your limits, your models and what you have used stay as they are. The new secret is shown once.</p>
          <Radio.Group
            label="How long does the old secret still work?"
            value={String(grace)}
            onChange={(value) => setGrace(Number(value))}
          >
            <Stack gap={8} mt={6}>
              {graces.map(({ label, seconds }) => (
                <Radio key={seconds} value={String(seconds)} label={label} />
              ))}
            </Stack>
          </Radio.Group>
        </ChangeDialog>
      )}
      {secret !== undefined && (
        <SecretOnce title="Your new secret" secret={secret} onStored={finish}>
          <Snippets secret={secret} model={models.first} />
        </SecretOnce>
      )}
    </>
  )
}
