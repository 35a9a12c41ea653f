import { Result, Schema } from "effect"
import * as CanonicalJson from "./CanonicalJson.ts"
import {
  encode as encodeEnvelope,
  Identity,
  isIdentity,
  isJsonObject,
  isShortText,
  isWritableObject,
  JsonObject,
  makeReader,
  type NoCamelCaseMembers,
  parse,
  ShortText,
  serializationProblem,
  specVersion
} from "./Envelope.ts"
import { EnvelopeError } from "./Errors.ts"
import { isCanonical, Timestamp } from "./Timestamp.ts"

export const Declared = Schema.Struct({
  task_id: Identity,
  status: Schema.String,
  timestamp: Timestamp,
  message: Schema.optionalKey(Schema.String),
  meta: JsonObject,
  result: Schema.optionalKey(JsonObject),
  /** Publishing sets it to the task id if missing. */
  correlation_id: Schema.optionalKey(ShortText),
  /** Unique for each event. For events without one, see `readForPublish`. */
  event_id: Schema.optionalKey(Schema.String),
  service: Schema.optionalKey(Schema.String),
  spec_version: Schema.String,
  task_type: Schema.optionalKey(Schema.String)
})

const isExact = (known: JsonObject): known is typeof Declared.Type & JsonObject =>
  isIdentity(known["task_id"]) &&
  typeof known["status"] === "string" &&
  isCanonical(known["timestamp"]) &&
  isTextOrMissing(known["message"]) &&
  isWritableObject(known["meta"]) &&
  (known["result"] === undefined || isWritableObject(known["result"])) &&
  (known["correlation_id"] === undefined || isShortText(known["correlation_id"])) &&
  isTextOrMissing(known["event_id"]) &&
  isTextOrMissing(known["service"]) &&
  typeof known["spec_version"] === "string" &&
  isTextOrMissing(known["task_type"])

const isTextOrMissing = (value: unknown): boolean => value === undefined || typeof value === "string"

const decode = makeReader({
  kind: "status",
  schema: Declared,
  nullable: ["message", "result", "correlation_id", "event_id", "service", "task_type"],
  isExact
})

/** A status of a task. Undeclared members are kept. */
export type StatusEvent = typeof Declared.Type & { readonly [extra: string]: unknown }

/** A status to be published. Defaults: `meta` is `{}`, `timestamp` is the current time. */
export interface StatusInput extends NoCamelCaseMembers<typeof Declared.fields> {
  readonly task_id: string
  readonly status: string
  readonly timestamp?: Timestamp | undefined
  readonly message?: string | null | undefined
  readonly meta?: JsonObject | undefined
  readonly result?: JsonObject | null | undefined
  readonly correlation_id?: string | null | undefined
  readonly event_id?: string | null | undefined
  readonly service?: string | null | undefined
  readonly spec_version?: string | undefined
  readonly task_type?: string | null | undefined
  readonly [extra: string]: unknown
}

/** A status as published, with its ids. */
export type PublishedStatus = StatusEvent & { readonly correlation_id: string; readonly event_id: string }

/** `now` is the timestamp of an event without one. */
export const read = (input: unknown, now: Timestamp): Result.Result<StatusEvent, EnvelopeError> =>
  decode(input, { meta: {}, timestamp: now, spec_version: specVersion })

/** A status from another program. */
export interface LenientStatus {
  readonly event: StatusEvent
  /** Members that were dropped because their type was wrong. */
  readonly droppedMembers: ReadonlyArray<string>
}

/**
 * Decodes a status from another program. Members that are `null` or have a wrong type are dropped. Fails only if
 * `task_id` or `status` is invalid.
 */
