import { Context } from "effect"
import type { DeliveryFailure } from "../retry/HandlerFailure.ts"

/** The message and the stack trace of an exception in a handler. */
export interface ExceptionTexts {
  readonly text: string
  /** The stack trace, including the stack traces of the causes. */
  readonly stack: string
}

/**
 * Returns the exception texts to store in dead letters, observations, statuses and the log. The type of the exception
 * is always stored. If the function throws or returns other values than texts, only the type is stored.
 */
export type Redact = (texts: ExceptionTexts, exceptionType: string | null) => ExceptionTexts

/**
 * The redaction function of consumers. It is read when a consumer is created. Default: all texts are stored. To mask
 * secrets, provide another function:
 *
 * ```ts
 * const masked = Layer.succeed(ExceptionDetails, ({ stack, text }) => ({
 *   text: text.replaceAll(/\d{12,19}/g, "…"),
 *   stack: stack.replaceAll(/\d{12,19}/g, "…")
 * }))
 * ```
 */
export const ExceptionDetails = Context.Reference<Redact>("svc/messaging/ExceptionDetails", {
  defaultValue: () => (texts) => texts
})

const noTexts: ExceptionTexts = { text: "", stack: "" }

/** Omits the texts of exceptions. Only their types are stored. */
export const omitted: Redact = () => noTexts

export const redacted = (redact: Redact, failure: DeliveryFailure): DeliveryFailure => {
  const { exceptionType, stack, text } = failure
  try {
    const kept = redact({ text, stack }, exceptionType)
    return { ...failure, text: textOf(kept.text), stack: textOf(kept.stack) }
  } catch {
    return { ...failure, ...noTexts }
  }
}

/** A redaction function that is written in JavaScript may return anything. */
const textOf = (value: unknown): string => (typeof value === "string" ? value : "")
