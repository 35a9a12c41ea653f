import { useMemo } from "react"
import { useTextSearch } from "../../../address/search.ts"
import { Sparkline } from "../../../shared/charts/Sparkline.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { LongerRange } from "../../../shared/links/LongerRange.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../../shared/table/DataTable.tsx"
import { EmptyList } from "../../../shared/table/EmptyList.tsx"
import { filterFields } from "../../../shared/usage/fields.ts"
import { Count, Money } from "../../../shared/words/Amounts.tsx"
import { durationText, percentText } from "../../../shared/words/format.ts"
import styles from "./Breakdown.module.css"
import { changeText } from "./compared.ts"
import { TableExport } from "./TableExport.tsx"
import { topSentence } from "./tableCsv.ts"
import type { BreakdownData, GroupRow } from "./useBreakdown.ts"

/** The groups with their share, the change and the shape of each. */
export const GroupTable = ({ data }: { readonly data: BreakdownData }) => {
  const { change, text } = useTextSearch()
  const { group, groups, isReversed, list, measure, total } = data
  const whole = total.data === undefined ? 0 : measure.of(total.data)
  const columns = useMemo(() => columnsOf(data, whole), [data, whole])
  return (
    <Panel
      title={`By ${group.label.toLowerCase()}`}
      query={groups}
      height={320}
      flush
      actions={<TableExport data={data} whole={whole} />}
    >
      <DataTable
        name={`usage-${group.split === undefined ? "plain" : "split"}`}
        label={`Usage by ${group.label.toLowerCase()}`}
        columns={columns}
        rows={list}
        rowId={({ name }) => name}
        onOpen={({ name }) => change({ open: name })}
        openId={text("open")}
        list={{ rows: list, query: groups }}
        sorting={{
          by: measure.name,
          isReversed,
          onSort: () => change({ sort_order: isReversed ? undefined : "asc" })
        }}
        toolbar={groups.hasNextPage && <span>{topSentence(data)}</span>}
        empty={
          <EmptyList
            filters={filterFields}
            isOfRange={true}
            unmatched="Nothing that matches these filters was used in this range, or nothing that has this label."
          >
            <Empty action={<LongerRange />}>Nothing was used in this range, or nothing that has this label.</Empty>
          </EmptyList>
        }
      />
    </Panel>
  )
}

/** A measure that has a column of its own is not shown twice. */
const columnsOf = (data: BreakdownData, whole: number): ReadonlyArray<Column<GroupRow>> =>
  allColumns(data, whole).filter(({ id }) => id !== ownColumns[data.measure.name])

const ownColumns: Readonly<Record<string, string>> = {
  requests: "requests",
  tokens: "tokens",
  cost: "cost",
  latency: "latency"
}

const allColumns = ({ group, measure }: BreakdownData, whole: number): ReadonlyArray<Column<GroupRow>> => [
  {
    id: "name",
    header: group.label,
    cell: ({ label }) => (
      <ForeignText className={styles.name} title={label}>
        {label}
      </ForeignText>
    )
  },
  {
    id: "value",
    header: measure.label,
    sort: measure.name,
    numeric: true,
    main: true,
    cell: ({ summary }) => measure.format(measure.of(summary))
  },
  ...(measure.adds
    ? [
        {
          id: "share",
          header: "Share",
          numeric: true,
          cell: ({ summary }: GroupRow) => (
            <div className={styles.share}>
              <span>{percentText(measure.of(summary), whole)}</span>
              <div className={styles.bar} aria-hidden="true">
                <span style={{ width: `${whole === 0 ? 0 : (measure.of(summary) / whole) * 100}%` }} />
              </div>
            </div>
          )
        }
      ]
    : []),
  {
    id: "change",
    header: "Change",
    numeric: true,
    cell: ({ before, isNew, summary }) =>
      isNew ? "new" : changeText(measure.of(summary), before === undefined ? undefined : measure.of(before))
  },
  {
    id: "before",
    header: "Before",
    numeric: true,
    hidden: true,
    cell: ({ before }) => (before === undefined ? "–" : measure.format(measure.of(before)))
  },
  ...(group.split === undefined
    ? []
    : [
        {
          id: "line",
          header: "Over time",
          cell: ({ label, line }: GroupRow) =>
            line === undefined ? (
              "–"
            ) : (
              <div className={styles.line}>
                <Sparkline values={line} label={`${measure.label} of ${label} over the range`} />
              </div>
            )
        }
      ]),
  {
    id: "requests",
    header: "Requests",
    numeric: true,
    main: true,
    cell: ({ summary }) => <Count of={summary.request_count} short />
  },
  {
    id: "failures",
    header: "Failed",
    numeric: true,
    cell: ({ summary }) => percentText(summary.failure_count, summary.request_count)
  },
  {
    id: "tokens",
    header: "Tokens",
    numeric: true,
    main: true,
    cell: ({ summary }) => <Count of={summary.total_tokens} short />
  },
  {
    id: "cached",
    header: "From cache",
    numeric: true,
    hidden: true,
    cell: ({ summary }) => (summary.cached_share === null ? "–" : percentText(summary.cached_share, 1))
  },
  { id: "cost", header: "Cost", numeric: true, cell: ({ summary }) => <Money usd={summary.estimated_cost_usd} /> },
  {
    id: "latency",
    header: "Average",
    numeric: true,
    cell: ({ summary }) => (summary.average_latency_ms === null ? "–" : durationText(summary.average_latency_ms))
  },
  {
    id: "reported",
    header: "Reported",
    numeric: true,
    hidden: true,
    cell: ({ summary }) => percentText(summary.reported_count, summary.reported_count + summary.estimated_count)
  },
  {
    id: "fallbacks",
    header: "Fallbacks",
    numeric: true,
    hidden: true,
    cell: ({ summary }) => <Count of={summary.fallback_count} short />
  }
]
