import { useMemo } from "react"
import { type Range, useRange } from "../../../address/range.ts"
import { useTextSearch } from "../../../address/search.ts"
import { useApi } from "../../../api/queries.ts"
import { filled } from "../../../shared/usage/buckets.ts"
import { unlabelledOf } from "../../../shared/usage/unlabelled.ts"
import { useUsageFilter } from "../../../shared/usage/useUsageFilter.ts"
import { comparedRange } from "./compared.ts"
import { groupOf } from "./groups.ts"
import { measureOf, type Summary, valueOf } from "./measures.ts"
import { splitOf } from "./parts.ts"
import { intervalFor, useSeries } from "./useSeries.ts"

export const mostRows = 100
const mostBefore = 500
/** Beyond these, the chart has no colours. */
const mostSplit = 50

export interface GroupRow {
  readonly name: string
  readonly label: string
  readonly summary: Summary
  readonly before: Summary | undefined
  /** The compared range is known as a whole, and does not have the group. */
  readonly isNew: boolean
  /** Of the measure, by bucket. `undefined` where the server has no series of the group. */
  readonly line: ReadonlyArray<number> | undefined
}

const timesOf = ({ from, to }: { readonly from: Date; readonly to: Date }) => ({
  from: from.toISOString(),
  to: to.toISOString()
})

/** The request of the table of groups. It asks for one group more than the table shows, which tells that there are more. */
export const breakdownRequest = (
  range: Pick<Range, "from" | "to">,
  text: (name: string) => string | undefined,
  filters: ReturnType<typeof useUsageFilter>
) => ({
  path: groupOf(text("group")).path,
  query: { ...filters, ...timesOf(range), breakdown_limit: mostRows + 1, sort_by: measureOf(text("measure")).sort }
})

/** All that the page shows of usage: by group, in total, over time, and the same of the compared range. */
export const useBreakdown = () => {
  const { range } = useRange()
  const { text } = useTextSearch()
  const filters = useUsageFilter()
  const group = groupOf(text("group"))
  const measure = measureOf(text("measure"))
  const chosen = splitOf(text("split"))
  // the series of the group are read anyway
  const split = chosen?.name === group.split ? undefined : chosen
  const other = comparedRange(range, text("compare"))
  const interval = intervalFor(range, text("interval"))
  const now = { ...filters, ...timesOf(range) }
  const then = { ...filters, ...timesOf(other) }

  const rows = useApi(group.path, { query: breakdownRequest(range, text, filters).query })
  const hasMore = (rows.data?.length ?? 0) > mostRows
  const rowsBefore = useApi(group.path, { query: { ...then, breakdown_limit: mostBefore, sort_by: measure.sort } })
  const total = useApi("/admin-ui/admin/usage/summary", { query: now })
  const totalBefore = useApi("/admin-ui/admin/usage/summary", { query: then })
  const { fewGroups, query: series } = useSeries({
    ...{ filters, range, interval, split: group.split },
    groups: interval === "minute" ? mostSplit : mostRows
  })
  const parts = useSeries({
    ...{ filters, range, interval, split: split?.name, groups: mostSplit },
    enabled: split !== undefined
  })

  const list = useMemo(() => {
    const before = new Map((rowsBefore.data ?? []).map(({ name, summary }) => [name, summary]))
    const isWhole = rowsBefore.data !== undefined && rowsBefore.data.length < mostBefore
    const byName = Map.groupBy(series.data ?? [], ({ name = "" }) => name)
    return (rows.data ?? [])
      .slice(0, mostRows)
      .map(({ display_name, name, summary }): GroupRow => {
        const buckets = byName.get(name)
        return {
          name,
          label: unlabelledOf(group.name, name)?.label ?? display_name,
          summary,
          before: before.get(name),
          isNew: isWhole && !before.has(name),
          line:
            group.split === undefined || buckets === undefined
              ? undefined
              : filled(range, interval, buckets, (found) => ({ value: valueOf(measure, found) })).flatMap(
                  ({ values }) => values["value"] ?? []
                )
        }
      })
      .sort((a, b) => measure.of(b.summary) - measure.of(a.summary))
  }, [rows.data, rowsBefore.data, series.data, range, interval, group, measure])

  return {
    range,
    other,
    group,
    measure,
    interval,
    filters,
    rows,
    list,
    hasMore,
    total,
    totalBefore,
    series,
    split,
    parts: parts.query,
    /** The chart has so many groups alone, those with the most requests. `undefined`: it has all. */
    fewGroups: split === undefined ? fewGroups : parts.fewGroups
  }
}

export type BreakdownData = ReturnType<typeof useBreakdown>
