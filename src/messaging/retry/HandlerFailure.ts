import { Cause, Result } from "effect"
import type { EnvelopeError } from "../envelope/Errors.ts"
import type { FailureReason } from "./RetryHeaders.ts"

export interface DeliveryFailure {
  readonly reason: FailureReason
  /** The error's `_tag`, else its class name, else the `typeof` of the thrown value. `null` without an exception. */
  readonly exceptionType: string | null
  readonly text: string
  readonly stack: string
  readonly retryable: boolean
}

export interface HandlerFailure extends DeliveryFailure {
  readonly exceptionType: string
}

/** Describes why a handler failed. Typed failures take precedence over defects. An interruption is also a failure. */
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

/** Describes an error. Returns a generic description if reading the error runs user code that throws. */
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

const exceptionType = (error: unknown): string => {
  if (!isObject(error)) return typeof error
  if ("_tag" in error && typeof error._tag === "string" && error._tag !== "") return error._tag
  const given = error instanceof Error && error.name !== "Error" ? error.name : error.constructor?.name
  return typeof given === "string" && given !== "" ? given : "Error"
}

const maxTextLength = 2_000
const maxStackLength = 8_000

/** Adds the stack traces of all causes, unless reading them throws. */
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

/** Returns the error's reason if it is one of `handlerReasons`. Any other text must not become a header value. */
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
