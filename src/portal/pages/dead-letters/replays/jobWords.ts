import type { ReplayJob, ReplayStep } from "../../../api/TaskTypes.ts"
import { countedText } from "../../../shared/words/format.ts"
import type { Meaning } from "../../../shared/words/StatusWord.tsx"

/** What is proved of all steps. Jobs without a plan prove nothing by themselves. */
export const provedOf = ({ steps }: ReplayJob) =>
  steps === undefined
    ? undefined
    : {
        handled: steps.reduce((sum, { handled }) => sum + handled, 0),
        failed_again: steps.reduce((sum, { failed_again }) => sum + failed_again, 0),
        open: steps.reduce((sum, { open }) => sum + open, 0)
      }

/** A finished job is a success only where everything was handled. */
export const meaningOfJob = (job: ReplayJob): Meaning => {
  if (job.state === "running") return "working"
  if (job.state === "paused") return "warning"
  if (job.state === "cancelled") return "idle"
  const proved = provedOf(job)
  if (proved === undefined || proved.open > 0) return "waiting"
  return proved.failed_again > 0 || job.failed > 0 ? "bad" : "good"
}

export const selectionText = ({ filter, total }: ReplayJob): string =>
  filter === null
    ? countedText(total, "letter by its id", "letters by their ids")
    : Object.entries(filter)
        .filter(([name]) => name !== "state")
        .map(([name, value]) => `${name}: ${value ?? "none"}`)
        .join(", ")

/** Letters that were not published were not handled either, whatever became of the others. */
export const wordsOfStep = ({ not_replayed, replayed, verdict }: ReplayStep): readonly [Meaning, string] => {
  if (verdict !== "handled" || not_replayed === 0) return stepWords[verdict]
  return replayed === 0 ? ["bad", "none published"] : ["warning", "handled, but some were not published"]
}

const stepWords: Readonly<Record<ReplayStep["verdict"], readonly [Meaning, string]>> = {
  not_begun: ["idle", "not begun"],
  publishing: ["working", "publishing"],
  following: ["waiting", "waiting for the outcome"],
  handled: ["good", "all handled"],
  failed_again: ["bad", "failed again"],
  open: ["warning", "still open"]
}
