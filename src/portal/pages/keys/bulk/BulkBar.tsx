import { Button, Group } from "@mantine/core"
import { useId, useState } from "react"
import { call } from "../../../api/control.ts"
import { useAllowed } from "../../../api/session.ts"
import { useSubmit } from "../../../shared/change/useSubmit.ts"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { countText } from "../../../shared/words/format.ts"
import type { Key, KeyQuery } from "../words/key.ts"
import { BulkDialog } from "./BulkDialog.tsx"
import { BulkRotate } from "./BulkRotate.tsx"
import { type BulkAction, bulkActions } from "./bulkActions.tsx"
import { countOf, filterOf, keysOf, type Matching, mostRead, type Selection } from "./selection.ts"

interface Props {
  readonly selection: Selection
  /** The filter and order of the list that is shown. */
  readonly query: KeyQuery
  readonly hasMore: boolean
  readonly onMatching: (matching: Matching) => void
  readonly onClear: () => void
}

/** Offers the actions for the selected keys, or for all that match. */
export const BulkBar = ({ hasMore, onClear, onMatching, query, selection }: Props) => {
  // the list goes on behind a dialog, which must not follow it
  const [asked, setAsked] = useState<{ readonly action: BulkAction; readonly selection: Selection }>()
  const [toRotate, setToRotate] = useState<ReadonlyArray<Key>>()
  const all = useSubmit<unknown>()
  const rotation = useSubmit<unknown>()
  const mayRotate = useAllowed("keys:rotate")
  const scopes = {
    "keys:disable": useAllowed("keys:disable"),
    "policies:update": useAllowed("policies:update"),
    "keys:create": useAllowed("keys:create")
  }
  const filter = filterOf(query)
  const count = countOf(selection)
  const isTooManyToRotate = count > mostRead
  const reasonId = useId()
  const isTooMany = selection.kind === "matching" && selection.isTooMany
  const selectAll = () =>
    void all.submit(async () => {
      if (filter === undefined) return
      const found = await call("GET", "/admin-ui/admin/bulk-key-changes/selection", { query: filter })
      onMatching({ kind: "matching", filter, count: found.selected, isTooMany: found.is_too_many })
    })
  const error = all.error ?? rotation.error
  return (
    <Group gap={8} role="toolbar" aria-label="Selected keys">
      <strong>
        {isTooMany
          ? `more than ${countText(count)} match: narrow the filters`
          : selection.kind === "matching"
            ? `all ${countText(count)} that match`
            : `${countText(count)} selected`}
      </strong>
      {hasMore && selection.kind === "picked" && filter !== undefined && (
        <Button variant="subtle" loading={all.isBusy} onClick={selectAll}>
          Select all that match
        </Button>
      )}
      {!isTooMany &&
        bulkActions
          .filter(({ needs }) => needs.every((scope) => scopes[scope]))
          .map((action) => (
            <Button key={action.label} variant="default" onClick={() => setAsked({ action, selection })}>
              {action.label}
            </Button>
          ))}
      {mayRotate && (
        <Button
          variant="default"
          disabled={isTooManyToRotate}
          aria-describedby={isTooManyToRotate ? reasonId : undefined}
          loading={rotation.isBusy}
          onClick={() => void rotation.submit(async () => setToRotate(await keysOf(selection)))}
        >
          Rotate
        </Button>
      )}
      {mayRotate && isTooManyToRotate && (
        <span id={reasonId}>
          At most {countText(mostRead)} keys are rotated at once: their new secrets pass through this browser.
        </span>
      )}
      <Button variant="subtle" color="gray" onClick={onClear}>
        Clear
      </Button>
      {error !== null && <ErrorNote error={error} />}
      {toRotate !== undefined && (
        <BulkRotate
          keys={toRotate}
          onClose={() => setToRotate(undefined)}
          onDone={() => {
            setToRotate(undefined)
            onClear()
          }}
        />
      )}
      {asked !== undefined && <BulkDialog {...asked} onClose={() => setAsked(undefined)} />}
    </Group>
  )
}
