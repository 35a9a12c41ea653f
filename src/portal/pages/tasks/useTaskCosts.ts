import { useMemo } from "react"
import { useRange } from "../../address/range.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"

/** What tasks of the range have cost, by their ids: the dearest ones in one answer. `undefined` without the scope. */
export const useTaskCosts = (): ReadonlyMap<string, number> | undefined => {
  const mayRead = useAllowed("usage:read")
  const { range } = useRange()
  const { data } = useApi(
    "/admin-ui/admin/usage/by-task",
    { query: { from: range.from.toISOString(), to: range.to.toISOString(), sort_by: "cost", breakdown_limit: 500 } },
    { enabled: mayRead }
  )
  return useMemo(() => {
    if (!mayRead) return undefined
    return new Map((data ?? []).map(({ name, summary }) => [name, summary.estimated_cost_usd]))
  }, [mayRead, data])
}
