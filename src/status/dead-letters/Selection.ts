import { Effect, Schema } from "effect"
import { DeadLetterFilter, DeadLetterStore } from "./DeadLetterStore.ts"

/** The records to repair: a list of ids, or the records that match a filter when the request arrives. */
export const Selection = Schema.Union([
  Schema.Struct({ ids: Schema.Array(Schema.String) }),
  Schema.Struct({ filter: DeadLetterFilter })
])
export type Selection = typeof Selection.Type

const idsPerPage = 1_000

/** The state that the records of a filter have. Default: that of records that were not replayed. */
export const stateOf = ({ state = "dead_lettered" }: DeadLetterFilter) => state

/** Reads the ids of all records that match now. Records that are indexed later do not appear on later pages. */
export const idsOf = Effect.fnUntraced(function* (selection: Selection, maxIds: number) {
  if ("ids" in selection) return { ids: [...new Set(selection.ids)], truncated: false }
  const store = yield* DeadLetterStore
  const filter = { ...selection.filter, state: stateOf(selection.filter) }
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
