import { Alert, Button, Group, Modal, Stack } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import { useApi } from "../../api/queries.ts"
import { useSubmit } from "../../shared/change/useSubmit.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { DialogFooter } from "../../shared/dialogs/DialogFooter.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { ErrorNote } from "../../shared/page/ErrorNote.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { countedText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { type BookPrice, pairText, priceText } from "./prices.ts"

const path = "/admin-ui/admin/model-prices/book"

/** The price book as a difference from what is stored. Only what is chosen is imported, or nothing. */
export const ImportBook = ({ onClose }: { readonly onClose: () => void }) => {
  const book = useApi(path, {})
  const tell = useTell()
  const { error, isBusy, submit } = useSubmit<unknown>()
  const differing = (book.data?.prices ?? []).filter(({ status }) => status !== "same")
  // what an operator has set, or covers with a pattern, is imported only if somebody asks for it
  const safe = new Set(
    differing.filter(({ covered_by, status }) => status === "new" && covered_by === null).map(({ model }) => model)
  )
  const [chosen, setChosen] = useState<ReadonlySet<string>>()
  const selected = chosen ?? safe
  const confirm = async () => {
    if (book.data === undefined) return
    const { base_hash } = book.data
    const count = selected.size
    const done = await submit(
      () => call("POST", "/admin-ui/admin/model-prices/import", { body: { base_hash, models: [...selected] } }),
      { refresh: true }
    )
    if (done === undefined) {
      await book.refetch()
      return
    }
    onClose()
    tell({
      done: `${countedText(count, "price")} ${count === 1 ? "is" : "are"} imported.`,
      audit: { type: "model_price" }
    })
  }
  const vendors = book.data?.vendors.map(({ as_of, vendor }) => `${vendor} (${as_of})`).join(", ")
  return (
    // a dialog in the middle of the window would move as a whole when the prices arrive
    <Modal opened onClose={onClose} title="Import the price book" size="xl" centered={false}>
      <Stack gap="sm">
        <p>
          Public prices. Check them against your contract: what differs from it is yours to set.
          {vendors !== undefined && ` They are those of ${vendors}.`}
        </p>
        <Panel query={book} height={300} flush>
          <DataTable
            name="price-book"
            label="Prices of the book that differ from the stored ones"
            columns={columns}
            rows={differing}
            rowId={({ model }) => model}
            selected={selected}
            onSelect={setChosen}
            toolbar={
              <span>
                {selected.size} of {differing.length} chosen
              </span>
            }
            empty={<Empty>The stored prices are those of the book.</Empty>}
          />
        </Panel>
        {error !== null && (
          <>
            <ErrorNote error={error} />
            {error.status === 409 && (
              <Alert color="yellow">
                Somebody changed prices meanwhile. Above is the difference from what they are now; look at it again.
              </Alert>
            )}
          </>
        )}
        <DialogFooter>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button onClick={() => void confirm()} loading={isBusy} disabled={selected.size === 0}>
            Import {countedText(selected.size, "price")}
          </Button>
        </DialogFooter>
      </Stack>
    </Modal>
  )
}

const columns: ReadonlyArray<Column<BookPrice>> = [
  { id: "model", header: "Model", cell: ({ model }) => <ForeignText>{model}</ForeignText> },
  {
    id: "status",
    header: "Status",
    main: true,
    cell: ({ covered_by, status }) => (
      <Group gap={4} wrap="nowrap">
        <StatusWord meaning={status === "new" ? "good" : "warning"}>{status}</StatusWord>
        {covered_by !== null && <span>priced by {covered_by} now</span>}
      </Group>
    )
  },
  { id: "price", header: "$ per million, in / out", main: true, cell: (price) => pairText(price) },
  {
    id: "changes",
    header: "Changes",
    cell: ({ changes, status }) =>
      status === "new"
        ? "–"
        : changes.map(({ field, from, to }) => `${field} ${priceText(from)} → ${priceText(to)}`).join("; ")
  },
  { id: "note", header: "Note", cell: ({ note }) => note ?? "–" },
  { id: "vendor", header: "Vendor", hidden: true, cell: ({ vendor }) => vendor }
]
