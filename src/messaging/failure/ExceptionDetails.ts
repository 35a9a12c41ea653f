import { Context } from "effect"
import type { DeliveryFailure } from "../retry/HandlerFailure.ts"

/** What a handler's exception says of itself. */
export interface ExceptionTexts {
  /** Its message. */
  readonly text: string
  /** Its stack trace, with those of its causes. */
  readonly stack: string
}

/**
 * What is kept of an exception, wherever it is kept: in dead letters, observations, statuses and the log. Its type is
 * always kept. Where this function throws, or returns something else than texts, only the type is kept.
 */
export type Redact = (texts: ExceptionTexts, exceptionType: string | null) => ExceptionTexts

/**
 * Consumers ask for it when they are made. Default: everything is kept. To mask what must not be stored, provide
 * another:
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

/** For those who must not keep messages of exceptions: only types are kept. */
export const omitted: Redact = () => noTexts

/** `failure` with the texts that may be kept. */
export const redacted = (redact: Redact, failure: DeliveryFailure): DeliveryFailure => {
  const { exceptionType, stack, text } = failure
  try {
    const kept = redact({ text, stack }, exceptionType)
    return { ...failure, text: textOf(kept.text), stack: textOf(kept.stack) }
  } catch {
    return { ...failure, ...noTexts }
  }
}

/** A program in JavaScript may return anything. */
const textOf = (value: unknown): string => (typeof value === "string" ? value : "")
