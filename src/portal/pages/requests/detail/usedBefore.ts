import { useQueries } from "@tanstack/react-query"
import { call } from "../../../api/control.ts"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import type { UsageFilters } from "../../../shared/usage/fields.ts"
import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"

export type LimitState = ResponseOf<"GET", "/admin-ui/admin/limits/state">["limits"][number]
type Summary = ResponseOf<"GET", typeof summaryPath>

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

/** The filter of the records that a limit counts. `undefined` for limits that count a part of them. */
const filterOf = ({ scope, scope_id, within }: LimitState): UsageFilters | undefined => {
  if (within !== null) return undefined
  if (scope === "global") return {}
  if (scope_id === null) return undefined
  switch (scope) {
    case "key":
      return { key_id: scope_id }
    case "project":
      return { project_id: scope_id }
    case "team":
      return { team_id: scope_id }
    case "route":
      return { route: scope_id }
    default:
      return undefined
  }
}

const nameOf = ({ scope, scope_id, window }: LimitState): string => `${scope} ${scope_id} ${window}`

/** Sums up what was used in each window before the request: one query for each owner and window that has a limit. */
export const useUsedBefore = (row: UsageRow, limits: ReadonlyArray<LimitState>) => {
  const at = new Date(row.created_at)
  const wanted = [...new Map(limits.map((state) => [nameOf(state), state])).values()].flatMap((state) => {
    const filter = filterOf(state)
    const from = startOf(state.window, at).toISOString()
    return filter === undefined || from === row.created_at ? [] : [{ name: nameOf(state), filter, from }]
  })
  const found = useQueries({
    queries: wanted.map(({ filter, from }) => {
      const query = { ...filter, from, to: row.created_at }
      return {
        queryKey: [summaryPath, undefined, query],
        queryFn: ({ signal }: { readonly signal: AbortSignal }) => call("GET", summaryPath, { query }, { signal })
      }
    })
  })
  return (state: LimitState): number | undefined => {
    const summary = found[wanted.findIndex(({ name }) => name === nameOf(state))]?.data
    return summary === undefined || filterOf(state) === undefined
      ? undefined
      : Math.max(0, amountOf(summary, state.unit))
  }
}
