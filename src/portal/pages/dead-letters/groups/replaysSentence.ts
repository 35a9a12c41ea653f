import type { DeadLetterGroup } from "../../../api/TaskTypes.ts"

/** What became of earlier replays of a group: "3 of 10 failed again, 6 handled". */
export const replaysSentence = (replays: DeadLetterGroup["replays"]): string => {
  const sum = (name: "replayed" | "handled" | "failed_again") =>
    replays.reduce((total, replay) => total + replay[name], 0)
  const replayed = sum("replayed")
  if (replayed === 0) return "none"
  return `${sum("failed_again")} of ${replayed} failed again, ${sum("handled")} handled`
}
