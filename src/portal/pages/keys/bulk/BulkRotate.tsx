import { Button, Checkbox, Group, Modal, Stack } from "@mantine/core"
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { call } from "../../../api/control.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { isTyped, TypedName } from "../../../shared/dialogs/TypedName.tsx"
import { useUnstoredSecret } from "../../../shared/dialogs/useUnstoredSecret.ts"
import { countedText, countText } from "../../../shared/words/format.ts"
import { saveText } from "../../../shared/words/saveText.ts"
import { atOnceSentence, GraceSelect, usualGrace } from "../actions/GraceSelect.tsx"
import { type Key, staleAfterKeys } from "../words/key.ts"
import { KeyList } from "./BulkDialog.tsx"
import { BulkProgress } from "./BulkProgress.tsx"
import { type BulkResult, runBulk } from "./runBulk.ts"
import { type RotatedKey, secretsFile } from "./secretsFile.ts"

interface Props {
  readonly keys: ReadonlyArray<Key>
  readonly onClose: () => void
  readonly onDone: () => void
}

const rotate = async (key: Key, graceSeconds: number): Promise<RotatedKey> => {
  const minted = await call("POST", "/admin-ui/admin/keys/:id/rotate", {
    params: { id: key.id },
    body: { grace_seconds: graceSeconds }
  })
  return {
    name: key.name,
    prefix: minted.key.key_prefix,
    project: key.project_name,
    secret: minted.raw_key,
    oldSecretWorksUntil: minted.key.previous_key_expires_at
  }
}

/** Gives many keys new secrets. They are told once, in one file. */
export const BulkRotate = ({ keys, onClose, onDone }: Props) => {
  const [grace, setGrace] = useState(usualGrace)
  const [typed, setTyped] = useState("")
  const [results, setResults] = useState<ReadonlyArray<BulkResult<RotatedKey>>>()
  const [isEnded, setEnded] = useState(false)
  const [isStored, setStored] = useState(false)
  const [stopper] = useState(() => new AbortController())
  const client = useQueryClient()
  const tell = useTell()
  const byId = new Map(keys.map((key) => [key.id, key]))
  const usable = keys.filter(({ state }) => state !== "revoked")
  const what = countedText(usable.length, "key")

  const run = async () => {
    setResults([])
    const act = async (id: string) => {
      const key = byId.get(id)
      if (key === undefined) throw new Error("The key is not in the list any more.")
      return rotate(key, grace)
    }
    await runBulk(
      usable.map(({ id }) => id),
      act,
      setResults,
      stopper.signal
    )
    setEnded(true)
    await Promise.all(staleAfterKeys.map((path) => client.invalidateQueries({ queryKey: [path] })))
  }
  const rotated = (results ?? []).flatMap(({ done }) => done ?? [])
  useUnstoredSecret(results !== undefined && !(isEnded && (rotated.length === 0 || isStored)))
  const end = () => {
    onDone()
    // each key has an event of its own
    if (rotated.length > 0)
      tell({ done: `${countedText(rotated.length, "key has", "keys have")} a new secret.`, audit: { type: "key" } })
  }
  const store = () => {
    saveText(`keys-${new Date().toISOString().slice(0, 10)}.csv`, "text/csv", secretsFile(rotated))
  }

  return (
    <Modal
      opened
      onClose={results === undefined ? onClose : () => {}}
      withCloseButton={results === undefined}
      title={`Rotate ${what}`}
      size="lg"
    >
      <Stack gap="sm">
        {results === undefined ? (
          <>
            <p>Each key gets a new secret. The new secrets are shown once, as one file.</p>
            <KeyList keys={usable} />
            {usable.length < keys.length && <p>{countText(keys.length - usable.length)} revoked keys are left out.</p>}
            <GraceSelect value={grace} onChange={setGrace} />
            {grace === 0 && (
              <>
                <p>{atOnceSentence}</p>
                <TypedName name={what} typed={typed} onType={setTyped} />
              </>
            )}
          </>
        ) : (
          <BulkProgress total={usable.length} results={results} nameOf={(id) => byId.get(id)} />
        )}
        {isEnded && rotated.length > 0 && (
          <>
            <p>This is the only time that the new secrets can be had. Only their hashes are stored here.</p>
            <Group>
              <Button onClick={store}>Download the new secrets</Button>
              <Checkbox
                label="I stored the file"
                checked={isStored}
                onChange={({ currentTarget }) => setStored(currentTarget.checked)}
              />
            </Group>
          </>
        )}
        <Group justify="end">
          {results === undefined ? (
            <>
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
              <Button
                disabled={usable.length === 0 || (grace === 0 && !isTyped({ name: what, typed }))}
                {...(grace === 0 && { color: "red" })}
                onClick={() => void run()}
              >
                Rotate {countText(usable.length)}
              </Button>
            </>
          ) : isEnded ? (
            <Button disabled={rotated.length > 0 && !isStored} onClick={end}>
              Done
            </Button>
          ) : (
            <Button variant="default" onClick={() => stopper.abort()}>
              Stop
            </Button>
          )}
        </Group>
      </Stack>
    </Modal>
  )
}
