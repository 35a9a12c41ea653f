import { Array as Arr, Effect, Schema } from "effect"
import { DeadLetterFilter, DeadLetterStore } from "./DeadLetterStore.ts"

/** The records to repair: a list of ids, or the records that match a filter when the request arrives. */
export const Selection = Schema.Union([
  Schema.Struct({ ids: Schema.Array(Schema.String) }),
  Schema.Struct({ filter: DeadLetterFilter })
])
export type Selection = typeof Selection.Type

/** The records to replay: also those of tasks that were not replayed when the request arrives. */
export type ReplaySelection = Selection | { readonly task_ids: ReadonlyArray<string> }

const idsPerPage = 1_000
const tasksAtOnce = 16

/** The state that the records of a filter have. Default: that of records that were not replayed. */
export const stateOf = ({ state = "dead_lettered" }: DeadLetterFilter) => state

/** Reads the ids of all records that are selected now, at most `maxIds`. */
export const idsOf = Effect.fnUntraced(function* (selection: ReplaySelection, maxIds: number) {
  if ("ids" in selection) return { ids: [...new Set(selection.ids)], truncated: false }
  if ("filter" in selection) return yield* matchingIds(selection.filter, maxIds)
  const ids: Array<string> = []
  for (const chunk of Arr.chunksOf(new Set(selection.task_ids), tasksAtOnce)) {
    const room = maxIds - ids.length
    const found = yield* Effect.forEach(chunk, (task_id) => matchingIds({ task_id }, room), {
      concurrency: "unbounded"
    })
    ids.push(...found.flatMap((ofTask) => ofTask.ids))
    if (ids.length > maxIds || found.some(({ truncated }) => truncated))
      return { ids: ids.slice(0, maxIds), truncated: true }
  }
  return { ids, truncated: false }
})

/** Records that are indexed later do not appear on later pages. */
const matchingIds = Effect.fnUntraced(function* (given: DeadLetterFilter, maxIds: number) {
  const store = yield* DeadLetterStore
  const filter = { ...given, state: stateOf(given) }
  const unclaimed = filter.state === "replay_unknown"
  const ids: Array<string> = []
  let cursor: string | null | undefined
  while (cursor !== null && ids.length <= maxIds) {
    const limit = Math.min(idsPerPage, maxIds + 1 - ids.length)
    const page = yield* Effect.catchTag(
      store.list(filter, { limit, excludeClaimed: unclaimed, ...(cursor !== undefined && { cursor }) }),
      "UnknownCursor",
      Effect.die
    )
    ids.push(...page.items.map(({ dlq_id }) => dlq_id))
    cursor = page.next_cursor
  }
  return { ids: ids.slice(0, maxIds), truncated: ids.length > maxIds }
})
