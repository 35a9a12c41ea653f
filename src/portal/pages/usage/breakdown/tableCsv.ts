import { csvLine } from "../../../shared/words/saveText.ts"
import type { BreakdownData } from "./useBreakdown.ts"

/** Says which groups are left out. */
export const topSentence = ({
  isReversed,
  list,
  measure
}: Pick<BreakdownData, "isReversed" | "list" | "measure">): string =>
  `Only the ${isReversed ? "last" : "top"} ${list.length} are listed. Order: ${measure.label.toLowerCase()}.`

/** The rows of the table with exact numbers, and a last line if there are more. */
export const csvOf = (data: BreakdownData, whole: number): string => {
  const { group, groups, list, measure, other, range } = data
  return [
    csvLine([
      `from ${range.from.toISOString()}`,
      `to ${range.to.toISOString()}`,
      `compared with ${other.from.toISOString()}`,
      other.to.toISOString()
    ]),
    csvLine([
      group.name,
      "name",
      measure.name,
      "share",
      "before",
      "request_count",
      "failure_count",
      "total_tokens",
      "estimated_cost_usd"
    ]),
    ...list.map(({ before, label, name, summary }) =>
      csvLine([
        name,
        label,
        measure.of(summary),
        whole === 0 || !measure.adds ? "" : measure.of(summary) / whole,
        before === undefined ? "" : measure.of(before),
        summary.request_count,
        summary.failure_count,
        summary.total_tokens,
        summary.estimated_cost_usd
      ])
    ),
    ...(groups.hasNextPage ? [csvLine([topSentence(data)])] : [])
  ].join("\r\n")
}
