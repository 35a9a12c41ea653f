import type { Field, Fields } from "../../services/Broker.ts"
import { fitsShortString } from "../envelope/Envelope.ts"
import type { Timestamp } from "../envelope/Timestamp.ts"

export const retryAttempt = "x-svc-retry-attempt"
export const maxRetries = "x-svc-max-retries"
export const sourceQueue = "x-svc-source-queue"
export const failureReason = "x-svc-failure-reason"
export const exceptionType = "x-svc-exception-type"
/** The time when the message was dead-lettered (ISO 8601). The `dlq_id` is a hash that includes this text. */
export const deadLetteredAt = "x-svc-dead-lettered-at"
/** This header is `true` in a message that was replayed from a dead-letter queue. */
export const replayedFromDlq = "x-svc-replayed-from-dlq"
/** The `dlq_id` of the dead letter that was replayed. */
export const replayedLetter = "x-svc-dlq-id"
export const replayedAt = "x-svc-replayed-at"
const headersLeftOut = "x-svc-headers-left-out"

/** The headers of retries and dead letters. A manual retry removes these headers from the task. */
export const names: ReadonlyArray<string> = [retryAttempt, maxRetries, sourceQueue, failureReason, exceptionType]

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

/** Returns the number of retries so far. Returns 0 for the first delivery and for an unreadable header. */
export const attemptOf = (headers: Fields): number => count(headers[retryAttempt])

/** Reads a count from a header. Clients in other languages send integers of any width, or texts. */
export const count = (value: Field | undefined): number => {
  const number = typeof value === "bigint" || (typeof value === "string" && /^\d+$/.test(value)) ? Number(value) : value
  return typeof number === "number" && Number.isSafeInteger(number) && number >= 0 ? number : 0
}

/**
 * Removes headers that affect routing. With a copied `x-death`, the broker would drop the message as a cycle. With a
 * copied `CC`, the broker would route the message to more queues.
 */
export const withoutBrokerHeaders = (headers: Fields): Fields =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !brokerHeader.test(name)))

/** Drops long headers of other clients. The republished message needs space for the headers about its failure. */
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

/** 64 headers with names and values of 255 bytes fill half of the 64 KiB that amqplib has for headers. */
const maxShortHeaders = 64

const libraryHeader = /^(x-svc-.*|task_id|message_id|stage|origin_stage|batch_(id|index|size))$/

const brokerHeader =
  /^(x-death|x-first-death-.*|x-last-death-.*|x-delivery-count|x-acquired-count|x-stream-offset|CC|BCC)$/

interface FailureHeaders {
  /** In a retry, the number of that retry, from 1. In a dead letter, the number of the retry that failed last. */
  readonly attempt: number
  readonly maxRetries: number
  readonly sourceQueue: string
  readonly reason: FailureReason
  /** The header is written even if there was no exception. */
  readonly exceptionType: string | null
  readonly deadLetteredAt?: Timestamp | undefined
}

export const of = (headers: Fields, failure: FailureHeaders): Fields => ({
  ...withoutBrokerHeaders(headers),
  [retryAttempt]: failure.attempt,
  [maxRetries]: failure.maxRetries,
  [sourceQueue]: failure.sourceQueue,
  [failureReason]: failure.reason,
  [exceptionType]: failure.exceptionType === null ? null : failure.exceptionType.slice(0, maxTypeLength),
  ...(failure.deadLetteredAt !== undefined && { [deadLetteredAt]: failure.deadLetteredAt })
})

const maxTypeLength = 255
