import { useMemo } from "react"
import { useRange } from "../../address/range.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"

const most = 500

export interface TaskCosts {
  /** By the id of the task. */
  readonly known: ReadonlyMap<string, number>
  /** The most that a task that is not among them can cost; `undefined` if that is not known. */
  readonly otherwise: number | undefined
}

/** Reads what the dearest tasks of the range have cost, in one answer. Returns `undefined` without the scope. */
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
