import type { JsonObject } from "../envelope/Envelope.ts"
import { ValidationIssues } from "./Parameters.ts"

export interface RetryStatusParameters {
  /** Publishes statuses about retries. Default: false. */
  readonly enabled?: boolean | undefined
  /** The status after a retry was scheduled. Default: `"retrying"`. */
  readonly retrying_status?: string | undefined
  /** The status after a message was dead-lettered. Default: `"failed"`. */
  readonly dead_lettered_status?: string | undefined
  /** Whether the status contains the message of the exception. Default: true. */
  readonly include_error_text?: boolean | undefined
}

interface StatusText {
  readonly status: string
  readonly message: string
  /** The default `meta`, which the publisher may override. */
  readonly meta: JsonObject
}

/** Configures the statuses about retries and dead letters. Throws a `SettingsError` for blank statuses. */
export class RetryStatusConfig {
  readonly enabled: boolean
  readonly retryingStatus: string
  readonly deadLetteredStatus: string
  readonly includeErrorText: boolean

  constructor(parameters: RetryStatusParameters = {}) {
    const issues = new ValidationIssues()
    this.enabled = parameters.enabled ?? false
    this.retryingStatus = issues.checkKey("retrying_status", parameters.retrying_status ?? "retrying")
    this.deadLetteredStatus = issues.checkKey("dead_lettered_status", parameters.dead_lettered_status ?? "failed")
    this.includeErrorText = parameters.include_error_text ?? true
    issues.throwSettingsError("RetryStatusConfig")
  }

  /** Returns the status about a scheduled retry. `next` is the number of that retry, from 1. */
  retrying(next: number, maxRetries: number, error: string): StatusText {
    const text = this.includeErrorText ? truncated(error) : ""
    return {
      status: this.retryingStatus,
      message: `Retry ${next}/${maxRetries} is scheduled${text === "" ? "." : `: ${text}`}`,
      meta: attemptMeta(next, maxRetries)
    }
  }

  deadLettered(attempt: number, maxRetries: number, error: string): StatusText {
    return {
      status: this.deadLetteredStatus,
      message: failureMessage(this.includeErrorText, error),
      meta: attemptMeta(attempt, maxRetries)
    }
  }
}

export interface LifecycleStatusParameters {
  /** Publishes statuses about the progress of a task. Default: false. */
  readonly enabled?: boolean | undefined
  /** The status before the handler runs. Default: `"processing"`. */
  readonly processing?: string | undefined
  /** The status after the handler has succeeded. Default: `"completed"`. */
  readonly completed?: string | undefined
  /** The status after the last attempt has failed. Default: `"failed"`. */
  readonly failed?: string | undefined
  /** Whether the status `failed` contains the message of the exception. Default: true. */
  readonly include_error_text?: boolean | undefined
}

/** Configures the statuses about the progress of a task. Throws a `SettingsError` for blank statuses. */
export class LifecycleStatusConfig {
  readonly enabled: boolean
  readonly processing: string
  readonly completed: string
  readonly failed: string
  readonly includeErrorText: boolean

  constructor(parameters: LifecycleStatusParameters = {}) {
    const issues = new ValidationIssues()
    this.enabled = parameters.enabled ?? false
    this.processing = issues.checkKey("processing", parameters.processing ?? "processing")
    this.completed = issues.checkKey("completed", parameters.completed ?? "completed")
    this.failed = issues.checkKey("failed", parameters.failed ?? "failed")
    this.includeErrorText = parameters.include_error_text ?? true
    issues.throwSettingsError("LifecycleStatusConfig")
  }

  failure(error: string): Omit<StatusText, "meta"> {
    return { status: this.failed, message: failureMessage(this.includeErrorText, error) }
  }
}

const failureMessage = (includeErrorText: boolean, error: string): string =>
  (includeErrorText && truncated(error)) || "The handler failed."

const maxTextLength = 2000

const truncated = (text: string): string => text.trim().slice(0, maxTextLength).toWellFormed()

const attemptMeta = (attempt: number, maxRetries: number): JsonObject => ({
  retry_attempt: attempt,
  max_retries: maxRetries
})
