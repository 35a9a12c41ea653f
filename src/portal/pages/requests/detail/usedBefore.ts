import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useApi } from "../../../api/queries.ts"
import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"

export type LimitState = ResponseOf<"GET", "/admin-ui/admin/limits/state">["limits"][number]
type Summary = ResponseOf<"GET", "/admin-ui/admin/usage/summary">

const summaryPath = "/admin-ui/admin/usage/summary"

/** Windows of limits are those of UTC. */
const startOf = (window: LimitState["window"], at: Date): Date => {
  if (window === "minute") return new Date(Math.floor(at.getTime() / 60_000) * 60_000)
  if (window === "day") return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()))
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth()))
}

const amountOf = (summary: Summary, unit: LimitState["unit"]): number =>
  unit === "usd"
    ? summary.estimated_cost_usd
    : unit === "tokens"
      ? summary.total_tokens
      : summary.request_count -
        summary.policy_denial_count -
        summary.rate_limit_denial_count -
        summary.budget_denial_count

/** What the request itself took of a limit. */
export const takenBy = (row: UsageRow, unit: LimitState["unit"]): number => {
  if (unit === "usd") return row.estimated_cost_usd ?? 0
  if (unit === "tokens") return row.total_tokens ?? 0
  return row.upstream_ms === null ? 0 : 1
}

/** Sums up what the key had used in each window before the request: one query for each window that has a limit. */
export const useUsedBefore = (row: UsageRow, limits: ReadonlyArray<LimitState>) => {
  const at = new Date(row.created_at)
  const windows = new Set(limits.filter(({ scope }) => scope === "key").map(({ window }) => window))
  const summaries = {
    minute: useSummary(row, startOf("minute", at), windows.has("minute")),
    day: useSummary(row, startOf("day", at), windows.has("day")),
    month: useSummary(row, startOf("month", at), windows.has("month"))
  }
  return (state: LimitState): number | undefined => {
    if (state.scope !== "key" || state.within !== null) return undefined
    const summary = summaries[state.window]
    return summary === undefined ? undefined : Math.max(0, amountOf(summary, state.unit))
  }
}

const nothing: Summary | undefined = undefined

const useSummary = (row: UsageRow, from: Date, enabled: boolean): Summary | undefined => {
  const isEmpty = from.toISOString() === row.created_at
  const found = useApi(
    summaryPath,
    { query: { key_id: row.key_id, from: from.toISOString(), to: row.created_at } },
    { enabled: enabled && !isEmpty }
  )
  return found.data ?? nothing
}
