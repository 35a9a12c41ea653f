import { Cause, Result } from "effect"
import type { EnvelopeError } from "../envelope/Errors.ts"
import type { FailureReason } from "./RetryHeaders.ts"

/** Why work on a delivery failed, as headers, statuses, observations and the log tell it. */
export interface DeliveryFailure {
  readonly reason: FailureReason
  /**
   * The tag of a tagged error, else the name of the class, else the type of what was thrown. `null`: no exception was the
   * cause.
   */
  readonly exceptionType: string | null
  /** The message of the exception, cut off where it is long; may be empty. */
  readonly text: string
  /** Its stack trace, with those of its causes, cut off where it is long; may be empty. */
  readonly stack: string
  /** `false`: trying again is pointless. */
  readonly retryable: boolean
}

/** Why a handler failed: there always was an exception, or an interruption. */
export interface HandlerFailure extends DeliveryFailure {
  readonly exceptionType: string
}

/**
 * An error that says what becomes of the message: of a typed failure or of a defect, its members `retryable` and `reason`
 * count where it has them. Other errors are tried again as `handler_error`.
 */
export interface Telling {
  readonly retryable?: boolean
  readonly reason?: FailureReason
}

/** A typed failure goes before a defect; a handler that interrupted itself failed as well. */
export const ofCause = (cause: Cause.Cause<unknown>): HandlerFailure => {
  const failure = Cause.findError(cause)
  if (Result.isSuccess(failure)) return withCauses(of(failure.success), cause)
  const defect = Cause.findDie(cause)
  if (Result.isSuccess(defect)) return withCauses(of(defect.success.defect), cause)
  return {
    reason: "handler_error",
    exceptionType: "Interrupted",
    text: "The handler was interrupted.",
    stack: "",
    retryable: true
  }
}

/** To read an error is to run what its author wrote; one that throws even then must not keep its message for ever. */
export const of = (error: unknown): HandlerFailure => {
  try {
    return describe(error)
  } catch {
    return {
      reason: "handler_error",
      exceptionType: "Error",
      text: "The error could not be read.",
      stack: "",
      retryable: true
    }
  }
}

/** The body of a delivery is no envelope. Bytes that are no JSON are no exception for the specification. */
export const ofEnvelope = ({ _tag, message, reason }: EnvelopeError): DeliveryFailure => ({
  reason,
  exceptionType: reason === "malformed_json" ? null : _tag,
  text: message,
  stack: "",
  retryable: false
})

const describe = (error: unknown): HandlerFailure => ({
  reason: reasonOf(error),
  exceptionType: exceptionType(error),
  text: textOf(error).slice(0, maxTextLength),
  stack: ownStackOf(error),
  retryable: !(isObject(error) && "retryable" in error && error.retryable === false)
})

export const exceptionType = (error: unknown): string => {
  if (!isObject(error)) return typeof error
  if ("_tag" in error && typeof error._tag === "string" && error._tag !== "") return error._tag
  const given = error instanceof Error && error.name !== "Error" ? error.name : error.constructor?.name
  return typeof given === "string" && given !== "" ? given : "Error"
}

/** It is kept many times over. */
const maxTextLength = 2_000
const maxStackLength = 8_000

/** Its own stack trace stays where those of its causes cannot be read, or are too many. */
const withCauses = (failure: HandlerFailure, cause: Cause.Cause<unknown>): HandlerFailure => {
  try {
    return { ...failure, stack: Cause.pretty(cause).slice(0, maxStackLength) }
  } catch {
    return failure
  }
}

const ownStackOf = (error: unknown): string => {
  try {
    return error instanceof Error ? (error.stack ?? "").slice(0, maxStackLength) : ""
  } catch {
    return ""
  }
}

const textOf = (error: unknown): string => {
  if (typeof error === "string") return error
  if (isObject(error) && "message" in error && typeof error.message === "string") return error.message
  return ""
}

/** Only reasons that are meant for handlers: nobody else's words become a category for machines. */
const reasonOf = (error: unknown): FailureReason => {
  const given = isObject(error) && "reason" in error ? error.reason : undefined
  return handlerReasons.find((reason) => reason === given) ?? "handler_error"
}

const handlerReasons: ReadonlyArray<FailureReason> = [
  "unknown_task_type",
  "unsupported_action",
  "payload_schema_violation",
  "stage_timeout",
  "dedup_conflict"
]

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null
