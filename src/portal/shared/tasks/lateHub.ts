import type { HubState } from "../../api/TaskTypes.ts"
import { durationText } from "../words/format.ts"

const lateMs = 60_000

/** `undefined` while statuses are stored in time. */
export const sentenceOfLateHub = ({ lag_ms }: HubState): string | undefined => {
  if (lag_ms === null) return "The hub of this server has not started: it stores no new statuses of tasks yet"
  if (lag_ms < lateMs) return undefined
  return `Statuses are stored ${durationText(lag_ms)} late: histories, lists and graphs of tasks are behind by so much`
}
