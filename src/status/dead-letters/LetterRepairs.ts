import { Array as Arr, Clock, Effect } from "effect"
import { ofMillis, withOffset } from "../../messaging/envelope/Timestamp.ts"
import type { DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import type { Redis } from "../../services/Redis.ts"
import * as Index from "./DeadLetterIndex.ts"
import type { DeadLetterStore, RepairResult } from "./DeadLetterStore.ts"
import * as OutcomeScripts from "./OutcomeScripts.ts"
import * as Scripts from "./RepairScripts.ts"
import * as Stored from "./StoredDeadLetter.ts"

/** How long an archived record can be taken out of the archive. */
export const archivedDays = 30

const dayMs = 86_400_000
const copiesAtMost = 10_000
const idsPerScript = 1_000

interface Settings {
  readonly redis: Redis["Service"]
  readonly base: string
  readonly limits: (now: number) => readonly [maxRecords: number, maxBytes: number, expiredBefore: number]
}

type Repairs = Pick<
  DeadLetterStore["Service"],
  "replace" | "archive" | "unarchive" | "sweepArchive" | "archivedCopies" | "follow" | "noteOutcome"
>

/** Edits and archives records, and records what became of replays. */
export const make = ({ base, limits, redis }: Settings): Repairs => {
  const keys = [`${base}stats`]
  return {
    replace: Effect.fn("DeadLetterStore.replace")(function* (dlqId: string, edited: DeadLetterRecord) {
      const now = yield* Clock.currentTimeMillis
      const [maxRecords, maxBytes, expiredBefore] = limits(now)
      const given = [dlqId, edited.dlq_id, now, textOf(now), expiredBefore, maxRecords, maxBytes]
      return resultOf(yield* redis.run(Scripts.replace, keys, [...given, ...Stored.hashFieldsOf(edited)]))
    }),
    archive: Effect.fn("DeadLetterStore.archive")(function* (dlqId, { by, reason }) {
      const now = yield* Clock.currentTimeMillis
      const until = now + archivedDays * dayMs
      const [, , expiredBefore] = limits(now)
      const args = [dlqId, now, textOf(now), until, textOf(until), expiredBefore, reason, by ?? ""]
      return resultOf(yield* redis.run(Scripts.archive, keys, args))
    }),
    unarchive: Effect.fn("DeadLetterStore.unarchive")(function* (dlqId) {
      const [, , expiredBefore] = limits(yield* Clock.currentTimeMillis)
      return resultOf(yield* redis.run(Scripts.unarchive, keys, [dlqId, expiredBefore]))
    }),
    sweepArchive: Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      return (yield* redis.run(Scripts.sweep, keys, [now])) === Scripts.sweptAtOnce
    }).pipe(Effect.withSpan("DeadLetterStore.sweepArchive")),
    archivedCopies: {
      take: (forMs) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => redis.run(Scripts.takeCopies, keys, [now, now + forMs])),
      of: (queue) =>
        Effect.map(
          redis.command("ZRANGEBYSCORE", `${base}copies:${queue}`, "-inf", "+inf", "LIMIT", 0, copiesAtMost),
          Index.texts
        ),
      settle: Effect.fnUntraced(function* (queue, { missed, removed, restMs, retryInMs }) {
        const now = yield* Clock.currentTimeMillis
        const next = now + Math.max(restMs, retryInMs)
        const settled = (ids: ReadonlyArray<string>, count: number) =>
          redis.run(Scripts.copiesGone, keys, [queue, now, next, now + restMs, count, ...ids])
        // The queue is left alone also if the walk has settled nothing.
        if (removed.length + missed.length === 0) yield* settled([], 0)
        for (const some of Arr.chunksOf(removed, idsPerScript)) yield* settled(some, some.length)
        for (const some of Arr.chunksOf(missed, idsPerScript)) yield* settled(some, 0)
      })
    },
    follow: (which) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        redis.run(OutcomeScripts.follow, keys, "id" in which ? [now, 1, which.id] : [now, which.limit])
      ),
    noteOutcome: Effect.fnUntraced(function* ({ id, replayedAt }, outcome) {
      const [kind, as] = outcome._tag === "handled" ? ["", ""] : [outcome.kind, outcome.as ?? ""]
      const now = textOf(yield* Clock.currentTimeMillis)
      return yield* redis.run(OutcomeScripts.note, keys, [id, replayedAt, outcome._tag, kind, as, now])
    })
  }
}

const textOf = (millis: number): string => withOffset(ofMillis(millis))

const resultOf = ([outcome, detail]: Scripts.Changed): RepairResult => {
  switch (outcome) {
    case "done":
      return { _tag: "Done" }
    case "in_progress":
      return { _tag: "InProgress", until: Number(detail) }
    case "archived":
      return { _tag: "Archived", at: String(detail) }
    case "replaced":
      return { _tag: "Replaced", by: String(detail) }
    case "changed":
      return { _tag: "Changed", state: String(detail) }
    default:
      return { _tag: "Absent" }
  }
}
