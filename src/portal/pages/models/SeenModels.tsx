import { Button } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { firstCommand } from "../../shared/snippets/firstCommand.ts"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { EmptyList } from "../../shared/table/EmptyList.tsx"
import { type Filter, FilterBar } from "../../shared/table/FilterBar.tsx"
import { Count, Money } from "../../shared/words/Amounts.tsx"
import { countedText, durationText, moneyText, percentText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { pairText, type SeenModel } from "./prices.ts"

const priceds = ["true", "false"] as const
const sorts = ["requests", "cost", "tokens"] as const

const filters: ReadonlyArray<Filter> = [
  { name: "q", label: "Model" },
  {
    name: "priced",
    label: "With or without a price",
    choices: [
      { value: "false", label: "Without a price" },
      { value: "true", label: "With a price" }
    ]
  }
]

export const seenPath = "/admin-ui/admin/models"

/** The request of the list, with the filters in the address. */
export const seenRequest = (text: (name: string) => string | undefined) => ({
  query: {
    priced: priceds.find((one) => one === text("priced")),
    sort_by: sorts.find((one) => one === text("sort_by")),
    limit: 500,
    p95: "true" as const
  }
})

/** The models of recent requests. Those without a price show what they cost, and what they should have cost. */
export const SeenModels = () => {
  const { change, text } = useTextSearch()
  const mayChange = useAllowed("settings:update")
  const seen = useApi(seenPath, seenRequest(text))
  const word = (text("q") ?? "").toLowerCase()
  const rows = (seen.data?.models ?? []).filter(({ model }) => model.toLowerCase().includes(word))
  return (
    <Panel query={seen} height={320} flush>
      {(instead) => (
        <DataTable
          instead={instead}
          name="models"
          label="Models"
          columns={columnsOf(mayChange ? (model) => change({ do: "price", model }) : undefined)}
          rows={rows}
          rowId={({ model }) => model}
          sorting={{ by: seenRequest(text).query.sort_by ?? "requests", onSort: (by) => change({ sort_by: by }) }}
          toolbar={
            <>
              <FilterBar filters={filters} />
              {seen.data?.has_more === true && <span>There are more than the 500 models with the most requests.</span>}
            </>
          }
          empty={
            <EmptyList
              filters={filters}
              unmatched="No model of the requests of the last 30 days matches these filters."
            >
              <Empty command={firstCommand}>
                No request of the last 30 days named a model. A model appears with its first request.
              </Empty>
            </EmptyList>
          }
        />
      )}
    </Panel>
  )
}

const columnsOf = (onPrice: ((model: string) => void) | undefined): ReadonlyArray<Column<SeenModel>> => [
  { id: "model", header: "Model", cell: ({ model }) => <ForeignText>{model}</ForeignText> },
  {
    id: "price",
    header: "$ per million, in / out",
    main: true,
    wide: true,
    cell: ({ book_price, model, price, refused_for_price_count: refused }) =>
      price !== null ? (
        <span>
          {pairText(price)} {price.model !== model && <code>{price.model}</code>}
        </span>
      ) : (
        <>
          <StatusWord meaning="warning">no price</StatusWord>
          {refused > 0 && ` ${countedText(refused, "request")} refused for it`}
          {book_price !== null && ` book: ${pairText(book_price)}`}
        </>
      )
  },
  {
    id: "requests",
    header: "Requests",
    numeric: true,
    sort: "requests",
    main: true,
    cell: ({ summary }) => <Count of={summary.request_count} short />
  },
  {
    id: "tokens",
    header: "Tokens",
    numeric: true,
    sort: "tokens",
    cell: ({ summary }) => <Count of={summary.total_tokens} short />
  },
  {
    id: "cost",
    header: "Charged",
    numeric: true,
    sort: "cost",
    main: true,
    cell: ({ summary }) => <Money usd={summary.estimated_cost_usd} />
  },
  {
    id: "book",
    header: "By the book",
    numeric: true,
    cell: ({ at_book_price_usd, summary }) =>
      at_book_price_usd === null
        ? "–"
        : `${moneyText(at_book_price_usd)} (${signed(at_book_price_usd - summary.estimated_cost_usd)})`
  },
  {
    id: "cached",
    header: "From cache",
    numeric: true,
    cell: ({ summary }) => (summary.cached_share === null ? "–" : percentText(summary.cached_share, 1))
  },
  {
    id: "errors",
    header: "Failures",
    numeric: true,
    cell: ({ summary }) => percentText(summary.failure_count, summary.request_count)
  },
  {
    id: "latency",
    header: "Mean time",
    numeric: true,
    cell: ({ summary }) => (summary.average_latency_ms === null ? "–" : durationText(summary.average_latency_ms))
  },
  {
    id: "p95",
    header: "p95 of 30 days",
    numeric: true,
    cell: ({ p95_latency_ms }) => (p95_latency_ms === null ? "–" : durationText(p95_latency_ms))
  },
  ...(onPrice === undefined
    ? []
    : [
        {
          id: "action",
          header: "Price",
          cell: ({ model, price }: SeenModel) => (
            <Button
              variant="subtle"
              px={6}
              onClick={() => onPrice(price?.model ?? model)}
              aria-label={`${price === null ? "Set" : "Change"} the price of ${model}`}
            >
              {price === null ? "Set" : "Change"}
            </Button>
          )
        }
      ])
]

const signed = (difference: number): string => (difference >= 0 ? `+${moneyText(difference)}` : moneyText(difference))
