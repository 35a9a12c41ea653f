import { createHash } from "node:crypto"
import { Context, type Effect, Schema } from "effect"
import type { Delivery, Field, Fields, Properties } from "../../services/Broker.ts"
import { JsonObject } from "../envelope/Envelope.ts"
import { type Timestamp, withOffset } from "../envelope/Timestamp.ts"

const N = Schema.NullOr(Schema.String)

/** The message properties that a replay restores. Content type, correlation id and headers have separate fields. */
const MessageProperties = Schema.Struct({
  priority: Schema.optionalKey(Schema.Int),
  content_encoding: Schema.optionalKey(Schema.String),
  reply_to: Schema.optionalKey(Schema.String),
  message_id: Schema.optionalKey(Schema.String),
  timestamp: Schema.optionalKey(Schema.String),
  type: Schema.optionalKey(Schema.String),
  app_id: Schema.optionalKey(Schema.String)
})

/**
 * - `published`: the broker has the message, and nothing more is known.
 * - `handled`: a terminal status of the message proves that its handler has succeeded.
 * - `failed_again`: the message was dead-lettered again, as `failed_again_as` if that record is known.
 */
const ReplayOutcome = Schema.Struct({
  outcome: Schema.Literals(["published", "handled", "failed_again"]),
  known_at: N,
  failed_again_as: N
})

/** The record of a message in a dead-letter queue. A store lists these records and replays their messages. */
export const DeadLetterRecord = Schema.Struct({
  dlq_id: Schema.String,
  queue_name: Schema.String,
  source_queue_name: Schema.String,
  /** The retry queue with the shortest delay. `null` if the policy allows no retry. */
  retry_queue_name: N,
  task_id: N,
  correlation_id: N,
  reason: Schema.String,
  exception_type: N,
  /** At most 2,000 characters. `null` if there is no message or it must not be stored. */
  exception_message: Schema.optionalKey(N),
  /** At most 8,000 characters. `null` if there is no stack trace or it must not be stored. */
  exception_stack: Schema.optionalKey(N),
  retry_attempt: Schema.Int,
  max_retries: Schema.Int,
  /** The headers of the message. Timestamps are ISO 8601 texts, bytes are base64, and unsafe integers are texts. */
  headers: JsonObject,
  content_type: N,
  /** The body as parsed JSON, text or base64, depending on `body_encoding`. */
  body: Schema.Unknown,
  body_encoding: Schema.Literals(["json", "text", "base64"]),
  raw_body_b64: Schema.String,
  dead_lettered_at: Schema.String,
  /** The release of the program whose worker failed, if the sink knows it. */
  worker_version: Schema.optionalKey(N),
  /**
   * `replay_unknown`: a replay is in progress, or it was interrupted before the broker confirmed the message.
   * `replaced`: the record was edited. `archived`: somebody has archived the record.
   */
  state: Schema.Literals(["dead_lettered", "replay_unknown", "replayed", "replaced", "archived"]),
  replay_count: Schema.Int,
  replayed_at: N,
  replay_target_queue_name: N,
  /** The time when the replay started. Set only while the state is `replay_unknown`. */
  replay_unknown_at: Schema.optionalKey(N),
  /** The request or job that started the replay. */
  replay_unknown_by: Schema.optionalKey(N),
  /** The outcome of the latest replay. Set only while the state is `replayed`. */
  replay_outcome: Schema.optionalKey(ReplayOutcome),
  /** The record that this record is an edit of. */
  edited_from: Schema.optionalKey(N),
  /** The record with the edited message. Set only while the state is `replaced`. */
  replaced_by: Schema.optionalKey(N),
  replaced_at: Schema.optionalKey(N),
  /** Set only while the state is `archived`. */
  archive: Schema.optionalKey(
    Schema.Struct({
      reason: Schema.String,
      by: N,
      archived_at: Schema.String,
      /** The record is deleted at this time. Until then, it can be taken out of the archive. */
      until: Schema.String
    })
  ),
  properties: Schema.optionalKey(MessageProperties)
})
export type DeadLetterRecord = typeof DeadLetterRecord.Type

/** Stores the records of dead letters. Called after the message has been stored in the dead-letter queue. */
export interface DeadLetterSink {
  readonly record: (record: DeadLetterRecord) => Effect.Effect<unknown, unknown>
}

