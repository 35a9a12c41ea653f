import { Result } from "effect"
import { SettingsError } from "../envelope/Errors.ts"
import { ValidationIssues } from "./Parameters.ts"

/**
 * Delays that grow: the n-th retry waits `delay_ms × factor^(n-1)`, at most `max_delay_ms`. `jitter` takes away up to
 * that part of it, so that what failed together does not come back together; it is cut into `steps`, since every delay
 * that can occur has a queue of its own on the broker.
 */
export interface ExponentialBackoff {
  /** More than 1. Default: 2. */
  readonly factor?: number | undefined
  /** Milliseconds. Default: an hour, or `delay_ms` where that is more. */
  readonly max_delay_ms?: number | undefined
  /** 0 to 1. Default: 0.5. */
  readonly jitter?: number | undefined
  /** How many delays stand for the range of one retry: 1 to 16. Default: 4. */
  readonly steps?: number | undefined
}

export interface RetryParameters {
  /** Default: 3. A handler runs at most once more than that; 0 dead-letters the first failure. */
  readonly max_retries?: number | undefined
  /** Milliseconds. Default: 30,000. */
  readonly delay_ms?: number | undefined
  /** Default: every retry waits `delay_ms`. */
  readonly backoff?: ExponentialBackoff | undefined
  /** Default: `".retry"`. */
  readonly retry_queue_suffix?: string | undefined
  /** Default: `".dlq"`. */
  readonly dead_letter_queue_suffix?: string | undefined
}

/** How often and how late a failed message is delivered again. Throws a `SettingsError` with every mistake at once. */
export class RetryPolicy {
  readonly parameters: RetryParameters
  readonly maxRetries: number
  readonly delayMs: number
  readonly retryQueueSuffix: string
  readonly deadLetterQueueSuffix: string
  /** Of each retry, those that it may wait, ascending; the last one holds for all that follow. */
  private readonly delaysByRetry: ReadonlyArray<ReadonlyArray<number>>

  constructor(parameters: RetryParameters = {}) {
    const findings = new ValidationIssues()
    this.parameters = parameters
    this.maxRetries = findings.checkInteger("max_retries", parameters.max_retries, 0, maxRetries) ?? 3
    this.delayMs = findings.checkInteger("delay_ms", parameters.delay_ms, 1, maxDelayMs) ?? 30_000
    this.retryQueueSuffix = findings.checkKey("retry_queue_suffix", parameters.retry_queue_suffix ?? ".retry")
    this.deadLetterQueueSuffix = findings.checkKey(
      "dead_letter_queue_suffix",
      parameters.dead_letter_queue_suffix ?? ".dlq"
    )
    findings.checkDifferent([
      ["retry_queue_suffix", this.retryQueueSuffix],
      ["dead_letter_queue_suffix", this.deadLetterQueueSuffix]
    ])
    if (parameters.backoff !== undefined) checkBackoff(parameters.backoff, this.delayMs, findings)
    findings.throwSettingsError("RetryPolicy")
    this.delaysByRetry = parameters.backoff === undefined ? [[this.delayMs]] : backoffDelays(this, parameters.backoff)
    if (this.delays.length > maxDelays) {
      findings.addMistake(
        "backoff",
        `comes to ${this.delays.length} delays, each with a queue of its own, and ${maxDelays} are the most: ` +
          "take fewer steps, a larger factor, or a smaller max_delay_ms"
      )
    }
    findings.throwSettingsError("RetryPolicy")
  }

  /**
   * Of a stage whose contract says more than its consumer, or where the consumer has no policy at all. Both may be right
   * by themselves and not go together, as with a delay above the longest of the policy.
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
      return Result.fail(SettingsError.of("RetryPolicy with what the stage's contract says", error.mistakes))
    }
  }

  /** Every delay that can occur, ascending: each has its queue. */
  get delays(): ReadonlyArray<number> {
    return this.maxRetries === 0 ? [] : [...new Set(this.delaysByRetry.flat())].sort((one, other) => one - other)
  }

  /** Milliseconds before the given retry, which counts from 1. `chance`: at least 0, below 1. */
  delayOf(retry: number, chance: number): number {
    const choices = this.delaysByRetry[Math.min(retry, this.delaysByRetry.length) - 1] ?? []
    return choices[Math.floor(chance * choices.length)] ?? this.delayMs
  }
}

/** Above it a loop rather than a policy is meant. */
const maxRetries = 1_000_000

/** 48 days: a queue must live for longer than its messages wait, and the broker's timers end at 49. */
export const maxDelayMs = 48 * 86_400_000

/** Queues of one worker. */
const maxDelays = 64

const hour = 3_600_000

const checkBackoff = (
  { factor, jitter, max_delay_ms, steps }: ExponentialBackoff,
  delayMs: number,
  findings: ValidationIssues
): void => {
  if (factor !== undefined && !(factor > 1 && factor <= 100)) {
    findings.addMistake("backoff.factor", "must be more than 1 and at most 100")
  }
  if (jitter !== undefined && !(jitter >= 0 && jitter <= 1))
    findings.addMistake("backoff.jitter", "must be from 0 to 1")
  findings.checkInteger("backoff.steps", steps, 1, 16)
  findings.checkInteger("backoff.max_delay_ms", max_delay_ms, delayMs, maxDelayMs)
}

const backoffDelays = (
  { delayMs, maxRetries }: { readonly delayMs: number; readonly maxRetries: number },
  { factor = 2, jitter = 0.5, max_delay_ms = Math.max(hour, delayMs), steps = 4 }: ExponentialBackoff
): ReadonlyArray<ReadonlyArray<number>> => {
  const stages: Array<ReadonlyArray<number>> = []
  for (let longest = delayMs; stages.length < maxRetries; longest *= factor) {
    stages.push(jitterDelays(Math.min(longest, max_delay_ms), jitter, steps))
    // all that follow are the same
    if (longest >= max_delay_ms) break
  }
  return stages
}

/** From the shortest to the longest, evenly. */
const jitterDelays = (longest: number, jitter: number, steps: number): ReadonlyArray<number> => {
  const count = jitter === 0 ? 1 : steps
  return Array.from({ length: count }, (_, step) =>
    Math.max(1, Math.round(longest * (1 - (count === 1 ? 0 : (jitter * (count - 1 - step)) / (count - 1)))))
  )
}
