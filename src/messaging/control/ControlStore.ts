import { randomUUID } from "node:crypto"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { Redis, type RedisError, type Reply } from "../../services/Redis.ts"
import { answerCancel, cancelStateOf, requestCancel, withdrawCancel } from "./CancelScripts.ts"
import { CancelRequest, type HandlerReport, Pause, QueueGroup, Resumed, WorkerReport } from "./ControlRecords.ts"
import * as HandlerSchemas from "./HandlerSchemas.ts"

/** A report is dropped this long after the last one. A worker reports once a second. */
export const reportTtlMs = 10_000

/** A queue without workers is listed for this time, unless a topology names it or it is paused. */
const groupTtlMs = 7 * 86_400_000

/** An open request lasts longer than the longest delay of a retry, which is 48 days. */
const cancelTtlMs = 50 * 86_400_000
/** An answered request still applies to a redelivery of the message, and then ends. */
const answeredTtlMs = 3_600_000
/** The maximum number of requests, because every worker keeps the ids of all. */
export const maxCancels = 50_000

/** The end of a pause is kept for so long. */
const resumedTtlMs = 600_000

const ratesTtlSeconds = 2 * 3_600
const minuteMs = 60_000
const hourMs = 3_600_000

/** The maximum number of due times per queue. The latest ones are dropped first. */
const maxDueTimes = 10_000

export interface CancelInput {
  readonly taskId: string
  readonly reason: string
  readonly by: string | null
  /** The id of the request, of letters and digits, for a caller that must find its own request again. Default: random. */
  readonly cancelId?: string | undefined
}

export interface Answer {
  readonly state: "interrupting" | "cancelled" | "ended"
  readonly worker: string
}

/** The messages of one minute. `ready` and `passed` are `null` if the queue was not inspected in that minute. */
export interface MinuteOfQueue {
  readonly minute: number
  readonly done: number
  /** The messages that were ready at the latest inspection in the minute. */
  readonly ready: number | null
  /** The messages that were ready or in work at this inspection, and those that were done in the minute until then. */
  readonly passed: number | null
}

/** Pauses, requests to cancel, reports of workers and of their handlers, and numbers of queues, which workers and operators share. */
export class ControlStore extends Context.Service<
  ControlStore,
  {
    readonly pauses: Effect.Effect<ReadonlyArray<Pause>, RedisError>
    /** Replaces an earlier pause of the queue. Returns the new one. */
    readonly pause: (pause: Omit<Pause, "paused_at">) => Effect.Effect<Pause, RedisError>
    /** Returns the pause that has ended. `None` if the queue was not paused. */
    readonly resume: (queue: string) => Effect.Effect<Option.Option<Pause>, RedisError>
    /** The queues whose pause has ended within the last 10 minutes. */
    readonly resumed: Effect.Effect<ReadonlyArray<Resumed>, RedisError>

    /** Returns the open request of the task if there is one already. `full`: there are 50,000 requests. */
    readonly requestCancel: (input: CancelInput) => Effect.Effect<CancelRequest | "full", RedisError>
    readonly cancelOf: (taskId: string) => Effect.Effect<Option.Option<CancelRequest>, RedisError>
    /** Returns the request of each task, in the order of the ids. */
    readonly cancelsOf: (
      taskIds: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<Option.Option<CancelRequest>>, RedisError>
    /** No-op if the request was replaced or withdrawn. */
    readonly answerCancel: (request: CancelRequest, answer: Answer) => Effect.Effect<void, RedisError>
    /** With `cancelId`, withdraws only this request, and only while its state is `requested`. Returns whether it did. */
    readonly withdrawCancel: (taskId: string, cancelId?: string) => Effect.Effect<boolean, RedisError>
    /** Returns the tasks of the requests after `sequence`, at most 1,000, and the sequence to continue from. */
    readonly cancelsAfter: (
      sequence: number
    ) => Effect.Effect<{ readonly taskIds: ReadonlyArray<string>; readonly sequence: number }, RedisError>

    readonly report: (report: WorkerReport) => Effect.Effect<void, RedisError>
    readonly forget: (worker: string) => Effect.Effect<void, RedisError>
    readonly workers: Effect.Effect<ReadonlyArray<WorkerReport>, RedisError>

    readonly announce: (group: QueueGroup) => Effect.Effect<void, RedisError>
    readonly groups: Effect.Effect<ReadonlyArray<QueueGroup>, RedisError>
    /** `schemas` by their SHA-256. No-op while a worker that has started later reports the handlers of the queue. */
    readonly announceHandlers: (
      report: HandlerReport,
      schemas: ReadonlyMap<string, string>
    ) => Effect.Effect<void, RedisError>
    readonly handlersOf: (queue: string) => Effect.Effect<Option.Option<HandlerReport>, RedisError>
    /** Returns a JSON Schema by its SHA-256. */
    readonly payloadSchema: (name: string) => Effect.Effect<Option.Option<string>, RedisError>
    readonly addDone: (queue: string, count: number) => Effect.Effect<void, RedisError>
    /** Stores how many messages are ready and in work now. */
    readonly sampleMessages: (
      queue: string,
      now: { readonly ready: number; readonly inWork: number }
    ) => Effect.Effect<void, RedisError>
    readonly addDueTimes: (queue: string, dueMs: ReadonlyArray<number>) => Effect.Effect<void, RedisError>
    /** Returns the next due time of a retry of this queue, in milliseconds since 1970. */
    readonly nextDue: (queue: string) => Effect.Effect<Option.Option<number>, RedisError>
    /** Returns the last 60 minutes in which anything was counted and the one before them, oldest first. */
    readonly lastHour: (queue: string) => Effect.Effect<ReadonlyArray<MinuteOfQueue>, RedisError>
  }
>()("svc/messaging/ControlStore") {}

/** The store counts these of a queue by the minute. */
type Counted = "done" | "ready" | "passed"

const iso = (ms: number): string => new Date(ms).toISOString()

const readerOf = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownOption(Schema.fromJsonString(schema))
  return (text: string | undefined): Option.Option<S["Type"]> => (text === undefined ? Option.none() : decode(text))
}

