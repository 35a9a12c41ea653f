import { Result } from "effect"
import type { Action, Config, FailurePolicy } from "../policy/Guardrail.ts"

/** What a guardrail said of a text. */
export interface Verdict {
  readonly action: Action
  /** With `modify`: the text in its new form, unless it stays as it is. */
  readonly text?: string
  readonly reason: string | null
  readonly metadata: Config
}

/** A guardrail could not be asked, or what it said is no answer. */
export interface GuardrailFailure {
  readonly code: "guardrail_unavailable" | "invalid_guardrail_request"
}

export type Consequence =
  | { readonly _tag: "Goes" }
  | { readonly _tag: "GoesAs"; readonly text: string }
  | { readonly _tag: "Stops"; readonly code: "guardrail_blocked" | GuardrailFailure["code"] }

export interface GuardrailOutcome {
  readonly action: Action
  /** The guardrail did not answer, or not in a way that can be read. */
  readonly failed: boolean
  readonly reason: string | null
  readonly metadata: Config
  readonly consequence: Consequence
}

/**
 * What becomes of a request. A dry run changes and stops nothing: what it would have done is noted as
 * `warn`, and named in the metadata.
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

const secretKey = /secret|token|password|authorization/i

/** How large the metadata of one run may be, in characters of JSON; what is larger is left out, and said to be. */
const maxMetadata = 8192
const maxDepth = 8
const maxReason = 512

/** Metadata for the record: without what by its name is somebody's secret, at any depth, and of bounded size. */
export const sanitizeMetadata = (metadata: Config): Config => {
  const kept = withoutSecrets(metadata)
  return JSON.stringify(kept).length > maxMetadata ? { truncated: true } : kept
}

const withoutSecrets = (config: Config, depth = 0): Config =>
  Object.fromEntries(
    Object.entries(config)
      .filter(([key]) => !secretKey.test(key))
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

/** A guardrail's word, made fit for any store. */
const replaceControlCharacters = (text: string): string => text.toWellFormed().replace(/\p{Cc}/gu, "\ufffd")