/** The sink of consumers whose options name none. The roles provide their store here. Default: none. */
export const DefaultDeadLetterSink = Context.Reference<DeadLetterSink | undefined>(
  "svc/messaging/DefaultDeadLetterSink",
  { defaultValue: () => undefined }
)

/** The input of `recordOf`. It describes a dead letter that a worker has published. */
export interface DeadLettered {
  /** The message that failed. */
  readonly delivery: Pick<Delivery, "content" | "properties">
  readonly queue: string
  /** The queue that a replay publishes to. */
  readonly sourceQueue: string
  /** The retry queue with the shortest delay. `null` if the policy allows no retry. */
  readonly retryQueue: string | null
  readonly taskId: string | null
  /** The `FailureReason` of a consumer of this library. Other workers may use any text. */
  readonly reason: string
  readonly exceptionType: string | null
  /** The message of the exception. Empty if it must not be stored. */
  readonly exceptionMessage: string
  /** The stack trace of the exception. Empty if it must not be stored. */
  readonly exceptionStack: string
  /** The number of the retry that failed last. 0 if the first delivery failed. */
  readonly attempt: number
  readonly maxRetries: number
  /** The headers as published to the dead-letter queue. */
  readonly headers: Fields
  readonly at: Timestamp
}

/**
 * Returns the record of a dead letter for a `DeadLetterSink` or `DeadLetterStore.record`. Call it in your own workers
 * that publish dead letters. The consumers of this library record their dead letters themselves. Equal arguments give
 * the same `dlq_id`. Recording a dead letter twice is therefore idempotent.
 */
export const recordOf = (dead: DeadLettered): DeadLetterRecord => {
  const { content, properties } = dead.delivery
  const deadLetteredAt = withOffset(dead.at)
  return {
    dlq_id: idOf(dead, deadLetteredAt),
    queue_name: dead.queue,
    source_queue_name: dead.sourceQueue,
    retry_queue_name: dead.retryQueue,
    task_id: dead.taskId,
    correlation_id: properties.correlationId ?? null,
    reason: dead.reason,
    exception_type: dead.exceptionType,
    exception_message: dead.exceptionMessage || null,
    exception_stack: dead.exceptionStack || null,
    retry_attempt: dead.attempt,
    max_retries: dead.maxRetries,
    headers: Object.fromEntries(Object.entries(dead.headers).map(([name, value]) => [name, json(value)])),
    content_type: properties.contentType ?? null,
    ...bodyOf(content),
    raw_body_b64: Buffer.from(content).toString("base64"),
    dead_lettered_at: deadLetteredAt,
    state: "dead_lettered",
    replay_count: 0,
    replayed_at: null,
    replay_target_queue_name: null,
    properties: propertiesOf(properties)
  }
}

const propertiesOf = (given: Properties): typeof MessageProperties.Type => ({
  ...(given.priority !== undefined && { priority: given.priority }),
  ...(given.contentEncoding !== undefined && { content_encoding: given.contentEncoding }),
  ...(given.replyTo !== undefined && { reply_to: given.replyTo }),
  ...(given.messageId !== undefined && { message_id: given.messageId }),
  ...(given.timestamp !== undefined && { timestamp: given.timestamp.toISOString() }),
  ...(given.type !== undefined && { type: given.type }),
  ...(given.appId !== undefined && { app_id: given.appId })
})

/** The hash includes the time, because a replayed message can be dead-lettered again. */
const idOf = ({ attempt, delivery, queue, sourceQueue }: DeadLettered, deadLetteredAt: string): string =>
  createHash("sha256")
    .update(queue + sourceQueue + (delivery.properties.correlationId ?? "") + attempt + deadLetteredAt)
    .update(delivery.content)
    .digest("hex")

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

export const bodyOf = (
  content: Uint8Array,
  parse: (text: string) => unknown = JSON.parse
): Pick<DeadLetterRecord, "body" | "body_encoding"> => {
  let text: string
  try {
    text = utf8.decode(content)
  } catch {
    return { body: Buffer.from(content).toString("base64"), body_encoding: "base64" }
  }
  try {
    return { body: parse(text), body_encoding: "json" }
  } catch {
    return { body: text, body_encoding: "text" }
  }
}

const json = (value: Field): unknown => {
  if (typeof value === "bigint") {
    return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
  }
  if (typeof value !== "object" || value === null) return value
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64")
  if (isList(value)) return value.map(json)
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, json(member)]))
}

const isList = (value: Field): value is ReadonlyArray<Field> => Array.isArray(value)