const readPause = readerOf(Pause)
const readResumed = readerOf(Resumed)
const readCancel = readerOf(CancelRequest)
const readWorker = readerOf(WorkerReport)
const readGroup = readerOf(QueueGroup)

/** Keeps everything in Redis, in one hash slot, for all processes that share the prefix. */
export const make = Effect.fnUntraced(function* ({ prefix = "svc" }: { readonly prefix?: string | undefined } = {}) {
  const redis = yield* Redis
  const key = (name: string) => redis.key(`${prefix}:{work}:${name}`)
  const cancelKeys = [key("cancels"), key("cancel-order"), key("cancel-expiry"), key("cancel-sequence")]
  const [cancels = "", cancelOrder = "", , cancelSequence = ""] = cancelKeys
  const paused = key("paused")
  const reports = recordsOf(redis, { index: key("workers"), keyOf: (id) => key(`worker:${id}`), ttlMs: reportTtlMs })
  const groups = recordsOf(redis, { index: key("groups"), keyOf: (id) => key(`group:${id}`), ttlMs: groupTtlMs })
  const resumed = recordsOf(redis, {
    index: key("resumed"),
    keyOf: (id) => key(`resumed:${id}`),
    ttlMs: resumedTtlMs
  })
  const dueKey = (queue: string) => key(`due:${queue}`)
  const hourKey = (kind: Counted, queue: string, hour: number) => key(`${kind}:${queue}:${hour}`)

  const decodeCancel = (reply: Reply) =>
    Option.flatMap(Option.fromNullishOr(reply), (text) => readCancel(cancelStateOf(String(text)).json))

  const cancelOf = (taskId: string) => Effect.map(redis.command("HGET", cancels, taskId), decodeCancel)

  const cancelsOf = (taskIds: ReadonlyArray<string>) =>
    taskIds.length === 0
      ? Effect.succeed([])
      : Effect.map(redis.command("HMGET", cancels, ...taskIds), (reply) =>
          Array.isArray(reply) ? reply.map(decodeCancel) : []
        )

  const addInHour = (kind: Counted, queue: string, write: "HSET" | "HINCRBY", value: number, now: number) => {
    const at = hourKey(kind, queue, Math.floor(now / hourMs))
    return Effect.andThen(
      redis.command(write, at, String(Math.floor(now / minuteMs)), value),
      redis.command("EXPIRE", at, ratesTtlSeconds)
    )
  }

  const minutes = (kind: Counted, queue: string, now: number) => {
    const hour = Math.floor(now / hourMs)
    return Effect.map(
      Effect.forEach([hour - 1, hour], (one) => redis.command("HGETALL", hourKey(kind, queue, one)), {
        concurrency: 2
      }),
      (replies) => new Map(replies.flatMap(pairsOf).map(([minute, count]) => [Number(minute), Number(count)]))
    )
  }

  return ControlStore.of({
    pauses: Effect.map(redis.command("HVALS", paused), (reply) => textsOf(reply).flatMap(listed(readPause))),
    pause: Effect.fnUntraced(function* (given) {
      const pause = { ...given, paused_at: iso(yield* Clock.currentTimeMillis) }
      yield* redis.command("HSET", paused, given.queue, JSON.stringify(pause))
      return pause
    }),
    resume: Effect.fnUntraced(function* (queue) {
      const before = yield* redis.command("HGET", paused, queue)
      // First, so that nobody sees the queue neither paused nor resumed.
      if (before !== null) {
        const end: Resumed = { queue, resumed_at: iso(yield* Clock.currentTimeMillis) }
        yield* resumed.write(queue, JSON.stringify(end))
      }
      yield* redis.command("HDEL", paused, queue)
      return Option.flatMap(Option.fromNullishOr(before), (text) => readPause(String(text)))
    }),
    resumed: Effect.map(resumed.all, (texts) => texts.flatMap(listed(readResumed))),

    requestCancel: Effect.fnUntraced(function* ({ by, cancelId, reason, taskId }) {
      const now = yield* Clock.currentTimeMillis
      const request: CancelRequest = {
        cancel_id: cancelId ?? randomUUID().replaceAll("-", ""),
        task_id: taskId,
        reason,
        by,
        requested_at: iso(now),
        expires_at: iso(now + cancelTtlMs),
        state: "requested",
        worker: null,
        answered_at: null
      }
      const stored = yield* redis.run(requestCancel, cancelKeys, [
        taskId,
        encodeCancel(request),
        now,
        now + cancelTtlMs,
        maxCancels
      ])
      if (stored === undefined) return "full" as const
      return Option.getOrElse(readCancel(cancelStateOf(stored).json), () => request)
    }),
    cancelOf,
    cancelsOf,
    answerCancel: Effect.fnUntraced(function* (request, { state, worker }) {
      const now = yield* Clock.currentTimeMillis
      const expiresAt = now + (state === "interrupting" ? cancelTtlMs : answeredTtlMs)
      const answered = { ...request, state, worker, answered_at: iso(now), expires_at: iso(expiresAt) }
      yield* redis.run(answerCancel, cancelKeys, [
        request.task_id,
        request.cancel_id,
        encodeCancel(answered),
        expiresAt
      ])
    }),
    withdrawCancel: (taskId, cancelId = "") => redis.run(withdrawCancel, cancelKeys, [taskId, cancelId]),
    cancelsAfter: Effect.fnUntraced(function* (sequence) {
      const found = pairsOf(
        yield* redis.command("ZRANGEBYSCORE", cancelOrder, `(${sequence}`, "+inf", "WITHSCORES", "LIMIT", 0, 1_000)
      )
      if (found.length > 0) {
        return {
          taskIds: found.map(([taskId]) => taskId),
          sequence: Math.max(...found.map(([, score]) => Number(score)))
        }
      }
      const last = Number((yield* redis.command("GET", cancelSequence)) ?? 0)
      // A Redis that has lost its data counts from the beginning.
      return { taskIds: [], sequence: last < sequence ? 0 : sequence }
    }),

    report: (report) => reports.write(report.worker, JSON.stringify(report)),
    forget: reports.remove,
    workers: Effect.map(reports.all, (texts) => texts.flatMap(listed(readWorker))),

    announce: (group) => groups.write(group.queue, JSON.stringify(group)),
    groups: Effect.map(groups.all, (texts) => texts.flatMap(listed(readGroup))),
    ...HandlerSchemas.make(redis, key),
    addDone: Effect.fnUntraced(function* (queue, count) {
      yield* addInHour("done", queue, "HINCRBY", count, yield* Clock.currentTimeMillis)
    }),
    sampleMessages: Effect.fnUntraced(function* (queue, { inWork, ready }) {
      const now = yield* Clock.currentTimeMillis
      const doneKey = hourKey("done", queue, Math.floor(now / hourMs))
      const done = Number((yield* redis.command("HGET", doneKey, String(Math.floor(now / minuteMs)))) ?? 0)
      yield* addInHour("ready", queue, "HSET", ready, now)
      yield* addInHour("passed", queue, "HSET", ready + inWork + done, now)
    }),
    addDueTimes: Effect.fnUntraced(function* (queue, dueMs) {
      const seconds = [...new Set(dueMs.map((due) => Math.ceil(due / 1_000)))]
      if (seconds.length === 0) return
      const now = yield* Clock.currentTimeMillis
      yield* redis.command("ZREMRANGEBYSCORE", dueKey(queue), "-inf", Math.floor(now / 1_000) - 1)
      const kept = Number(yield* redis.command("ZCARD", dueKey(queue)))
      const added = seconds.toSorted((one, other) => one - other).slice(0, Math.max(0, maxDueTimes - kept))
      if (added.length === 0) return
      yield* redis.command("ZADD", dueKey(queue), ...added.flatMap((second) => [second, String(second)]))
      yield* redis.command("EXPIRE", dueKey(queue), Math.max(1, Math.max(...added) - Math.floor(now / 1_000)) + 60)
    }),
    nextDue: Effect.fnUntraced(function* (queue) {
      const now = yield* Clock.currentTimeMillis
      const [first] = textsOf(
        yield* redis.command("ZRANGEBYSCORE", dueKey(queue), Math.floor(now / 1_000), "+inf", "LIMIT", 0, 1)
      )
      return first === undefined ? Option.none() : Option.some(Number(first) * 1_000)
    }),
    lastHour: Effect.fnUntraced(function* (queue) {
      const now = yield* Clock.currentTimeMillis
      const [done, ready, passed] = yield* Effect.all(
        [minutes("done", queue, now), minutes("ready", queue, now), minutes("passed", queue, now)],
        { concurrency: 3 }
      )
      const first = Math.floor(now / minuteMs) - 60
      return [...new Set([...done.keys(), ...ready.keys()])]
        .filter((minute) => minute >= first)
        .toSorted((one, other) => one - other)
        .map((minute) => ({
          minute,
          done: done.get(minute) ?? 0,
          ready: ready.get(minute) ?? null,
          passed: passed.get(minute) ?? null
        }))
    })
  })
})

