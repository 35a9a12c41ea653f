import { Clock, Effect, Layer, Metric, Schedule } from "effect"
import { LiveFeed } from "../../live/LiveFeed.ts"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import { ofMillis, withOffset } from "../../messaging/envelope/Timestamp.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import { Redis } from "../../services/Redis.ts"
import { defaultPrefix } from "../store/DefaultPrefix.ts"
import * as TimeToLive from "../store/TimeToLive.ts"
import * as Index from "./DeadLetterIndex.ts"
import * as Scripts from "./DeadLetterScripts.ts"
import {
  type ClaimResult,
  type DeadLetterFilter,
  DeadLetterStore,
  type PageOptions,
  UnknownCursor
} from "./DeadLetterStore.ts"
import * as Groups from "./Groups.ts"
import * as LetterRepairs from "./LetterRepairs.ts"
import * as LiveDeadLetter from "./LiveDeadLetter.ts"
import * as ReplayScripts from "./ReplayScripts.ts"
import * as Stored from "./StoredDeadLetter.ts"

export interface Options {
  /** The prefix of the Redis keys. Workers and the HTTP service must have the same prefix. Default: `svc`. */
  readonly prefix?: string | undefined
  /** The seconds that a record is kept, at most ten years. `null` or 0 means no expiry. Default: `null`. */
  readonly ttl_seconds?: number | null | undefined
  /** The maximum number of records. When it is exceeded, the oldest record is deleted. Default: 100,000. */
  readonly max_records?: number
  /** The maximum size of all records in bytes. When it is exceeded, the oldest record is deleted. Default: 1 GiB. */
  readonly max_bytes?: number
  /**
   * The seconds for which a replay reserves its record, 1 to 3,600. Default: 30. Must be longer than the broker's
   * publish timeout (10 seconds by default). A crashed replay cannot be repeated before this time has passed.
   */
  readonly replay_lease_seconds?: number
}

/** Returns the prefix of all dead-letter keys in Redis. It contains the hash tag of these keys. */
export const baseOf = (redis: Redis["Service"], prefix = defaultPrefix): string => redis.key(`{${prefix}:dlq}:`)

const indexed = Metric.counter("svc_dlq_indexed_total", {
  description: "Dead letters that entered the index",
  incremental: true
})

const idsPerScan = 500
const scansPerPage = 20

