import { Effect, Layer, Metric, Option, Stream } from "effect"
import { fitsShortString, isWellFormed } from "../../messaging/envelope/Envelope.ts"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import { isAggregationStatus, type PublishedStatus, parentTaskId } from "../../messaging/envelope/StatusEvent.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import { Redis, type Reply } from "../../services/Redis.ts"
import { defaultPrefix } from "./DefaultPrefix.ts"
import * as EventId from "./EventId.ts"
import * as LogThrottle from "./LogThrottle.ts"
import { indexChild, readHistory, storeStatus } from "./StatusScripts.ts"
import { StatusStore, type StoredStatus } from "./StatusStore.ts"
import * as TimeToLive from "./TimeToLive.ts"

/** By the specification's names, and two of our own. */
export interface StatusStoreParameters {
  /** Of all its keys, behind that of the deployment; without braces. Default: `svc`. */
  readonly prefix?: string | undefined
  /** A task is forgotten so long after its last event; `null` or 0: never. At most ten years. Default: 86400. */
  readonly ttl_seconds?: number | null | undefined
  /** How many events of a task are kept: 1 to 100,000. Default: 50. */
  readonly history_maxlen?: number | undefined
  /**
   * An event is known again while fewer than so many others of its task were stored since. It must exceed what can come
   * again of one task: what was published since the offset that a hub resumes from (a second, or 1,000 events), what a
   * hub holds unacknowledged, and on a stream what one replica of it is behind another. From `history_maxlen` to
   * 1,000,000; default: 10,000, or `history_maxlen` where that is more.
   */
  readonly dedup_maxlen?: number
  /**
   * How many children of a task are indexed: the first so many, 1 to 1,000,000. Those that come later are left out, with
   * a warning and the counter `svc_status_children_left_out_total`. Default: 10,000.
   */
  readonly children_maxlen?: number
}

const defaultDedup = 10_000

const validate = (parameters: StatusStoreParameters, findings: ValidationIssues) => {
  const { children_maxlen = 10_000, history_maxlen = 50, prefix = defaultPrefix, ttl_seconds = 86_400 } = parameters
  const { dedup_maxlen = Math.max(defaultDedup, history_maxlen) } = parameters
  if (prefix.trim() === "") findings.addMistake("prefix", "must not be blank")
  // the task id is in braces, by which a cluster finds the slot of a key
  else if (/[{}]/.test(prefix))
    findings.addMistake("prefix", "must not hold { or }: they mark the slots of a Redis Cluster")
  const ttl = TimeToLive.normalize(ttl_seconds, findings)
  findings.checkInteger("history_maxlen", history_maxlen, 1, 100_000)
  findings.checkInteger("children_maxlen", children_maxlen, 1, 1_000_000)
  findings.checkInteger("dedup_maxlen", dedup_maxlen, 1, 1_000_000)
  if (dedup_maxlen < history_maxlen) {
    findings.addMistake("dedup_maxlen", `must be at least history_maxlen, which is ${history_maxlen}`)
  }
  return { prefix, seconds: ttl ?? "", history_maxlen, dedup_maxlen, children_maxlen }
}

/**
 * The store of the specification, in any Redis from 6 on. One script per event, whose keys share a slot, so that a
 * Redis Cluster serves it; the index of children lies in the slot of the parent, and is written in the same pipeline,
 * for known events too. So a crash between the two leaves a child without events, or an event that its redelivery puts
 * into the index. Redis must not evict (`maxmemory-policy noeviction`): it would forget events that are acknowledged.
 */
export const make = Effect.fnUntraced(function* (
  parameters: StatusStoreParameters = {}
): Effect.fn.Return<StatusStore["Service"], SettingsError, Redis> {
  const findings = new ValidationIssues()
  const { children_maxlen, dedup_maxlen, history_maxlen, prefix, seconds } = validate(parameters, findings)
  if (findings.mistakes.length > 0) return yield* SettingsError.of("RedisStatusStore", findings.mistakes)
  const redis = yield* Redis
  const throttled = yield* LogThrottle.make

  const keyOf = (kind: string, taskId: string) => redis.key(`${prefix}:${kind}:{${escaped(taskId)}}`)
  const keysOf = (taskId: string) => [keyOf("history", taskId), keyOf("ids", taskId)]

  const warnChildLeftOut = (child: string, parent: string) =>
    Effect.andThen(
      Metric.update(childrenLeftOut, 1),
      throttled((suppressed) =>
        Effect.logWarning(
          `Task ${parent} has more than ${children_maxlen} children: ${child} is not indexed${suppressed}. Raise children_maxlen.`
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
        // of equal scores: in the order of their bytes
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
  description: "Events whose task found no room in the index of its parent's children",
  incremental: true
})

/** A brace of the id would end the tag, or make it empty, and the keys of the task would lie in different slots. */
const escaped = (taskId: string): string => taskId.replace(/[%{}]/g, encodeURIComponent)

/** Ids of up to 64 bytes, as all that are made here, are kept in Redis's compact form. */
const maxMemberBytes = 64

const idMember = (eventId: string): string =>
  Buffer.byteLength(eventId) <= maxMemberBytes && isWellFormed(eventId) ? eventId : EventId.hashOf(eventId)

/** Three lines with the sequence in front of them: JSON text has no line breaks of its own. */
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

/** What the second line says; none in what somebody else has written or published there. */
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

/** Numbers of a request that went wrong ask for nothing, or for everything. */
const toWholeNumber = (value: number): number => Math.min(Math.max(Math.trunc(value) || 0, 0), Number.MAX_SAFE_INTEGER)
