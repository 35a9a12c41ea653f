import type { HubState } from "../../api/TaskTypes.ts"
import { durationText } from "../words/format.ts"

const lateMs = 60_000

/** `undefined` while statuses are stored in time. */
export const sentenceOfLateHub = ({ lag_ms }: HubState): string | undefined => {
  if (lag_ms === null) return "The hub has not started, so no status of a task is stored yet"
  if (lag_ms < lateMs) return undefined
  return `Statuses are stored ${durationText(lag_ms)} late: histories, lists and graphs of tasks are behind by so much`
}