export const readLeniently = (input: JsonObject, now: Timestamp): Result.Result<LenientStatus, EnvelopeError> =>
  Result.match(read(input, now), {
    onSuccess: (event) => Result.succeed({ event, droppedMembers: [] }),
    onFailure: ({ mistakes }) => {
      const wrong = new Set(mistakes.map(({ field }) => field).filter((field) => !required.has(field)))
      const rest = Object.fromEntries(Object.entries(input).filter(([name]) => !wrong.has(name)))
      const droppedMembers = [...wrong].filter((name) => input[name] !== null)
      return Result.map(read(rest, now), (event) => ({ event, droppedMembers }))
    }
  })

const isNullish = (value: unknown): boolean => value === undefined || value === null

const required: ReadonlySet<string> = new Set(["task_id", "status"])

/**
 * Decodes a status like `readLeniently` and gives it the ids to store it by. A complete event with a timestamp gets the
 * id that `readForPublish` gives it; any other event gets the hash of the message. Either way, a message that is read
 * again is the same event.
 */
export const readForStorage = (
  input: JsonObject,
  now: Timestamp
): Result.Result<LenientStatus & { readonly event: PublishedStatus }, EnvelopeError> =>
  Result.gen(function* () {
    const { event, droppedMembers } = yield* readLeniently(input, now)
    const isWhole = droppedMembers.length === 0 && !isNullish(input["timestamp"])
    const sent = isWhole ? "" : yield* droppedMembers.includes("event_id") ? contentId(input) : eventId(input)
    return { event: yield* withIds(event, !isWhole, sent), droppedMembers }
  })

export const fromBytes = (body: Uint8Array, now: Timestamp): Result.Result<StatusEvent, EnvelopeError> =>
  Result.flatMap(parse("status", body), ({ ordinary }) => read(ordinary, now))

/**
 * Decodes a status and adds a correlation id and an event id. The id of an event with a timestamp is the hash of its
 * content, so that publishing it again is idempotent. An event without one gets the id `unique`, because two equal
 * events in one millisecond are distinct.
 */
export const readForPublish = (
  input: unknown,
  { now, unique }: { readonly now: Timestamp; readonly unique: string }
): Result.Result<PublishedStatus, EnvelopeError> =>
  Result.flatMap(read(input, now), (event) => withIds(event, lacksTimestamp(input), unique))

export const lacksTimestamp = (input: unknown): boolean => isJsonObject(input) && input["timestamp"] === undefined

export const withIds = (
  event: StatusEvent,
  hasDefaultTimestamp: boolean,
  unique: string
): Result.Result<PublishedStatus, EnvelopeError> => {
  const whole = { ...event, correlation_id: event.correlation_id || event.task_id }
  const given = event.event_id?.trim()
  if (given) return Result.succeed({ ...whole, event_id: given })
  return Result.map(hasDefaultTimestamp ? Result.succeed(unique) : eventId(whole), (id) => ({ ...whole, event_id: id }))
}

/** The SHA-256 of the event without its `event_id`, as canonical JSON. The order of the members does not matter. */
export const eventId = (event: JsonObject): Result.Result<string, EnvelopeError> => {
  const { event_id: _, ...content } = event
  return contentId(content)
}

const contentId = (content: JsonObject): Result.Result<string, EnvelopeError> =>
  Result.try({
    try: () => CanonicalJson.sha256(content),
    catch: (cause) => EnvelopeError.invalid("status", [{ field: "", problem: serializationProblem(cause) }])
  })

export const encode = (event: StatusEvent): Result.Result<Uint8Array, EnvelopeError> => encodeEnvelope("status", event)

/** The parent task, whose shard aggregates the event. */
export const parentTaskId = ({ meta }: Pick<StatusEvent, "meta">): string | undefined => {
  const parent = meta["parent_task_id"]
  const text = typeof parent === "number" ? String(parent) : JSON.isRawJSON(parent) ? parent.rawJSON : parent
  return typeof text === "string" && text.trim() !== "" ? text : undefined
}

/** Returns whether the event reports the task's part in its parent, and not progress of the task itself. */
export const isAggregationStatus = ({ meta }: Pick<StatusEvent, "meta">): boolean =>
  !isNullish(meta["aggregation_role"])
