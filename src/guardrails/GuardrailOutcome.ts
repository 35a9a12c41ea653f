import { Result } from "effect"
import type { Action, Config, Execution, FailurePolicy, Mode } from "../policy/Guardrail.ts"
import type { GuardrailDefinition } from "./Definitions.ts"

export interface Verdict {
  readonly action: Action
  /** The new text of the action `modify`. Without it the text stays unchanged. */
  readonly text?: string
  readonly reason: string | null
  readonly metadata: Config
}

/** The reasons of executions that failed: the guardrail did not reply, or its reply is invalid. */
export const failureCodes = ["guardrail_unavailable", "invalid_guardrail_request"] as const

export interface GuardrailFailure {
  readonly code: (typeof failureCodes)[number]
}

export type Consequence =
  | { readonly _tag: "Goes" }
  | { readonly _tag: "GoesAs"; readonly text: string }
  | { readonly _tag: "Stops"; readonly code: "guardrail_blocked" | GuardrailFailure["code"] }

/** Why a request or a stream ends at a guardrail. */
export interface StoppedBy {
  readonly code: Extract<Consequence, { readonly _tag: "Stops" }>["code"]
  readonly message: string
}

export const stoppedBy = (code: StoppedBy["code"], guardrail: string): StoppedBy => ({
  code,
  message: messages[code](guardrail)
})

const messages = {
  guardrail_blocked: (name: string) =>
    `The guardrail ${name} blocked this request. Change its content, or ask an operator about this guardrail.`,
  guardrail_unavailable: (name: string) =>
    `The guardrail ${name} did not respond, and requests cannot pass without it. Try again shortly.`,
  invalid_guardrail_request: (name: string) =>
    `The guardrail ${name} returned an invalid response, and requests cannot pass without it. Ask an operator to check the guardrail.`
}

export interface GuardrailOutcome {
  readonly action: Action
  /** True if the guardrail did not reply or its reply is invalid. */
  readonly failed: boolean
  readonly reason: string | null
  readonly metadata: Config
  readonly consequence: Consequence
}

/**
 * Applies the failure policy to the guardrail's verdict. A `dry_run` neither changes nor blocks the text. Its action is
 * recorded as `warn`, and the metadata names the intended action.
 */
export const of = (policy: FailurePolicy, verdict: Result.Result<Verdict, GuardrailFailure>): GuardrailOutcome => {
  if (Result.isFailure(verdict)) {
    const { code } = verdict.failure
    return policy === "fail_closed"
      ? { action: "block", failed: true, reason: code, metadata: {}, consequence: { _tag: "Stops", code } }
      : { action: "warn", failed: true, reason: code, metadata: {}, consequence: goes }
  }
  const { action, text } = verdict.success
  const reason = truncateReason(verdict.success.reason)
  const metadata = sanitizeMetadata(verdict.success.metadata)
  if (policy === "dry_run" && (action === "block" || action === "modify")) {
    const noted = { ...metadata, dry_run_action: action }
    return { action: "warn", failed: false, reason, metadata: noted, consequence: goes }
  }
  const consequence: Consequence =
    action === "block"
      ? { _tag: "Stops", code: "guardrail_blocked" }
      : action === "modify" && text !== undefined
        ? { _tag: "GoesAs", text }
        : goes
  return { action, failed: false, reason, metadata, consequence }
}

const goes: Consequence = { _tag: "Goes" }

/** Returns the record of one run of a guardrail. */
export const executionOf = (
  { failurePolicy, name }: Pick<GuardrailDefinition, "failurePolicy" | "name">,
  mode: Mode,
  { action, metadata, reason }: Pick<GuardrailOutcome, "action" | "metadata" | "reason">,
  tookMs: number
): Execution => ({
  guardrail_name: name,
  mode,
  action,
  failure_policy: failurePolicy,
  latency_ms: tookMs,
  reason,
  metadata
})

const secretKey = /secret|token|password|authorization/i

/** The maximum characters of metadata as JSON. Larger metadata is replaced by `truncated: true`. */
const maxMetadata = 8192
const maxDepth = 8
const maxReason = 512

/** Prepares metadata for storage: limits its size and removes members, at any depth, whose names suggest a secret. */
export const sanitizeMetadata = (metadata: Config): Config => {
  const stored = withoutSecrets(metadata)
  return JSON.stringify(stored).length > maxMetadata ? { truncated: true } : stored
}

const withoutSecrets = (config: Config, depth = 0): Config =>
  Object.fromEntries(
    Object.entries(config)
      .filter(([key]) => !secretKey.test(key) || key.endsWith("_count"))
      .map(([key, value]) => [replaceControlCharacters(key), sanitizeValue(value, depth + 1)])
  )

const sanitizeValue = (value: Config[string], depth: number): Config[string] => {
  if (typeof value === "string") return replaceControlCharacters(value)
  if (typeof value !== "object" || value === null) return value
  if (depth > maxDepth) return null
  return isList(value) ? value.map((item) => sanitizeValue(item, depth + 1)) : withoutSecrets(value, depth)
}

const isList = (value: Config[string]): value is ReadonlyArray<Config[string]> => Array.isArray(value)

const truncateReason = (reason: string | null): string | null =>
  reason === null ? null : replaceControlCharacters(reason.slice(0, maxReason))

/** Replaces lone surrogates and control characters, which PostgreSQL or a log line cannot hold. */
const replaceControlCharacters = (text: string): string => text.toWellFormed().replace(/\p{Cc}/gu, "\ufffd")
