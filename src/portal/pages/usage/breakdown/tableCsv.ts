import { csvLine } from "../../../shared/words/saveText.ts"
import type { BreakdownData } from "./useBreakdown.ts"

/** The rows of the table with exact numbers. */
export const csvOf = ({ group, list, measure, other, range }: BreakdownData, whole: number): string =>
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
    )
  ].join("\r\n")
