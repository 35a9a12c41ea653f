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

/** The declared fields, in the order of the wire. */
export const Declared = Schema.Struct({
  task_id: Identity,
  status: Schema.String,
  timestamp: Timestamp,
  message: Schema.optionalKey(Schema.String),
  meta: JsonObject,
  result: Schema.optionalKey(JsonObject),
  /** Default on the way: the task id. */
  correlation_id: Schema.optionalKey(ShortText),
  /** Unique per event; default on the way: see `complete`. */
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

/** Something that happened to a task. Fields that the specification does not know are kept beside the others. */
export type StatusEvent = typeof Declared.Type & { readonly [extra: string]: unknown }

/** As a program publishes it: `meta` defaults to `{}`, `timestamp` to now. */
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

/** As it travels: whose, and which one. */
export type PublishedStatus = StatusEvent & { readonly correlation_id: string; readonly event_id: string }

/** `now`: for an event without `timestamp`. */
export const read = (input: unknown, now: Timestamp): Result.Result<StatusEvent, EnvelopeError> =>
  decode(input, { meta: {}, timestamp: now, spec_version: specVersion })

/** As another program sent it. */
export interface LenientStatus {
  readonly event: StatusEvent
  /** Members that have a type of their own, and that the event is read without. */
  readonly droppedMembers: ReadonlyArray<string>
}

/**
 * Reads what another program sent: `null` means that a member is missing, and a member of a wrong type is left out. Only an
 * event without a task or a status is no event.
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
 * `readLeniently`, ready to be stored. What came whole and with a `timestamp` of its own is known as `complete` knows it,
 * anything else by the hash of what was sent: the same message, read again, is the same event.
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
 * Ready to travel: with a correlation id and an event id. An event that came with its own `timestamp` gets the hash of
 * its content, so that publishing it again is no second event. One that was stamped here gets `unique` instead, as two
 * equal ones in the same millisecond are two events.
 */
export const readForPublish = (
  input: unknown,
  { now, unique }: { readonly now: Timestamp; readonly unique: string }
): Result.Result<PublishedStatus, EnvelopeError> =>
  Result.flatMap(read(input, now), (event) => withIds(event, lacksTimestamp(input), unique))

/** Whether an event that was read without a `timestamp` got the time of reading it. */
export const lacksTimestamp = (input: unknown): boolean => isJsonObject(input) && input["timestamp"] === undefined

/** `complete` for an event that was read before. */
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

/** The SHA-256 of the event without its `event_id`, as canonical JSON: the order of its members does not matter. */
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

/** The shard's parent, if the event names one. */
export const parentTaskId = ({ meta }: Pick<StatusEvent, "meta">): string | undefined => {
  const parent = meta["parent_task_id"]
  const text = typeof parent === "number" ? String(parent) : JSON.isRawJSON(parent) ? parent.rawJSON : parent
  return typeof text === "string" && text.trim() !== "" ? text : undefined
}

/** Whether it tells of the task's part in its parent: then it is no progress of the task's own. */
export const isAggregationStatus = ({ meta }: Pick<StatusEvent, "meta">): boolean =>
  !isNullish(meta["aggregation_role"])
