import { Array as Arr, Clock, Effect } from "effect"
import { ofMillis, withOffset } from "../../messaging/envelope/Timestamp.ts"
import type { Redis, RedisError } from "../../services/Redis.ts"
import type { DeadLetterGroup, GroupReplay } from "./DeadLetterStore.ts"
import { type FoundGroup, groups } from "./GroupScripts.ts"
import { runsOf } from "./OutcomeIndex.ts"
import * as Stored from "./StoredDeadLetter.ts"

const bucketMs = 3_600_000
const buckets = 24

interface Place {
  readonly redis: Redis["Service"]
  readonly base: string
}

/** A record of an earlier release has its stack only in its content, which is read up to this size. */
const maxContentBytes = 65_536

export const find = Effect.fnUntraced(function* ({ base, redis }: Place, above: string, limit: number) {
  const now = yield* Clock.currentTimeMillis
  const from = (Math.floor(now / bucketMs) - buckets + 1) * bucketMs
  // A time and a bound begin with the same digits, so that their texts compare as the times do.
  const bounds = Arr.makeBy(buckets + 1, (n) => new Date(from + n * bucketMs).toISOString().slice(0, 19))
  const [newest, found] = yield* redis.run(groups, [`${base}stats`], [above, limit, ...bounds])
  return { newest, found, trend: { from: withOffset(ofMillis(from)), bucket_seconds: bucketMs / 1_000 } }
})

export const describe = (
  place: Place,
  group: FoundGroup,
  trend: Omit<DeadLetterGroup["trend"], "counts">
): Effect.Effect<DeadLetterGroup, RedisError> =>
  Effect.map(
    group.stackLine === null ? storedStackLine(place, group.newestId) : Effect.succeed(group.stackLine),
    (stack_line) => ({
      ...Stored.groupOf(group.group),
      count: group.count,
      oldest_dead_lettered_at: group.oldestAt,
      newest_dead_lettered_at: group.newestAt,
      first_seen_at: earlier(group.history["first"], group.oldestAt),
      last_seen_at: later(group.history["last"], group.newestAt),
      first_version: group.history["first_version"] || null,
      last_version: group.history["last_version"] || null,
      exception_message: group.newestSummary === null ? null : Stored.shortMessageOf(group.newestSummary),
      stack_line,
      trend: { ...trend, counts: group.trend },
      replays: replaysOf(group.history)
    })
  )

const storedStackLine = Effect.fnUntraced(function* ({ base, redis }: Place, id: string) {
  const bytes = yield* redis.command("HGET", `${base}record:${id}`, "bytes")
  if (bytes === null || Number(bytes) > maxContentBytes) return null
  const content = yield* redis.command("HGET", `${base}record:${id}`, "content")
  return (typeof content === "string" && Stored.stackLineOf(Stored.contentOf(content).exception_stack)) || null
})

const earlier = (one: string | undefined, other: string) => (one !== undefined && one < other ? one : other)

const later = (one: string | undefined, other: string) => (one !== undefined && one > other ? one : other)

const replaysOf = (history: FoundGroup["history"]): ReadonlyArray<GroupReplay> =>
  runsOf(history["runs"])
    .toReversed()
    .map((run) => ({
      replay_id: run === "single" ? null : run,
      last_replayed_at: history[`${run}:at`] ?? "",
      replayed: Number(history[`${run}:replayed`] ?? 0),
      handled: Number(history[`${run}:handled`] ?? 0),
      failed_again: Number(history[`${run}:failed_again`] ?? 0)
    }))
