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
  /** Publishing sets a missing correlation id to the task id. */
  correlation_id: Schema.optionalKey(ShortText),
  /** The unique id of the event. `readForPublish` adds a missing id. */
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

/** A status of a task. Members that the schema does not declare are kept. */
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

/** A status with the ids that publishing adds. */
export type PublishedStatus = StatusEvent & { readonly correlation_id: string; readonly event_id: string }

/** Decodes a status. `now` is the default of its timestamp. */
export const read = (input: unknown, now: Timestamp): Result.Result<StatusEvent, EnvelopeError> =>
  decode(input, { meta: {}, timestamp: now, spec_version: specVersion })

/** The result of decoding a status of another program. */
export interface LenientStatus {
  readonly event: StatusEvent
  /** The names of members that were dropped because their type was wrong. */
  readonly droppedMembers: ReadonlyArray<string>
}

/** Decodes a status of another program. Drops members of a wrong type, but `task_id` and `status` must be valid. */
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
 * Decodes a status like `readLeniently`. Adds a missing correlation id and event id. An added event id is a hash of the
 * message. Storing the same message again therefore creates no second event. For a valid event with a timestamp,
 * `readForPublish` adds the same id.
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
 * Decodes a status. Adds a missing correlation id and event id. If the input has a timestamp, an added event id is a
 * hash of the event. Publishing the event again is then idempotent. Without a timestamp, the event id is `unique`,
 * because two equal events in the same millisecond are different events.
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

/** Returns the SHA-256 of the event's canonical JSON without its `event_id`. The order of members does not matter. */
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

/** Returns the id of the parent task. It determines the aggregation shard that receives the event. */
export const parentTaskId = ({ meta }: Pick<StatusEvent, "meta">): string | undefined => {
  const parent = meta["parent_task_id"]
  const text = typeof parent === "number" ? String(parent) : JSON.isRawJSON(parent) ? parent.rawJSON : parent
  return typeof text === "string" && text.trim() !== "" ? text : undefined
}

/** Returns whether the event is input for the aggregation of the parent task. Other events are statuses of the task. */
export const isAggregationStatus = ({ meta }: Pick<StatusEvent, "meta">): boolean =>
  !isNullish(meta["aggregation_role"])
