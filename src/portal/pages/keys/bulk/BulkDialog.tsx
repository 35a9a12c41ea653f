import { Button, Group, Modal, Stack } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { countText } from "../../../shared/words/format.ts"
import { type Key, staleAfterKeys } from "../words/key.ts"
import { BulkProgress } from "./BulkProgress.tsx"
import type { BulkAction, BulkInput } from "./bulkActions.tsx"
import { type BulkResult, runBulk } from "./runBulk.ts"

interface Props {
  readonly action: BulkAction
  readonly keys: ReadonlyArray<Key>
  readonly onClose: () => void
  readonly onDone: () => void
}

const nothing: BulkInput = { add: [], remove: [], project: null }

/** Does the same with many keys, and says of each that failed why. */
export const BulkDialog = ({ action, keys, onClose, onDone }: Props) => {
  const [input, setInput] = useState(nothing)
  const [results, setResults] = useState<ReadonlyArray<BulkResult<unknown>>>()
  const [stopper] = useState(() => new AbortController())
  const [isEnded, setEnded] = useState(false)
  const client = useQueryClient()
  const byId = new Map(keys.map((key) => [key.id, key]))
  const refresh = () => Promise.all(staleAfterKeys.map((path) => client.invalidateQueries({ queryKey: [path] })))

  const run = async () => {
    setResults([])
    const act = async (id: string) => {
      const key = byId.get(id)
      return key === undefined ? undefined : action.act(key, input)
    }
    const all = await runBulk([...byId.keys()], act, setResults, stopper.signal)
    await refresh()
    setEnded(true)
    const done = all.filter(({ failure }) => failure === undefined)
    if (done.length > 0) tell(done.flatMap(({ id }) => byId.get(id) ?? []))
    if (done.length === keys.length) onDone()
  }

  const tell = (done: ReadonlyArray<Key>) => {
    const undo = action.undo
    const id = notifications.show({
      message: (
        <Group justify="space-between" gap="xs">
          {countText(done.length)} {done.length === 1 ? "key is" : "keys are"} {action.past}.
          {undo !== undefined && (
            <Button
              variant="light"
              onClick={() => {
                notifications.hide(id)
                void runBulk(
                  done.map((key) => key.id),
                  async (each) => {
                    const key = byId.get(each)
                    return key === undefined ? undefined : undo(key, input)
                  },
                  () => {},
                  new AbortController().signal
                ).then(refresh)
              }}
            >
              Undo
            </Button>
          )}
        </Group>
      ),
      autoClose: 12_000
    })
  }

  return (
    <Modal
      opened
      onClose={results === undefined || isEnded ? onClose : () => {}}
      title={`${action.label} ${countText(keys.length)} ${keys.length === 1 ? "key" : "keys"}`}
      size="lg"
    >
      <Stack gap="sm">
        {results === undefined ? (
          <>
            <p>{action.sentence}</p>
            {action.form?.(input, (change) => setInput((before) => ({ ...before, ...change })))}
            <KeyList keys={keys} />
          </>
        ) : (
          <BulkProgress total={keys.length} results={results} nameOf={(id) => byId.get(id)} />
        )}
        <Group justify="end">
          {results === undefined ? (
            <>
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
              <Button
                disabled={!action.isReady(input)}
                onClick={() => void run()}
                data-autofocus={action.form === undefined}
              >
                {action.label} {countText(keys.length)}
              </Button>
            </>
          ) : isEnded ? (
            <Button onClick={onDone}>Close</Button>
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

const mostShown = 8

/** Whom it concerns. */
export const KeyList = ({ keys }: { readonly keys: ReadonlyArray<Key> }) => (
  <p>
    {keys.slice(0, mostShown).map((key, place) => (
      <span key={key.id}>
        {place > 0 && ", "}
        <bdi>{key.name ?? key.key_prefix}</bdi>
      </span>
    ))}
    {keys.length > mostShown && ` and ${countText(keys.length - mostShown)} more`}
  </p>
)
