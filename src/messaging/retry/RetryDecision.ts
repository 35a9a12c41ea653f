import type { RetryPolicy } from "../topology/RetryPolicy.ts"
import type { DeliveryFailure } from "./HandlerFailure.ts"
import type { FailureReason } from "./RetryHeaders.ts"

export type RetryDecision =
  | { readonly _tag: "Retry"; readonly attempt: number; readonly delayMs: number; readonly reason: FailureReason }
  | { readonly _tag: "DeadLetter"; readonly attempt: number; readonly reason: FailureReason }

interface FailedAttempt extends Pick<DeliveryFailure, "reason" | "retryable"> {
  readonly attempt: number
}

/** A handler runs at most `maxRetries + 1` times. `chance` is a random number in [0, 1) that selects the delay. */
export const decide = (
  policy: RetryPolicy,
  { attempt, reason, retryable }: FailedAttempt,
  chance: number
): RetryDecision =>
  retryable && retryableReasons.has(reason) && attempt < policy.maxRetries
    ? { _tag: "Retry", attempt: attempt + 1, delayMs: policy.delayOf(attempt + 1, chance), reason }
    : { _tag: "DeadLetter", attempt, reason }

const retryableReasons: ReadonlySet<FailureReason> = new Set<FailureReason>(["handler_error", "stage_timeout"])
