import { Result } from "effect"
import { SettingsError } from "../envelope/Errors.ts"
import { ValidationIssues } from "./Parameters.ts"

/**
 * Exponential delays. Retry n waits `delay_ms × factor^(n-1)`, but at most `max_delay_ms`. `jitter` shortens each delay
 * by a random fraction, so that messages that failed together are not retried together. A delay has only `steps`
 * possible values, because each value needs its own queue.
 */
export interface ExponentialBackoff {
  /** The ratio of each delay to the previous one: more than 1, at most 100. Default: 2. */
  readonly factor?: number | undefined
  /** The longest delay in milliseconds, at least `delay_ms`. Default: an hour, or `delay_ms` if that is longer. */
  readonly max_delay_ms?: number | undefined
  /** The largest fraction by which jitter shortens a delay, 0 to 1. Default: 0.5. */
  readonly jitter?: number | undefined
  /** The number of possible delays of one retry: 1 to 16. Default: 4. */
  readonly steps?: number | undefined
}

export interface RetryParameters {
  /** The number of retries after the first delivery. With 0, the first failure dead-letters the message. Default: 3. */
  readonly max_retries?: number | undefined
  /** The delay before a retry in milliseconds, at most 48 days. Default: 30,000. */
  readonly delay_ms?: number | undefined
  /** Makes later delays longer. Default: every retry waits `delay_ms`. */
  readonly backoff?: ExponentialBackoff | undefined
  /** The name of a retry queue is the name of the worker queue, this suffix and the delay. Default: `".retry"`. */
  readonly retry_queue_suffix?: string | undefined
  /** The name of the dead-letter queue is the name of the worker queue and this suffix. Default: `".dlq"`. */
  readonly dead_letter_queue_suffix?: string | undefined
}

/**
 * Determines how often and when a failed message is retried before it is dead-lettered. A policy may have at most 64
 * different delays. The constructor throws a `SettingsError` that lists all invalid parameters.
 *
 * ```ts
 * new RetryPolicy({ max_retries: 5, delay_ms: 1_000, backoff: { factor: 2, max_delay_ms: 60_000 } })
 * ```
 */
export class RetryPolicy {
  readonly parameters: RetryParameters
  readonly maxRetries: number
  readonly delayMs: number
  readonly retryQueueSuffix: string
  readonly deadLetterQueueSuffix: string
  /** The possible delays of each retry, in ascending order. The last list applies to all later retries. */
  private readonly delaysByRetry: ReadonlyArray<ReadonlyArray<number>>

  constructor(parameters: RetryParameters = {}) {
    const issues = new ValidationIssues()
    this.parameters = parameters
    this.maxRetries = issues.checkInteger("max_retries", parameters.max_retries, 0, maxRetries) ?? 3
    this.delayMs = issues.checkInteger("delay_ms", parameters.delay_ms, 1, maxDelayMs) ?? 30_000
    this.retryQueueSuffix = issues.checkKey("retry_queue_suffix", parameters.retry_queue_suffix ?? ".retry")
    this.deadLetterQueueSuffix = issues.checkKey(
      "dead_letter_queue_suffix",
      parameters.dead_letter_queue_suffix ?? ".dlq"
    )
    issues.checkDifferent([
      ["retry_queue_suffix", this.retryQueueSuffix],
      ["dead_letter_queue_suffix", this.deadLetterQueueSuffix]
    ])
    if (parameters.backoff !== undefined) checkBackoff(parameters.backoff, this.delayMs, issues)
    issues.throwSettingsError("RetryPolicy")
    this.delaysByRetry = parameters.backoff === undefined ? [[this.delayMs]] : backoffDelays(this, parameters.backoff)
    if (this.delays.length > maxDelays) {
      issues.addMistake(
        "backoff",
        `results in ${this.delays.length} delays, each with a queue of its own, but at most ${maxDelays} are allowed: ` +
          "use fewer steps, a larger factor, or a smaller max_delay_ms"
      )
    }
    issues.throwSettingsError("RetryPolicy")
  }

  /**
   * Returns the consumer's retry policy with the overrides of the stage contract. Fails if the overrides contradict the
   * policy. For example, `retry_delay_ms` must not exceed the policy's `max_delay_ms`.
   */
  static ofStage(
    contract: Pick<RetryParameters, "max_retries"> & { readonly retry_delay_ms?: number | undefined },
    policy: RetryPolicy | undefined
  ): Result.Result<RetryPolicy | undefined, SettingsError> {
    const { max_retries, retry_delay_ms } = contract
    if (max_retries === undefined && retry_delay_ms === undefined) return Result.succeed(policy)
    try {
      return Result.succeed(
        new RetryPolicy({
          ...policy?.parameters,
          ...(max_retries !== undefined && { max_retries }),
          ...(retry_delay_ms !== undefined && { delay_ms: retry_delay_ms })
        })
      )
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error
      return Result.fail(SettingsError.of("RetryPolicy with the overrides of the stage contract", error.mistakes))
    }
  }

  /** All possible delays, in ascending order. Each has its own queue. */
  get delays(): ReadonlyArray<number> {
    return this.maxRetries === 0 ? [] : [...new Set(this.delaysByRetry.flat())].sort((one, other) => one - other)
  }

  /** Returns the delay in milliseconds of a retry, counted from 1. `chance` is a random number from 0 to below 1. */
  delayOf(retry: number, chance: number): number {
    const choices = this.delaysByRetry[Math.min(retry, this.delaysByRetry.length) - 1] ?? []
    return choices[Math.floor(chance * choices.length)] ?? this.delayMs
  }
}

const maxRetries = 1_000_000

/** 48 days. A retry queue expires one day after its delay, and RabbitMQ allows an expiry of at most 49 days. */
export const maxDelayMs = 48 * 86_400_000

const maxDelays = 64

const hour = 3_600_000

const checkBackoff = (
  { factor, jitter, max_delay_ms, steps }: ExponentialBackoff,
  delayMs: number,
  issues: ValidationIssues
): void => {
  if (factor !== undefined && !(factor > 1 && factor <= 100)) {
    issues.addMistake("backoff.factor", "must be more than 1 and at most 100")
  }
  if (jitter !== undefined && !(jitter >= 0 && jitter <= 1)) issues.addMistake("backoff.jitter", "must be from 0 to 1")
  issues.checkInteger("backoff.steps", steps, 1, 16)
  issues.checkInteger("backoff.max_delay_ms", max_delay_ms, delayMs, maxDelayMs)
}

const backoffDelays = (
  { delayMs, maxRetries }: { readonly delayMs: number; readonly maxRetries: number },
  { factor = 2, jitter = 0.5, max_delay_ms = Math.max(hour, delayMs), steps = 4 }: ExponentialBackoff
): ReadonlyArray<ReadonlyArray<number>> => {
  const stages: Array<ReadonlyArray<number>> = []
  for (let longest = delayMs; stages.length < maxRetries; longest *= factor) {
    stages.push(jitterDelays(Math.min(longest, max_delay_ms), jitter, steps))
    if (longest >= max_delay_ms) break
  }
  return stages
}

const jitterDelays = (longest: number, jitter: number, steps: number): ReadonlyArray<number> => {
  const count = jitter === 0 ? 1 : steps
  return Array.from({ length: count }, (_, step) =>
    Math.max(1, Math.round(longest * (1 - (count === 1 ? 0 : (jitter * (count - 1 - step)) / (count - 1)))))
  )
}