const make = Effect.fnUntraced(function* (options: Options, ttl_seconds: number | null) {
  const redis = yield* Redis
  const live = (yield* LiveFeed).dead_letters
  const base = baseOf(redis, options.prefix)
  const keys = [`${base}stats`]
  const { max_bytes = 2 ** 30, max_records = 100_000, replay_lease_seconds = 30 } = options
  const expiredBefore = (now: number) => (ttl_seconds === null ? -1 : now - ttl_seconds * 1_000)

  const limits = (now: number) => [max_records, max_bytes, expiredBefore(now)] as const

  const trim = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    redis.run(Scripts.trim, keys, [max_records, max_bytes, expiredBefore(now)])
  )
  if (ttl_seconds !== null) {
    yield* Effect.forkScoped(Effect.repeat(Effect.ignore(trim), Schedule.spaced("1 minute")))
  }

  const readRecord = Effect.fnUntraced(function* (dlqId: string) {
    const now = yield* Clock.currentTimeMillis
    const reply = yield* redis.command(
      "HMGET",
      `${base}record:${dlqId}`,
      "indexed_at",
      "content",
      ...Scripts.summaryFields
    )
    const [indexedAt, content, ...values] = Index.items(reply)
    if (typeof content !== "string" || Number(indexedAt) <= expiredBefore(now)) return undefined
    return { ...Stored.summaryOf(values), ...Stored.contentOf(content) }
  })

  const list = Effect.fn("DeadLetterStore.list")(function* (filter: DeadLetterFilter, page: PageOptions) {
    const now = yield* Clock.currentTimeMillis
    const indexes = candidateIndexes(filter)
    const conditions = conditionsOf(filter)
    const found: Array<Scripts.IndexScan["found"][number]> = []
    let above = yield* upperBoundOf(page.cursor)
    let last: number | undefined
    for (let look = 0; look < scansPerPage; look++) {
      const scan = yield* redis.run(Scripts.page, keys, [
        above,
        idsPerScan,
        page.limit + 1 - found.length,
        expiredBefore(now),
        indexes.length,
        ...indexes,
        ...conditions
      ])
      yield* requireKnownCursor(page.cursor, scan.newest)
      found.push(...scan.found)
      last = scan.last
      if (last === undefined || found.length > page.limit) break
      above = `(${last}`
    }
    const items = found.slice(0, page.limit)
    const next = found.length > page.limit ? items.at(-1)?.seq : last
    return {
      items: items
        .filter(({ values }) => page.excludeClaimed !== true || Stored.claimedUntil(values) <= now)
        .map(({ values }) => Stored.summaryOf(values)),
      next_cursor: next === undefined ? null : String(next)
    }
  })

  return DeadLetterStore.of({
    record: Effect.fn("DeadLetterStore.record")(function* (record) {
      const now = yield* Clock.currentTimeMillis
      const isNew = yield* redis.run(Scripts.record, keys, [
        record.dlq_id,
        now,
        ...limits(now),
        withOffset(ofMillis(now)),
        ...Stored.hashFieldsOf(record)
      ])
      if (isNew) yield* Metric.update(indexed, 1)
      if (isNew && live.isFollowed) live.add("added", () => LiveDeadLetter.describe(record))
      return isNew
    }),
    get: Effect.fn("DeadLetterStore.get")(readRecord),
    list,
    queues: Effect.gen(function* () {
      if (ttl_seconds !== null) yield* trim
      const found = (yield* redis.run(Scripts.queues, keys, [])).map(
        ([name, count, lastAt, open, unknown, replayed, replaced, archived]) => ({
          queue_name: String(name),
          indexed_count: Number(count),
          open_count: Number(open),
          unknown_count: Number(unknown),
          replayed_count: Number(replayed),
          replaced_count: Number(replaced),
          archived_count: Number(archived),
          last_indexed_at: typeof lastAt === "string" ? lastAt : null
        })
      )
      return found.toSorted((one, other) => (one.queue_name < other.queue_name ? -1 : 1))
    }).pipe(Effect.withSpan("DeadLetterStore.queues")),
    groups: Effect.fn("DeadLetterStore.groups")(function* ({ cursor, limit }) {
      if (ttl_seconds !== null) yield* trim
      const above = yield* upperBoundOf(cursor)
      const { found, newest, trend } = yield* Groups.find({ redis, base }, above, limit + 1)
      yield* requireKnownCursor(cursor, newest)
      const shown = found.slice(0, limit)
      return {
        items: yield* Effect.forEach(shown, (group) => Groups.describe({ redis, base }, group, trend)),
        next_cursor: found.length > limit ? String(shown.at(-1)?.seq) : null
      }
    }),
    totals: trim.pipe(
      Effect.map(([records = 0, bytes = 0, indexed_total = 0, evicted_total = 0, expired_total = 0, archived = 0]) => ({
        records,
        archived,
        bytes,
        indexed_total,
        evicted_total,
        expired_total
      })),
      Effect.withSpan("DeadLetterStore.totals")
    ),
    claim: Effect.fnUntraced(function* ({ dlqId, force, job, state = "", token }) {
      const now = yield* Clock.currentTimeMillis
      const until = now + replay_lease_seconds * 1_000
      const by = job === undefined ? `request ${token}` : `job ${job.id}`
      const owner = [job?.id ?? "", job?.position ?? ""]
      const args = [dlqId, token, by, ...owner, force ? 1 : 0, now, until, expiredBefore(now), state]
      const [outcome, at, who] = yield* redis.run(ReplayScripts.claim, keys, args)
      if (outcome === "in_progress") return { _tag: "InProgress", until: Number(at) } satisfies ClaimResult
      if (outcome === "begun") return { _tag: "Begun", isAccountedFor: at === "replayed" } satisfies ClaimResult
      if (outcome === "replayed") return { _tag: "Replayed", at: String(at) } satisfies ClaimResult
      if (outcome === "unknown") return { _tag: "Unknown", at: String(at), by: String(who) } satisfies ClaimResult
      if (outcome === "archived") return { _tag: "Archived", at: String(at) } satisfies ClaimResult
      if (outcome === "replaced") return { _tag: "Replaced", by: String(at) } satisfies ClaimResult
      if (outcome === "changed") return { _tag: "Changed", state: String(at) } satisfies ClaimResult
      const record = outcome === "claimed" ? yield* readRecord(dlqId) : undefined
      return record === undefined
        ? ({ _tag: "Absent" } satisfies ClaimResult)
        : ({ _tag: "Claimed", record } satisfies ClaimResult)
    }),
    begin: Effect.fnUntraced(function* ({ dlqId, job, token }) {
      const now = yield* Clock.currentTimeMillis
      const until = now + replay_lease_seconds * 1_000
      const at = withOffset(ofMillis(now))
      return yield* redis.run(ReplayScripts.begin, keys, [dlqId, token, now, until, at, job?.id ?? ""])
    }),
    settle: Effect.fnUntraced(function* ({ dlqId, job, token }, settlement) {
      const now = yield* Clock.currentTimeMillis
      const [at, queue] = settlement._tag === "replayed" ? [settlement.at, settlement.queue] : ["", ""]
      const args = [dlqId, token, settlement._tag, at, queue, job?.id ?? "", now, job?.step ?? ""]
      return yield* redis.run(ReplayScripts.settle, keys, args)
    }),
    ...LetterRepairs.make({ redis, base, limits })
  })
})

