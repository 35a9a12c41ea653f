import { useNavigate } from "@tanstack/react-router"
import { useState } from "react"
import { useApiWrite } from "../../../api/queries.ts"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { countText } from "../../../shared/words/format.ts"
import { changesPath } from "../changes/bulkChange.tsx"
import { useFilterWords } from "../filters.ts"
import type { Key } from "../words/key.ts"
import type { BulkAction, BulkInput } from "./bulkActions.tsx"
import { countOf, type Selection } from "./selection.ts"

interface Props {
  readonly action: BulkAction
  readonly selection: Selection
  readonly onClose: () => void
}

const nothing: BulkInput = { add: [], remove: [], project: null }

/** Begins a change of many keys. Its page shows how far it is, also after the browser was closed. */
export const BulkDialog = ({ action, onClose, selection }: Props) => {
  const [input, setInput] = useState(nothing)
  const begin = useApiWrite("POST", changesPath, [changesPath])
  const navigate = useNavigate()
  const count = countOf(selection)
  const described = useFilterWords(selection.kind === "matching" ? selection.filter : {})
  const isEveryKey = selection.kind === "matching" && described === ""
  const which =
    selection.kind === "picked"
      ? { ids: selection.keys.map(({ id }) => id) }
      : { filter: selection.filter, expected_selected: count }
  return (
    <ChangeDialog
      title={`${action.label} ${countText(count)} ${count === 1 ? "key" : "keys"}`}
      action={`${action.label} ${countText(count)}`}
      isBusy={begin.isPending}
      isDisabled={!action.isReady(input)}
      {...(isEveryKey && { name: "all keys" })}
      error={begin.error}
      onClose={onClose}
      onConfirm={() =>
        begin.mutate(
          { body: { ...action.bodyOf(input), ...which } },
          { onSuccess: ({ id }) => void navigate({ to: "/keys/changes/$id", params: { id } }) }
        )
      }
    >
      <p>{action.sentence}</p>
      {action.form?.(input, (change) => setInput((before) => ({ ...before, ...change })))}
      {selection.kind === "picked" ? (
        <KeyList keys={selection.keys} />
      ) : (
        <p>
          {isEveryKey ? "All keys of this installation." : <ForeignText>All keys that match {described}.</ForeignText>}{" "}
          If another number of keys matches when the change begins, nothing is changed.
        </p>
      )}
    </ChangeDialog>
  )
}

const mostShown = 8

/** Whom it concerns. */
export const KeyList = ({ keys }: { readonly keys: ReadonlyArray<Key> }) => (
  <p>
    {keys.slice(0, mostShown).map((key, place) => (
      <span key={key.id}>
        {place > 0 && ", "}
        <ForeignText>{key.name ?? key.key_prefix}</ForeignText>
      </span>
    ))}
    {keys.length > mostShown && ` and ${countText(keys.length - mostShown)} more`}
  </p>
)
