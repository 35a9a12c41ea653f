import type { Task } from "../../../api/TaskTypes.ts"
import { csvOf } from "./taskCsv.ts"

export const downloadTasks = (tasks: ReadonlyArray<Task>): void => {
  const address = URL.createObjectURL(new Blob([csvOf(tasks)], { type: "text/csv" }))
  const link = Object.assign(document.createElement("a"), { href: address, download: "tasks.csv" })
  link.click()
  window.setTimeout(() => URL.revokeObjectURL(address), 60_000)
}
