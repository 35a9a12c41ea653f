import { Cause } from "effect"

/** Returns the message of the first error of a cause, with its tag or class if the message does not say it. */
export const causeText = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  if (typeof error === "string") return error
  if (error instanceof Error && error.message !== "") return error.message
  return Cause.pretty(cause)
}
