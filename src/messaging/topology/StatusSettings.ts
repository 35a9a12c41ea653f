import type { JsonObject } from "../envelope/Envelope.ts"
import { ValidationIssues } from "./Parameters.ts"

export interface RetryStatusParameters {
  /** Default: false. */
  readonly enabled?: boolean | undefined
  /** When a retry waits. Default: `"retrying"`. */
  readonly retrying_status?: string | undefined
  /** When a message is dead-lettered. Default: `"failed"`. */
  readonly dead_lettered_status?: string | undefined
  /** Whether the text of the error becomes the message of the status. Default: true. */
  readonly include_error_text?: boolean | undefined
}

/** The part of a status that does not depend on whose it is. */
export interface StatusText {
  readonly status: string
  readonly message: string
  /** Laid under the meta of the status. */
  readonly meta: JsonObject
}

/** Statuses about retries. */
export class RetryStatusConfig {
  readonly enabled: boolean
  readonly retryingStatus: string
  readonly deadLetteredStatus: string
  readonly includeErrorText: boolean

  constructor(parameters: RetryStatusParameters = {}) {
    const findings = new ValidationIssues()
    this.enabled = parameters.enabled ?? false
    this.retryingStatus = findings.checkKey("retrying_status", parameters.retrying_status ?? "retrying")
    this.deadLetteredStatus = findings.checkKey("dead_lettered_status", parameters.dead_lettered_status ?? "failed")
    this.includeErrorText = parameters.include_error_text ?? true
    findings.throwSettingsError("RetryStatusConfig")
  }

  /** `next`: the retry that waits, which counts from 1. */
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
  /** Default: false. */
  readonly enabled?: boolean | undefined
  /** Default: `"processing"`. */
  readonly processing?: string | undefined
  /** Default: `"completed"`. */
  readonly completed?: string | undefined
  /** Default: `"failed"`. */
  readonly failed?: string | undefined
  /** Default: true. */
  readonly include_error_text?: boolean | undefined
}

/** Statuses about the work itself, which a task consumer publishes by itself. */
export class LifecycleStatusConfig {
  readonly enabled: boolean
  readonly processing: string
  readonly completed: string
  readonly failed: string
  readonly includeErrorText: boolean

  constructor(parameters: LifecycleStatusParameters = {}) {
    const findings = new ValidationIssues()
    this.enabled = parameters.enabled ?? false
    this.processing = findings.checkKey("processing", parameters.processing ?? "processing")
    this.completed = findings.checkKey("completed", parameters.completed ?? "completed")
    this.failed = findings.checkKey("failed", parameters.failed ?? "failed")
    this.includeErrorText = parameters.include_error_text ?? true
    findings.throwSettingsError("LifecycleStatusConfig")
  }

  failure(error: string): Omit<StatusText, "meta"> {
    return { status: this.failed, message: failureMessage(this.includeErrorText, error) }
  }
}

const failureMessage = (includeErrorText: boolean, error: string): string =>
  (includeErrorText && truncated(error)) || "The handler failed."

/** A status is read by people and kept many times over. */
const maxTextLength = 2000

const truncated = (text: string): string => text.trim().slice(0, maxTextLength).toWellFormed()

const attemptMeta = (attempt: number, maxRetries: number): JsonObject => ({
  retry_attempt: attempt,
  max_retries: maxRetries
})