export const layer = (options?: { readonly prefix?: string | undefined }): Layer.Layer<ControlStore, never, Redis> =>
  Layer.effect(ControlStore, make(options))

interface RecordOptions {
  /** The sorted set of the ids by the time of the last write. */
  readonly index: string
  readonly keyOf: (id: string) => string
  /** A record is dropped this long after its last write. */
  readonly ttlMs: number
}

const recordsOf = (redis: Redis["Service"], { index, keyOf, ttlMs }: RecordOptions) => ({
  write: Effect.fnUntraced(function* (id: string, text: string) {
    const now = yield* Clock.currentTimeMillis
    yield* Effect.all(
      [
        redis.command("SET", keyOf(id), text, "PX", ttlMs),
        redis.command("ZADD", index, now, id),
        redis.command("ZREMRANGEBYSCORE", index, "-inf", now - ttlMs)
      ],
      { concurrency: "unbounded", discard: true }
    )
  }),
  remove: (id: string) =>
    Effect.asVoid(Effect.andThen(redis.command("DEL", keyOf(id)), redis.command("ZREM", index, id))),
  all: Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const ids = textsOf(yield* redis.command("ZRANGEBYSCORE", index, now - ttlMs, "+inf"))
    return ids.length === 0 ? [] : textsOf(yield* redis.command("MGET", ...ids.toSorted().map(keyOf)))
  })
})

const encodeCancel = (request: CancelRequest): string =>
  `${request.state}\n${request.cancel_id}\n${JSON.stringify(request)}`

const listed =
  <A>(read: (text: string) => Option.Option<A>) =>
  (text: string): ReadonlyArray<A> =>
    Option.toArray(read(text))

const textsOf = (reply: Reply): ReadonlyArray<string> =>
  Array.isArray(reply) ? reply.filter((one) => one !== null).map(String) : []

const pairsOf = (reply: Reply): ReadonlyArray<readonly [string, string]> => {
  const texts = textsOf(reply)
  return texts.flatMap((text, at) => (at % 2 === 0 ? [[text, texts[at + 1] ?? ""] as const] : []))
}
