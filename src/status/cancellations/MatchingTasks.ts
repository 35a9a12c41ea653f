import { Clock, Effect, Option } from "effect"
import type { CancelRequest } from "../../messaging/control/ControlRecords.ts"
import { TaskCancellation } from "../queues/TaskCancellation.ts"
import { type TaskFilter, TaskIndex, type TaskPosition } from "../tasks/TaskIndex.ts"

const tasksPerPage = 1_000
const mostPages = 100
const mostMs = 20_000

/** The tasks that match a search now. */
export interface MatchingTasks {
  /** Newest first. */
  readonly ids: ReadonlyArray<string>
  /** True if more tasks match, or the search has not looked at all tasks. */
  readonly truncated: boolean
  /** The number of matching tasks that are left out, because somebody has asked to cancel them already. */
  readonly askedBefore: number
}

/**
 * Reads the tasks that match and have not ended, at most `most`. Tasks that somebody has asked to cancel already are left
 * out, so that another search with the same filter finds the next ones.
 */
export const read = Effect.fnUntraced(function* (filter: TaskFilter, most: number) {
  const [index, cancellation] = [yield* TaskIndex, yield* TaskCancellation]
  const until = (yield* Clock.currentTimeMillis) + mostMs
  const ids = new Set<string>()
  let askedBefore = 0
  let after: TaskPosition | undefined
  for (let page = 0; page < mostPages; page++) {
    const { next, tasks } = yield* index.list({ ...filter, ended: false }, { limit: tasksPerPage, after })
    const found = tasks.map(({ task_id }) => task_id)
    const requests = yield* cancellation.requestsOf(found)
    for (const [at, id] of found.entries()) {
      if (Option.exists(requests[at] ?? Option.none(), isOpen)) askedBefore++
      else if (ids.size < most) ids.add(id)
      else return { ids: [...ids], truncated: true, askedBefore } satisfies MatchingTasks
    }
    if (next === undefined) return { ids: [...ids], truncated: false, askedBefore } satisfies MatchingTasks
    if ((yield* Clock.currentTimeMillis) > until) break
    after = next
  }
  return { ids: [...ids], truncated: true, askedBefore } satisfies MatchingTasks
})

const isOpen = ({ state }: CancelRequest): boolean => state === "requested" || state === "interrupting"
