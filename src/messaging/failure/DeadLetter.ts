import { createHash } from "node:crypto"
import { type Effect, Schema } from "effect"
import type { Delivery, Field, Fields, Properties } from "../../services/Broker.ts"
import { JsonObject } from "../envelope/Envelope.ts"
import { type Timestamp, withOffset } from "../envelope/Timestamp.ts"

const N = Schema.NullOr(Schema.String)

/** Beside content type, correlation id and headers: the properties that a replay gives back to the message. */
const MessageProperties = Schema.Struct({
  priority: Schema.optionalKey(Schema.Int),
  content_encoding: Schema.optionalKey(Schema.String),
  reply_to: Schema.optionalKey(Schema.String),
  message_id: Schema.optionalKey(Schema.String),
  timestamp: Schema.optionalKey(Schema.String),
  type: Schema.optionalKey(Schema.String),
  app_id: Schema.optionalKey(Schema.String)
})

/** A message that ended in a dead-letter queue, as it is stored, listed and replayed. */
export const DeadLetterRecord = Schema.Struct({
  dlq_id: Schema.String,
  /** The dead-letter queue. */
  queue_name: Schema.String,
  source_queue_name: Schema.String,
  /** Where its retries waited; none where the policy allows no retry. */
  retry_queue_name: N,
  task_id: N,
  correlation_id: N,
  reason: Schema.String,
  exception_type: N,
  /** At most 2,000 characters; `null` where there was none, or it is not to be kept. */
  exception_message: Schema.optionalKey(N),
  /** At most 8,000 characters; `null` as of the message. */
  exception_stack: Schema.optionalKey(N),
  retry_attempt: Schema.Int,
  max_retries: Schema.Int,
  /** As published. Times are ISO texts, bytes are base64, and integers that JSON cannot hold are texts. */
  headers: JsonObject,
  content_type: N,
  /** By `body_encoding`: the parsed value, the text, or base64. */
  body: Schema.Unknown,
  body_encoding: Schema.Literals(["json", "text", "base64"]),
  raw_body_b64: Schema.String,
  dead_lettered_at: Schema.String,
  /** `replay_unknown`: a replay may have been published, and nobody heard the broker's answer; also while one runs. */
  state: Schema.Literals(["dead_lettered", "replay_unknown", "replayed"]),
  replay_count: Schema.Int,
  replayed_at: N,
  replay_target_queue_name: N,
  /** With `replay_unknown` alone: since when, and which request or job it was. */
  replay_unknown_at: Schema.optionalKey(N),
  replay_unknown_by: Schema.optionalKey(N),
  properties: Schema.optionalKey(MessageProperties)
})
export type DeadLetterRecord = typeof DeadLetterRecord.Type

/** Where consumers record dead letters. The message itself is safe in its queue before anything is recorded. */
export interface DeadLetterSink {
  readonly record: (record: DeadLetterRecord) => Effect.Effect<unknown, unknown>
}

/** What is known of a dead letter when it was published. */
export interface DeadLettered {
  /** The message that failed. */
  readonly delivery: Pick<Delivery, "content" | "properties">
  /** The dead-letter queue. */
  readonly queue: string
  /** Where a replay goes to. */
  readonly sourceQueue: string
  /** Where its retries waited; `null` without any. */
  readonly retryQueue: string | null
  readonly taskId: string | null
  /** A `FailureReason`, or what another worker calls it. */
  readonly reason: string
  readonly exceptionType: string | null
  /** Empty: none is kept. */
  readonly exceptionMessage: string
  /** Empty: none is kept. */
  readonly exceptionStack: string
  /** Which retry failed; 0: the first delivery. */
  readonly attempt: number
  readonly maxRetries: number
  /** As they were published to the dead-letter queue. */
  readonly headers: Fields
  readonly at: Timestamp
}

/**
 * The record of a dead letter, for a `DeadLetterSink` or `DeadLetterStore.record`. Consumers of the library record their
 * own; a worker that dead-letters by itself makes one of what it published. The same arguments give the same `dlq_id`, so
 * that recording twice is recording once.
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

/** The same as `Publications.description`, with the priority, by the names of the record. */
const propertiesOf = (given: Properties): typeof MessageProperties.Type => ({
  ...(given.priority !== undefined && { priority: given.priority }),
  ...(given.contentEncoding !== undefined && { content_encoding: given.contentEncoding }),
  ...(given.replyTo !== undefined && { reply_to: given.replyTo }),
  ...(given.messageId !== undefined && { message_id: given.messageId }),
  ...(given.timestamp !== undefined && { timestamp: given.timestamp.toISOString() }),
  ...(given.type !== undefined && { type: given.type }),
  ...(given.appId !== undefined && { app_id: given.appId })
})

/** The same message that is dead-lettered again is another dead letter: its time is another. */
const idOf = ({ attempt, delivery, queue, sourceQueue }: DeadLettered, deadLetteredAt: string): string =>
  createHash("sha256")
    .update(queue + sourceQueue + (delivery.properties.correlationId ?? "") + attempt + deadLetteredAt)
    .update(delivery.content)
    .digest("hex")

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** As it is shown. `parse`: of JSON. */
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
