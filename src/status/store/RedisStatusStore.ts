import { Effect, Layer, Metric, Option, Stream } from "effect"
import { fitsShortString, isWellFormed } from "../../messaging/envelope/Envelope.ts"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import { isAggregationStatus, type PublishedStatus, parentTaskId } from "../../messaging/envelope/StatusEvent.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import * as LogThrottle from "../../services/LogThrottle.ts"
import { Redis, type RedisError, type Reply } from "../../services/Redis.ts"
import { defaultPrefix } from "./DefaultPrefix.ts"
import * as EventId from "./EventId.ts"
import { indexChild, readHistory, storeStatus } from "./StatusScripts.ts"
import { StatusStore, type StoredStatus } from "./StatusStore.ts"
import * as TimeToLive from "./TimeToLive.ts"

/** Options of the store. Names with underscores come from the specification. */
export interface StatusStoreParameters {
  /** The prefix of every key, after the deployment's prefix. It must not contain braces. Default: `svc`. */
  readonly prefix?: string | undefined
  /** The seconds to keep a history after its last event, at most ten years. `null` or 0: for ever. Default: 86400. */
  readonly ttl_seconds?: number | null | undefined
  /** The number of events that are kept per task: 1 to 100,000. Default: 50. */
  readonly history_maxlen?: number | undefined
  /**
   * The number of event ids that the store keeps per task to recognise duplicates. Minimum: `history_maxlen`. Maximum:
   * 1,000,000. Default: 10,000, or `history_maxlen` if that is greater. A restarted hub reads again the events of the
   * last second, or more if several hubs lag behind each other. The number must exceed these events of one task.
   */
  readonly dedup_maxlen?: number
  /**
   * The maximum number of indexed children per parent task, 1 to 1,000,000. Default: 10,000. For further children, the
   * store logs a warning and increments `svc_status_children_left_out_total`.
   */
  readonly children_maxlen?: number
}

const defaultDedup = 10_000

const validate = (parameters: StatusStoreParameters, issues: ValidationIssues) => {
  const { children_maxlen = 10_000, history_maxlen = 50, prefix = defaultPrefix, ttl_seconds = 86_400 } = parameters
  const { dedup_maxlen = Math.max(defaultDedup, history_maxlen) } = parameters
  if (prefix.trim() === "") issues.addMistake("prefix", "must not be blank")
  // Redis Cluster hashes only the text in the first braces of a key. That text must be the task id.
  else if (/[{}]/.test(prefix))
    issues.addMistake("prefix", "must not contain { or }, which mark the hash slot in a Redis Cluster")
  const ttl = TimeToLive.normalize(ttl_seconds, issues)
  issues.checkInteger("history_maxlen", history_maxlen, 1, 100_000)
  issues.checkInteger("children_maxlen", children_maxlen, 1, 1_000_000)
  issues.checkInteger("dedup_maxlen", dedup_maxlen, 1, 1_000_000)
  if (dedup_maxlen < history_maxlen) {
    issues.addMistake("dedup_maxlen", `must be at least history_maxlen, which is ${history_maxlen}`)
  }
  return { prefix, seconds: ttl ?? "", history_maxlen, dedup_maxlen, children_maxlen }
}

/**
 * Creates a store in Redis 6 or later. If an event id is stored twice, the store keeps one copy.
 *
 * One script writes each event. Its keys are in one hash slot, so the store works on a Redis Cluster. A second script
 * adds the task to the index of children, which is in the parent's slot. If the process crashes between the scripts,
 * the redelivered event completes the index.
 *
 * Redis must run with `maxmemory-policy noeviction`. Otherwise Redis may delete events that the hub has acknowledged.
 */
export const make = Effect.fnUntraced(function* (
  parameters: StatusStoreParameters = {}
): Effect.fn.Return<StatusStore["Service"], SettingsError, Redis> {
  const issues = new ValidationIssues()
  const { children_maxlen, dedup_maxlen, history_maxlen, prefix, seconds } = validate(parameters, issues)
  if (issues.mistakes.length > 0) return yield* SettingsError.of("RedisStatusStore", issues.mistakes)
  const redis = yield* Redis
  const logThrottled = yield* LogThrottle.makePerMinute

  const keyOf = (kind: string, taskId: string) => redis.key(`${prefix}:${kind}:{${escaped(taskId)}}`)
  const keysOf = (taskId: string) => [keyOf("history", taskId), keyOf("ids", taskId)]

  const warnChildLeftOut = (child: string, parent: string) =>
    Effect.andThen(
      Metric.update(childrenLeftOut, 1),
      logThrottled((suppressed) =>
        Effect.logWarning(
          `Task ${parent} has more than ${children_maxlen} children, so its list of children does not contain ${child}${suppressed}. Raise children_maxlen.`
        )
      )
    )

  const indexUnderParent = (child: string, parent: string) =>
    Effect.flatMap(redis.run(indexChild, [keyOf("children", parent)], [child, seconds, children_maxlen]), (outcome) =>
      outcome === "full" ? warnChildLeftOut(child, parent) : Effect.void
    )

  return StatusStore.of({
    store: (event) => {
      const { task_id: taskId } = event
      const parent = parentTaskId(event)
      const stored = redis.run(storeStatus, keysOf(taskId), [
        idMember(event.event_id),
        encodeEntry(event),
        keyOf("live", taskId),
        seconds,
        history_maxlen,
        dedup_maxlen
      ])
      return parent === undefined || parent === taskId || !fitsShortString(parent)
        ? stored
        : Effect.map(
            Effect.all([indexUnderParent(taskId, parent), stored], { concurrency: 2 }),
            ([, outcome]) => outcome
          )
    },

    latest: (taskId) =>
      Effect.map(redis.command("LRANGE", keyOf("history", taskId), -1, -1), (reply) => decodeEntries(reply)[0]),

    history: (taskId, { after = 0, atMost, limit } = {}) =>
      Effect.map(
        redis.run(readHistory, keysOf(taskId), [
          toWholeNumber(after),
          limit === undefined ? "" : toWholeNumber(limit),
          ...(atMost === undefined ? ["", ""] : [toWholeNumber(atMost.events), toWholeNumber(atMost.bytes)])
        ]),
        ({ entries, newest, oldest }) => ({ events: decodeEntries(entries), newest, oldest })
      ),

    childTaskIds: (parentTaskId, { limit = children_maxlen } = {}) =>
      Effect.map(
        // All members have the same score, so Redis returns the children sorted by their bytes.
        redis.command(
          "ZRANGEBYSCORE",
          keyOf("children", parentTaskId),
          "-inf",
          "+inf",
          "LIMIT",
          0,
          toWholeNumber(limit)
        ),
        (reply) => (Array.isArray(reply) ? reply.map(String) : [])
      ),

    live: (taskId) =>
      Effect.map(
        redis.subscribe(keyOf("live", taskId)),
        Stream.map((message) => Option.fromUndefinedOr(decodeEntry(message)))
      )
  })
})

