import type { CancellationJob } from "../../../api/TaskTypes.ts"
import { countedText } from "../../../shared/words/format.ts"
import type { Meaning } from "../../../shared/words/StatusWord.tsx"
import { quoted } from "../searchText.ts"

export const cancellationsPath = "/tasks/cancellations"

/** A job that has ended is a success only where each task has ended. */
export const meaningOf = ({ failed, requested, state }: CancellationJob): Meaning => {
  if (state === "running") return "working"
  if (state === "following") return "waiting"
  if (state === "stopped") return "idle"
  return failed > 0 ? "bad" : requested > 0 ? "warning" : "good"
}

export const isOver = ({ state }: CancellationJob): boolean => state === "finished" || state === "stopped"

/** The search as the box of the list of tasks takes it. */
export const searchOf = (query: Readonly<Record<string, string>>): string =>
  Object.entries(query)
    .map(([name, value]) => (name === "q" ? quoted(value) : `${name}:${quoted(value)}`))
    .join(" ")

/** Which tasks it is about. */
export const selectionText = ({ query, total }: CancellationJob): string =>
  query === null ? countedText(total, "task by its id", "tasks by their ids") : searchOf(query)

/** Counts the tasks that the cancellation is done with: they have ended, or go on because it was withdrawn. */
export const settledOf = ({ cancelled, ended, failed, withdrawn }: CancellationJob): number =>
  cancelled + ended + failed + withdrawn
