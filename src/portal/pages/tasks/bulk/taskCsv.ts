import type { Task } from "../../../api/TaskTypes.ts"
import { csvLine } from "../../../shared/words/saveText.ts"

const columns = [
  "task_id",
  "task_type",
  "status",
  "attempt",
  "first_at",
  "last_at",
  "duration_ms",
  "queue",
  "worker",
  "parent_id",
  "error_class",
  "message"
] as const

export const csvOf = (tasks: ReadonlyArray<Task>): string =>
  [columns, ...tasks.map((task) => columns.map((name) => task[name]))].map(csvLine).join("\r\n")
