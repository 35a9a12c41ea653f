import type { Task } from "../../../api/TaskTypes.ts"

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

/** A spreadsheet would take a text that begins so for a formula. */
const formula = /^[=+\-@\t\r]/

const cell = (value: string | number | null): string => {
  const text = String(value ?? "")
  const safe = typeof value === "string" && formula.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

export const csvOf = (tasks: ReadonlyArray<Task>): string =>
  [columns.join(","), ...tasks.map((task) => columns.map((name) => cell(task[name])).join(","))].join("\r\n")
