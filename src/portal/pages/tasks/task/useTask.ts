import { useMemo } from "react"
import { useTasksApi } from "../../../api/queries.ts"
import type { ExecutionView, Explanation, History, LetterPage } from "../../../api/TaskTypes.ts"
import { taskPath } from "../../../api/tasks.ts"
import { attemptsOf } from "../attempts/attempts.ts"

/** Everything that the tabs of a task show, read once. */
export const useTask = (taskId: string) => {
  const explanation = useTasksApi<Explanation>(taskPath`/executions/${taskId}/explain`)
  const view = useTasksApi<ExecutionView>(taskPath`/executions/${taskId}/view`)
  const history = useTasksApi<History>("/history", { task_id: taskId })
  const letters = useTasksApi<LetterPage>("/dlq/messages", { task_id: taskId, limit: 200 })
  const graph = view.data?.graph
  const attempts = useMemo(
    () => (graph === undefined ? [] : attemptsOf(graph, explanation.data)),
    [graph, explanation.data]
  )
  return { taskId, explanation, view, history, letters, attempts }
}

export type TaskData = ReturnType<typeof useTask>
