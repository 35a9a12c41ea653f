import type { RetryPolicy } from "../topology/RetryPolicy.ts"
import type { DeliveryFailure } from "./HandlerFailure.ts"
import type { FailureReason } from "./RetryHeaders.ts"

/** `attempt`: what the header will say. `delayMs` names the queue. */
export type RetryDecision =
  | { readonly _tag: "Retry"; readonly attempt: number; readonly delayMs: number; readonly reason: FailureReason }
  | { readonly _tag: "DeadLetter"; readonly attempt: number; readonly reason: FailureReason }

export interface FailedAttempt extends Pick<DeliveryFailure, "reason" | "retryable"> {
  /** Of the delivery that failed: 0 is the original. */
  readonly attempt: number
}

/**
 * What becomes of a failed delivery: its handler runs at most `maxRetries + 1` times. What cannot be read is not tried
 * again. `chance`: at least 0 and below 1, for the jitter.
 */
export const decide = (
  policy: RetryPolicy,
  { attempt, reason, retryable }: FailedAttempt,
  chance: number
): RetryDecision =>
  retryable && retryableReasons.has(reason) && attempt < policy.maxRetries
    ? { _tag: "Retry", attempt: attempt + 1, delayMs: policy.delayOf(attempt + 1, chance), reason }
    : { _tag: "DeadLetter", attempt, reason }

/** The others would fail again in the same way. */
const retryableReasons: ReadonlySet<FailureReason> = new Set<FailureReason>(["handler_error", "stage_timeout"])
