import { csvLine } from "../../../shared/words/saveText.ts"
import type { Measure } from "./measures.ts"
import { type BreakdownData, mostRows } from "./useBreakdown.ts"

/** Says which groups are left out. */
export const topSentence = ({ label }: Measure): string =>
  `Only the top ${mostRows} are listed. Order: ${label.toLowerCase()}.`

/** The rows of the table with exact numbers, and a last line if there are more. */
export const csvOf = ({ group, hasMore, list, measure, other, range }: BreakdownData, whole: number): string =>
  [
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
    ...(hasMore ? [csvLine([topSentence(measure)])] : [])
  ].join("\r\n")
