import type { Field, Fields } from "../../services/Broker.ts"
import { fitsShortString } from "../envelope/Envelope.ts"
import type { Timestamp } from "../envelope/Timestamp.ts"

export const retryAttempt = "x-svc-retry-attempt"
export const maxRetries = "x-svc-max-retries"
export const sourceQueue = "x-svc-source-queue"
export const failureReason = "x-svc-failure-reason"
export const exceptionType = "x-svc-exception-type"
/** Of a dead letter alone: when, as an ISO 8601 text. Its record is found, and made again, by it. */
export const deadLetteredAt = "x-svc-dead-lettered-at"
/** Of a dead letter that was published to its queue again: true. */
export const replayedFromDlq = "x-svc-replayed-from-dlq"
/** How many headers of the message were left behind on its way here, for want of room. */
export const headersLeftOut = "x-svc-headers-left-out"

/** The five that belong to one worker's retries: what is handed to another worker leaves without them. */
export const names: ReadonlyArray<string> = [retryAttempt, maxRetries, sourceQueue, failureReason, exceptionType]

/** Why a message is retried, dead-lettered or rejected, for machines. */
export type FailureReason =
  | "handler_error"
  | "malformed_json"
  | "invalid_envelope"
  | "mixed_task_type_batch"
  | "unsupported_batch_envelope"
  | "unknown_task_type"
  | "unsupported_action"
  | "payload_schema_violation"
  | "stage_timeout"
  | "dedup_conflict"

/** Of a delivery: 0 is the original. What is no count from 0 on is taken for 0. */
export const attemptOf = (headers: Fields): number => count(headers[retryAttempt])

/** A header as a count from 0 on: other clients send integers of any width, and texts. */
export const count = (value: Field | undefined): number => {
  const number = typeof value === "bigint" || (typeof value === "string" && /^\d+$/.test(value)) ? Number(value) : value
  return typeof number === "number" && Number.isSafeInteger(number) && number >= 0 ? number : 0
}

/**
 * The headers that go along when a message is published again. What the broker wrote stays behind: it takes a copied
 * `x-death` for a cycle and drops the message, and a copied `CC` would send it to more queues than meant.
 */
export const withoutBrokerHeaders = (headers: Fields): Fields =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !brokerHeader.test(name)))

/**
 * What surely fits beside the library's own: short values, its own names first. A message may arrive with headers that
 * are as long as they can be sent, or longer, as another client has other limits; with the headers of a failure beside
 * them they could not go on, and the message would come back for ever.
 */
export const shortened = (headers: Fields): Fields => {
  const all = Object.entries(headers)
  const fitting = all.filter(([name, value]) => fitsShortString(name) && isShortValue(value) && name !== headersLeftOut)
  const ours = fitting.filter(([name]) => libraryHeader.test(name))
  const kept = [...ours, ...fitting.filter(([name]) => !libraryHeader.test(name))].slice(0, maxShortHeaders)
  const before = headers[headersLeftOut] === undefined ? 0 : 1
  return {
    ...Object.fromEntries(kept),
    [headersLeftOut]: count(headers[headersLeftOut]) + all.length - before - kept.length
  }
}

const isShortValue = (value: Field): boolean =>
  typeof value === "string"
    ? fitsShortString(value)
    : value === null || typeof value === "boolean" || Number.isFinite(value)

/** With names and values of 255 bytes each: half of the 64 KiB that amqplib has for headers. */
const maxShortHeaders = 64

const libraryHeader = /^(x-svc-.*|task_id|message_id|stage|origin_stage|batch_(id|index|size))$/

const brokerHeader =
  /^(x-death|x-first-death-.*|x-last-death-.*|x-delivery-count|x-acquired-count|x-stream-offset|CC|BCC)$/

/** What the headers of a retry or a dead letter say. */
export interface FailureHeaders {
  /** Retry: of the delivery to come, which counts from 1. Dead letter: of the delivery that failed last. */
  readonly attempt: number
  readonly maxRetries: number
  readonly sourceQueue: string
  readonly reason: FailureReason
  /** `null`: no exception was the cause. The header is written nonetheless. */
  readonly exceptionType: string | null
  /** `undefined`: it is tried again. */
  readonly deadLetteredAt?: Timestamp | undefined
}

/** Of a retry or a dead letter, beside everything that the delivery brought. */
export const of = (headers: Fields, failure: FailureHeaders): Fields => ({
  ...withoutBrokerHeaders(headers),
  [retryAttempt]: failure.attempt,
  [maxRetries]: failure.maxRetries,
  [sourceQueue]: failure.sourceQueue,
  [failureReason]: failure.reason,
  [exceptionType]: failure.exceptionType === null ? null : failure.exceptionType.slice(0, maxTypeLength),
  ...(failure.deadLetteredAt !== undefined && { [deadLetteredAt]: failure.deadLetteredAt })
})

/** Header tables are small, and anybody can give a class a name. */
const maxTypeLength = 255