const settingsOf = Effect.fnUntraced(function* (options: Options) {
  const issues = new ValidationIssues()
  if (options.prefix !== undefined && !/^[^{}]+$/.test(options.prefix)) {
    issues.addMistake("prefix", "must not be empty or contain braces, which would change the hash tag of the keys")
  }
  const ttl_seconds = TimeToLive.normalize(options.ttl_seconds ?? null, issues)
  issues.checkInteger("max_records", options.max_records, 1, 100_000_000)
  issues.checkInteger("max_bytes", options.max_bytes, 1, 2 ** 50)
  issues.checkInteger("replay_lease_seconds", options.replay_lease_seconds, 1, 3_600)
  if (issues.mistakes.length > 0) return yield* SettingsError.of("RedisDLQStore", issues.mistakes)
  return ttl_seconds
})

/** A `DeadLetterStore` in Redis, which all processes with the same prefix share. */
export const layer = (options: Options = {}): Layer.Layer<DeadLetterStore, SettingsError, Redis> =>
  Layer.effect(
    DeadLetterStore,
    Effect.flatMap(settingsOf(options), (ttl_seconds) => make(options, ttl_seconds))
  )

/** A cursor is the sequence number of the last record on a page. It stays valid after that record is deleted. */
const upperBoundOf = (cursor: string | undefined): Effect.Effect<string, UnknownCursor> => {
  if (cursor === undefined) return Effect.succeed("+inf")
  return /^[1-9]\d{0,14}$/.test(cursor) ? Effect.succeed(`(${cursor}`) : Effect.fail(new UnknownCursor({ cursor }))
}

const requireKnownCursor = (cursor: string | undefined, newest: number): Effect.Effect<void, UnknownCursor> =>
  cursor !== undefined && Number(cursor) > newest ? Effect.fail(new UnknownCursor({ cursor })) : Effect.void

/** Archived records are in these sorted sets only. */
const archivedIndexes = (queue: string | undefined): ReadonlyArray<string> => [
  Index.indexName("state", "archived"),
  ...(queue === undefined ? [] : [Index.indexName("queue_state", `archived:${queue}`)])
]

const candidateIndexes = ({
  exception_type,
  queue_name,
  reason,
  state,
  ...rest
}: DeadLetterFilter): ReadonlyArray<string> => {
  if (state === "archived") return archivedIndexes(queue_name)
  const single = Object.entries({ exception_type, queue_name, reason, ...rest }).flatMap(([field, value]) =>
    value === undefined ? [] : [Index.indexName(field, value)]
  )
  const ofState = state === undefined ? [] : [Index.indexName("state", state)]
  const both = state && queue_name !== undefined ? [Index.indexName("queue_state", `${state}:${queue_name}`)] : []
  const group =
    state === "dead_lettered" && queue_name !== undefined && reason !== undefined && exception_type !== undefined
      ? [Index.indexName("group", Stored.groupName(queue_name, reason, exception_type))]
      : []
  return ["by:all", ...single, ...ofState, ...both, ...group]
}

const conditionsOf = (filter: DeadLetterFilter): ReadonlyArray<string | number> =>
  Object.entries(filter).flatMap(([field, value]) =>
    value === undefined ? [] : [field, value ?? "", value === null ? 0 : 1]
  )
