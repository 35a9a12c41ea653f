import { useMemo } from "react"
import { useRange } from "../../../address/range.ts"
import { useTextSearch } from "../../../address/search.ts"
import { useApi } from "../../../api/queries.ts"
import { filled } from "../../../shared/usage/buckets.ts"
import { unlabelledOf } from "../../../shared/usage/unlabelled.ts"
import { useUsageFilter } from "../../../shared/usage/useUsageFilter.ts"
import { comparedRange } from "./compared.ts"
import { groupOf } from "./groups.ts"
import { measureOf, type Summary, valueOf } from "./measures.ts"
import { splitOf } from "./parts.ts"
import { breakdownRequest, orderOf, timesOf, useGroups } from "./useGroups.ts"
import { intervalFor, useSeries } from "./useSeries.ts"

const mostBefore = 500
/** As many groups as have lines in the table. */
const mostLines = 100
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

  const order = orderOf(text)
  const isReversed = order.sort_order !== undefined
  const { found, groups } = useGroups(breakdownRequest(range, text, filters))
  const rowsBefore = useApi(group.path, { query: { ...then, ...order, breakdown_limit: mostBefore } })
  const total = useApi("/admin-ui/admin/usage/summary", { query: now })
  const totalBefore = useApi("/admin-ui/admin/usage/summary", { query: then })
  const { fewGroups, query: series } = useSeries({
    ...{ filters, range, interval, split: group.split },
    groups: interval === "minute" ? mostSplit : mostLines
  })
  const parts = useSeries({
    ...{ filters, range, interval, split: split?.name, groups: mostSplit },
    enabled: split !== undefined
  })

  const list = useMemo(() => {
    const before = new Map((rowsBefore.data ?? []).map(({ name, summary }) => [name, summary]))
    const isWhole = rowsBefore.data !== undefined && rowsBefore.data.length < mostBefore
    const byName = Map.groupBy(series.data ?? [], ({ name = "" }) => name)
    return found
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
              : filled(range, interval, buckets, (some) => ({ value: valueOf(measure, some) })).flatMap(
                  ({ values }) => values["value"] ?? []
                )
        }
      })
      .sort((a, b) => (measure.of(b.summary) - measure.of(a.summary)) * (isReversed ? -1 : 1))
  }, [found, isReversed, rowsBefore.data, series.data, range, interval, group, measure])

  return {
    range,
    other,
    group,
    measure,
    interval,
    filters,
    groups,
    list,
    isReversed,
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
