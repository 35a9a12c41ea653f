import { Effect, Layer, Metric, Option, Stream } from "effect"
import { fitsShortString, isWellFormed } from "../../messaging/envelope/Envelope.ts"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import { isAggregationStatus, type PublishedStatus, parentTaskId } from "../../messaging/envelope/StatusEvent.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import * as LogThrottle from "../../services/LogThrottle.ts"
import { Redis, type Reply } from "../../services/Redis.ts"
import { defaultPrefix } from "./DefaultPrefix.ts"
import * as EventId from "./EventId.ts"
import { indexChild, readHistory, storeStatus } from "./StatusScripts.ts"
import { StatusStore, type StoredStatus } from "./StatusStore.ts"
import * as TimeToLive from "./TimeToLive.ts"

/** Names with underscores are the specification's. */
export interface StatusStoreParameters {
  /** Prefix of every key of the store, after the deployment's prefix. Must not contain braces. Default: `svc`. */
  readonly prefix?: string | undefined
  /**
   * Seconds after its last event when a task's history is deleted; `null` or 0 keeps it forever. At most ten years.
   * Default: 86400.
   */
  readonly ttl_seconds?: number | null | undefined
  /** Events kept per task: 1 to 100,000. Default: 50. */
  readonly history_maxlen?: number | undefined
  /**
   * Number of a task's latest event ids that are remembered to recognize duplicates. It must exceed what can be
   * delivered again for one task: events published since the offset from which a hub resumes (one second, or 1,000
   * events), events that a hub holds unacknowledged, and on a stream the lag between two hub replicas. From
   * `history_maxlen` to 1,000,000. Default: 10,000, or `history_maxlen` if that is greater.
   */
  readonly dedup_maxlen?: number
  /**
   * Children indexed per parent task: the first ones, 1 to 1,000,000. Later children are left out with a warning, and
   * counted by `svc_status_children_left_out_total`. Default: 10,000.
   */
  readonly children_maxlen?: number
}

const defaultDedup = 10_000

const validate = (parameters: StatusStoreParameters, issues: ValidationIssues) => {
  const { children_maxlen = 10_000, history_maxlen = 50, prefix = defaultPrefix, ttl_seconds = 86_400 } = parameters
  const { dedup_maxlen = Math.max(defaultDedup, history_maxlen) } = parameters
  if (prefix.trim() === "") issues.addMistake("prefix", "must not be blank")
  // the task id is the hash tag of the key, so braces in the prefix would break it
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
 * Creates a store in Redis 6 or later. `store` is idempotent per event id.
 *
 * Each event is written by one script whose keys share a slot, so the store works on a Redis Cluster. The index of
 * children lies in the parent's slot and is written in the same pipeline, also for duplicates: after a crash between
 * the two writes, the redelivered event completes the index.
 *
 * Redis must run with `maxmemory-policy noeviction`; otherwise it can evict events that were already acknowledged to
 * the broker.
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
          `Task ${parent} has more than ${children_maxlen} children: child ${child} is not indexed${suppressed}. Raise children_maxlen.`
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
        // members of equal score are sorted by their bytes
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

/**
 * A brace in a task id would end the hash tag or leave it empty, and the keys of the task would lie in different slots.
 */
const escaped = (taskId: string): string => taskId.replace(/[%{}]/g, encodeURIComponent)

/** Redis keeps a sorted set in its compact encoding while members have at most 64 bytes. */
const maxMemberBytes = 64

const idMember = (eventId: string): string =>
  Buffer.byteLength(eventId) <= maxMemberBytes && isWellFormed(eventId) ? eventId : EventId.hashOf(eventId)

/** An entry without its sequence: a JSON header and the event, one line each. */
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

/** Returns `undefined` for an entry that this library did not write. */
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

/** Maps invalid numbers into the range that Redis accepts. */
const toWholeNumber = (value: number): number => Math.min(Math.max(Math.trunc(value) || 0, 0), Number.MAX_SAFE_INTEGER)
