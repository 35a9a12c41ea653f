import { Button, Group } from "@mantine/core"
import { useState } from "react"
import { call } from "../../../api/control.ts"
import { useAllowed } from "../../../api/session.ts"
import { useSubmit } from "../../../shared/change/useSubmit.ts"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { countText } from "../../../shared/words/format.ts"
import type { Key, KeyQuery } from "../words/key.ts"
import { BulkDialog } from "./BulkDialog.tsx"
import { BulkRotate } from "./BulkRotate.tsx"
import { type BulkAction, bulkActions } from "./bulkActions.tsx"
import { countOf, filterOf, keysOf, mostRead, type Selection } from "./selection.ts"

interface Props {
  readonly rows: ReadonlyArray<Key>
  readonly selected: ReadonlySet<string>
  readonly query: Partial<KeyQuery>
  readonly hasMore: boolean
  readonly onSelect: (ids: ReadonlySet<string>) => void
}

/** What can be done with the selected keys, or with all that match. */
export const BulkBar = ({ hasMore, onSelect, query, rows, selected }: Props) => {
  const [matching, setMatching] = useState<Extract<Selection, { kind: "matching" }>>()
  const [action, setAction] = useState<BulkAction>()
  const [rotated, setRotated] = useState<ReadonlyArray<Key>>()
  const { error, isBusy, submit } = useSubmit<unknown>()
  const mayRotate = useAllowed("keys:rotate")
  const scopes = {
    "keys:disable": useAllowed("keys:disable"),
    "policies:update": useAllowed("policies:update"),
    "keys:create": useAllowed("keys:create")
  }
  const filter = filterOf(query)
  const selection: Selection = matching ?? { kind: "picked", keys: rows.filter(({ id }) => selected.has(id)) }
  const selectAll = () =>
    void submit(async () => {
      if (filter === undefined) return
      const { selected: count } = await call("GET", "/admin-ui/admin/bulk-key-changes/selection", { query: filter })
      setMatching({ kind: "matching", filter, count })
    })
  const clear = () => {
    setMatching(undefined)
    onSelect(new Set())
  }
  return (
    <Group gap={8} role="toolbar" aria-label="Selected keys">
      <strong>
        {matching !== undefined && "all "}
        {countText(countOf(selection))} {matching === undefined ? "selected" : "that match"}
      </strong>
      {hasMore && matching === undefined && filter !== undefined && (
        <Button variant="subtle" loading={isBusy} onClick={selectAll}>
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
      {mayRotate && countOf(selection) <= mostRead && (
        <Button
          variant="default"
          loading={isBusy}
          onClick={() => void submit(async () => setRotated(await keysOf(selection)))}
        >
          Rotate
        </Button>
      )}
      <Button variant="subtle" color="gray" onClick={clear}>
        Clear
      </Button>
      {error !== null && <ErrorNote error={error} />}
      {rotated !== undefined && (
        <BulkRotate
          keys={rotated}
          onClose={() => setRotated(undefined)}
          onDone={() => {
            setRotated(undefined)
            clear()
          }}
        />
      )}
      {action !== undefined && (
        <BulkDialog action={action} selection={selection} onClose={() => setAction(undefined)} />
      )}
    </Group>
  )
}