export const layer = (parameters?: StatusStoreParameters): Layer.Layer<StatusStore, SettingsError, Redis> =>
  Layer.effect(StatusStore, make(parameters))

const childrenLeftOut = Metric.counter("svc_status_children_left_out_total", {
  description: "Events of children that were not indexed because the index of their parent was full",
  incremental: true
})

/** A page of the tasks that have statuses. */
export interface ScannedTasks {
  readonly taskIds: ReadonlyArray<string>
  /** `undefined` after the last page. */
  readonly next: string | undefined
}

/**
 * Returns some of the tasks that have statuses, and where to continue. Tasks that have statuses during the whole scan
 * are returned at least once. In a Redis Cluster, only the tasks of one node are found.
 */
export const scan = Effect.fnUntraced(function* (
  redis: Redis["Service"],
  { prefix = defaultPrefix }: Pick<StatusStoreParameters, "prefix">,
  cursor = "0"
): Effect.fn.Return<ScannedTasks, RedisError> {
  const start = redis.key(`${prefix}:history:{`)
  const pattern = `${start.replace(/[*?[\]\\]/g, "\\$&")}*`
  const reply = yield* redis.command("SCAN", cursor, "MATCH", pattern, "COUNT", scannedAtOnce)
  const [next, keys] = Array.isArray(reply) ? reply : []
  const found = Array.isArray(keys) ? keys.map(String) : []
  return {
    taskIds: found.map((key) => unescaped(key.slice(start.length, -1))),
    next: next === "0" || next === undefined ? undefined : String(next)
  }
})

const scannedAtOnce = 500

const unescaped = (text: string): string => text.replace(/%(25|7B|7D)/g, decodeURIComponent)

/** Escapes braces in a task id. Otherwise the keys of a task could be in different hash slots. */
const escaped = (taskId: string): string => taskId.replace(/[%{}]/g, encodeURIComponent)

/** Redis stores a sorted set in a compact form as long as no member is longer than 64 bytes. */
const maxMemberBytes = 64

const idMember = (eventId: string): string =>
  Buffer.byteLength(eventId) <= maxMemberBytes && isWellFormed(eventId) ? eventId : EventId.hashOf(eventId)

/** Encodes an event as two lines: a JSON header and the JSON event. The script prepends the sequence number. */
const encodeEntry = (event: PublishedStatus): string => {
  const { event_id, status, timestamp } = event
  const header = isAggregationStatus(event)
    ? [event_id, status, timestamp, aggregationRole]
    : [event_id, status, timestamp]
  return `${JSON.stringify(header)}\n${JSON.stringify(event)}`
}

const aggregationRole = "aggregation"

const decodeEntries = (reply: Reply): ReadonlyArray<StoredStatus> =>
  Array.isArray(reply) ? reply.map(String).flatMap((entry) => decodeEntry(entry) ?? []) : []

const decodeEntry = (entry: string): StoredStatus | undefined => {
  const sequenceEnd = entry.indexOf("\n")
  const headerEnd = entry.indexOf("\n", sequenceEnd + 1)
  if (sequenceEnd < 1 || headerEnd < 0) return undefined
  const header = decodeHeader(entry.slice(sequenceEnd + 1, headerEnd))
  if (header === undefined) return undefined
  return { sequence: Number(entry.slice(0, sequenceEnd)), ...header, json: entry.slice(headerEnd + 1) }
}

/** Returns `undefined` for an entry that was not written by this library. */
const decodeHeader = (line: string): Omit<StoredStatus, "sequence" | "json"> | undefined => {
  try {
    const header: unknown = JSON.parse(line)
    if (!Array.isArray(header)) return undefined
    const [eventId, status, timestamp, role]: ReadonlyArray<unknown> = header
    if (typeof eventId !== "string" || typeof status !== "string") return undefined
    return {
      eventId,
      status,
      ...(typeof timestamp === "string" && { timestamp }),
      ...(role === aggregationRole && { ofAggregation: true })
    }
  } catch {
    return undefined
  }
}

/** Converts a number to an integer that Redis accepts. */
const toWholeNumber = (value: number): number => Math.min(Math.max(Math.trunc(value) || 0, 0), Number.MAX_SAFE_INTEGER)
