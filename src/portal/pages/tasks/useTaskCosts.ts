import { useMemo } from "react"
import { useRange } from "../../address/range.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"

const most = 500

export interface TaskCosts {
  /** By the id of the task. */
  readonly known: ReadonlyMap<string, number>
  /** What a task that is not among them costs at most; `undefined` if that is not known. */
  readonly otherwise: number | undefined
}

/** What tasks of the range have cost: the dearest ones in one answer. `undefined` without the scope. */
export const useTaskCosts = (): TaskCosts | undefined => {
  const mayRead = useAllowed("usage:read")
  const { range } = useRange()
  const { data } = useApi(
    "/admin-ui/admin/usage/by-task",
    { query: { from: range.from.toISOString(), to: range.to.toISOString(), sort_by: "cost", breakdown_limit: most } },
    { enabled: mayRead }
  )
  return useMemo(() => {
    if (!mayRead) return undefined
    return {
      known: new Map((data ?? []).map(({ name, summary }) => [name, summary.estimated_cost_usd])),
      otherwise: data === undefined || data.length < most ? data && 0 : data.at(-1)?.summary.estimated_cost_usd
    }
  }, [mayRead, data])
}
