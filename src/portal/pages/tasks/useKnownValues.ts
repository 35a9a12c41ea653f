import { useMemo } from "react"
import { useTasksApi } from "../../api/queries.ts"
import type { Queues, Task, TaskCounts } from "../../api/TaskTypes.ts"
import type { KnownValues } from "./completions.ts"

/** What completes a search: the statuses there are, the queues of the board, and the values of the rows. */
export const useKnownValues = (
  rows: ReadonlyArray<Task>,
  { status: _, ...others }: Readonly<Record<string, string>>
): KnownValues => {
  // the same as the counts above the rows, which are read once
  const counts = useTasksApi<TaskCounts>("/tasks/counts", others)
  const queues = useTasksApi<Queues>("/queues")
  return useMemo(() => {
    const seen = (of: (row: Task) => string | null) =>
      [...new Set(rows.map(of))].filter((value) => value !== null).sort()
    const attributes = new Set(rows.flatMap(({ attributes }) => Object.keys(attributes)))
    return {
      status: (counts.data?.counts ?? []).map(({ status }) => status),
      type: seen(({ task_type }) => task_type),
      since: ["15m", "1h", "2h", "24h", "7d", "30d"],
      until: ["1h", "24h"],
      ended: ["false", "true"],
      error: seen(({ error_class }) => error_class),
      queue: (queues.data?.queues ?? []).map(({ queue }) => queue),
      worker: seen(({ worker }) => worker),
      parent: seen(({ parent_id }) => parent_id),
      ...Object.fromEntries(
        [...attributes].map((name) => [`attr.${name}`, seen(({ attributes }) => attributes[name] ?? null)])
      )
    }
  }, [rows, counts.data, queues.data])
}
