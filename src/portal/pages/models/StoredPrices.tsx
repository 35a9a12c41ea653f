import { Button, Group } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import { call } from "../../api/control.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { EmptyList } from "../../shared/table/EmptyList.tsx"
import { FilterBar } from "../../shared/table/FilterBar.tsx"
import { FieldDiff } from "../../shared/words/FieldDiff.tsx"
import { When } from "../../shared/words/When.tsx"
import { type ModelPrice, orderOfPrices, priceFields, pricesOf, priceText, sortedPrices } from "./prices.ts"

const filters = [{ name: "q", label: "Model" }]

/** The prices that were set. A pattern prices all models whose names begin like it. */
export const StoredPrices = () => {
  const { change, text } = useTextSearch()
  const mayChange = useAllowed("settings:update")
  const stored = useApi("/admin-ui/admin/model-prices", {})
  const { ask, dialog } = useConfirm()
  const by = orderOfPrices(text("sort_by"))
  const isReversed = text("sort_order") === "asc"
  const word = (text("q") ?? "").toLowerCase()
  const remove = (price: ModelPrice) =>
    ask({
      title: `Delete the price of ${price.model}`,
      action: "Delete",
      body: (
        <>
          <FieldDiff before={{ ...pricesOf(price) }} after={{}} />
          <p>Its requests are then charged as models without a price are, or refused where a policy says so.</p>
        </>
      ),
      run: () => call("DELETE", "/admin-ui/admin/model-prices/:model", { params: { model: price.model } }),
      undo: () =>
        call("PUT", "/admin-ui/admin/model-prices/:model", {
          params: { model: price.model },
          body: {
            input_usd_per_million: price.input_usd_per_million,
            output_usd_per_million: price.output_usd_per_million,
            cached_input_usd_per_million: price.cached_input_usd_per_million,
            cache_write_usd_per_million: price.cache_write_usd_per_million,
            expected_updated_at: null
          }
        }),
      done: `The price of ${price.model} is deleted.`,
      audit: { type: "model_price", id: price.model }
    })
  return (
    <>
      <Panel title="Prices" note="in US dollars per million tokens" query={stored} height={320} flush>
        {(instead) => (
          <DataTable
            instead={instead}
            name="prices"
            label="Stored prices"
            columns={columnsOf(
              mayChange ? { onChange: (model) => change({ do: "price", model }), onRemove: remove } : undefined
            )}
            rows={sortedPrices(
              (stored.data ?? []).filter(({ model }) => model.toLowerCase().includes(word)),
              by,
              !isReversed
            )}
            sorting={{
              by,
              isReversed,
              onSort: (next) => change({ sort_by: next, sort_order: next === by && !isReversed ? "asc" : undefined })
            }}
            rowId={({ model }) => model}
            toolbar={<FilterBar filters={filters} />}
            empty={
              <EmptyList filters={filters} unmatched="No stored price matches this filter.">
                <Empty
                  action={mayChange && <Button onClick={() => change({ do: "import" })}>Import the price book</Button>}
                  command="svc-runtime prices import"
                >
                  No price is stored. The price book has the public prices of common models.
                </Empty>
              </EmptyList>
            }
          />
        )}
      </Panel>
      {dialog}
    </>
  )
}

interface Changes {
  readonly onChange: (model: string) => void
  readonly onRemove: (price: ModelPrice) => void
}

const headers = {
  input: "Input",
  output: "Output",
  cached_input: "Cached input",
  cache_write: "Cache write"
} as const

const columnsOf = (changes: Changes | undefined): ReadonlyArray<Column<ModelPrice>> => [
  { id: "model", header: "Model or pattern", sort: "model", cell: ({ model }) => <ForeignText>{model}</ForeignText> },
  ...priceFields.map((field, place): Column<ModelPrice> => {
    const name = field.replace("_usd_per_million", "") as keyof typeof headers
    return {
      id: field,
      header: headers[name],
      sort: field,
      numeric: true,
      main: place < 2,
      cell: (price) => priceText(price[field])
    }
  }),
  { id: "updated", header: "Set", sort: "updated_at", cell: ({ updated_at }) => <When at={updated_at} /> },
  ...(changes === undefined
    ? []
    : [
        {
          id: "actions",
          header: "Actions",
          main: true,
          cell: (price: ModelPrice) => (
            <Group gap={0} wrap="nowrap">
              <Button
                variant="subtle"
                px={6}
                onClick={() => changes.onChange(price.model)}
                aria-label={`Change the price of ${price.model}`}
              >
                Change
              </Button>
              <Button
                variant="subtle"
                px={6}
                c="red"
                onClick={() => changes.onRemove(price)}
                aria-label={`Delete the price of ${price.model}`}
              >
                Delete
              </Button>
            </Group>
          )
        }
      ])
]
