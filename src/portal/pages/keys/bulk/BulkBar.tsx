import { Button, Group } from "@mantine/core"
import { useState } from "react"
import { page } from "../../../api/control.ts"
import { useAllowed } from "../../../api/session.ts"
import { countText } from "../../../shared/words/format.ts"
import { type Key, type KeyQuery, keysPath } from "../words/key.ts"
import { BulkDialog } from "./BulkDialog.tsx"
import { BulkRotate } from "./BulkRotate.tsx"
import { type BulkAction, bulkActions } from "./bulkActions.tsx"

interface Props {
  readonly rows: ReadonlyArray<Key>
  readonly selected: ReadonlySet<string>
  readonly query: Partial<KeyQuery>
  readonly hasMore: boolean
  readonly onSelect: (ids: ReadonlySet<string>) => void
}

/** A selection is frozen when it is made, and has at most so many keys. */
const mostSelected = 5_000
const pageSize = 500

/** Reads the keys that match now. Keys that match later are not part of the selection. */
const readAll = async (query: Partial<KeyQuery>): Promise<ReadonlyArray<Key>> => {
  const found: Array<Key> = []
  let cursor: string | undefined
  do {
    const { next, rows } = await page(keysPath, { query: { ...query, limit: pageSize } }, cursor)
    found.push(...rows)
    cursor = next
  } while (cursor !== undefined && found.length < mostSelected)
  return found.slice(0, mostSelected)
}

/** What can be done with the selected keys. */
export const BulkBar = ({ hasMore, onSelect, query, rows, selected }: Props) => {
  const [others, setOthers] = useState<ReadonlyArray<Key>>([])
  const [isReading, setReading] = useState(false)
  const [action, setAction] = useState<BulkAction | "rotate">()
  const mayRotate = useAllowed("keys:rotate")
  const scopes = {
    "keys:disable": useAllowed("keys:disable"),
    "policies:update": useAllowed("policies:update"),
    "keys:create": useAllowed("keys:create")
  }
  const known = new Map([...others, ...rows].map((key) => [key.id, key]))
  const keys = [...selected].flatMap((id) => known.get(id) ?? [])
  const selectAll = async () => {
    setReading(true)
    try {
      const all = await readAll(query)
      setOthers(all)
      onSelect(new Set(all.map(({ id }) => id)))
    } finally {
      setReading(false)
    }
  }
  const close = () => setAction(undefined)
  const finish = () => {
    close()
    onSelect(new Set())
  }
  return (
    <Group gap={8} role="toolbar" aria-label="Selected keys">
      <strong>{countText(keys.length)} selected</strong>
      {hasMore && (
        <Button variant="subtle" loading={isReading} onClick={() => void selectAll()}>
          Select all that match
        </Button>
      )}
      {bulkActions
        .filter(({ needs }) => needs.every((scope) => scopes[scope]))
        .map((one) => (
          <Button key={one.label} variant="default" onClick={() => setAction(one)}>
            {one.label}
          </Button>
        ))}
      {mayRotate && (
        <Button variant="default" onClick={() => setAction("rotate")}>
          Rotate
        </Button>
      )}
      <Button variant="subtle" color="gray" onClick={() => onSelect(new Set())}>
        Clear
      </Button>
      {action === "rotate" ? (
        <BulkRotate keys={keys} onClose={close} onDone={finish} />
      ) : action !== undefined ? (
        <BulkDialog action={action} keys={keys} onClose={close} onDone={finish} />
      ) : null}
    </Group>
  )
}
