import { randomInt } from "node:crypto"
import { Result } from "effect"
import type { Config, FailurePolicy } from "../policy/Guardrail.ts"
import { DetectorSet } from "./detect/DetectorSet.ts"
import type { Verdict } from "./GuardrailOutcome.ts"
import * as DocumentRedactor from "./redact/DocumentRedactor.ts"
import { type PlaceholderValues, Redaction } from "./redact/Redaction.ts"
import { ofRequest, ofResponse } from "./text/DocumentText.ts"
import type { Place, TextRoute } from "./text/Place.ts"

export type { PlaceholderValues } from "./redact/Redaction.ts"

export interface Options {
  readonly config: Config
  readonly route: TextRoute
  /** The placeholders that the request already uses, with the values that they replaced. */
  readonly known: PlaceholderValues
}

export interface DocumentRun {
  readonly text: string
  /** The new values by placeholder. */
  readonly found: PlaceholderValues
  readonly verdict: Verdict
}

/** The failure is a sentence that names the mistake in the configuration. */
export const redactRequest = (
  text: string,
  options: Options,
  failurePolicy: FailurePolicy
): Result.Result<DocumentRun, string> => redactDocument("request", text, options, failurePolicy)

/** Like `redactRequest`, but also restores the values that the request contained, unless `restore_output` is false. */
export const redactResponse = (
  text: string,
  options: Options,
  failurePolicy: FailurePolicy
): Result.Result<DocumentRun, string> => redactDocument("response", text, options, failurePolicy)

const redactDocument = (
  kind: "request" | "response",
  text: string,
  options: Options,
  failurePolicy: FailurePolicy
): Result.Result<DocumentRun, string> =>
  Result.map(redactionOf(kind, options, kind === "request" ? lastNumberBefore(text) : 0), (redaction) => {
    const document = (kind === "request" ? ofRequest : ofResponse)(options.route, text)
    const redacted = DocumentRedactor.redact(redaction, text, document?.spans ?? [], kind)
    const verdict = verdictOf(redaction, new Set(document?.unreadable ?? ["file"]), options.config, failurePolicy)
    return { text: redacted, found: redaction.found, verdict: { ...verdict, text: redacted } }
  })

export interface ConfigMistake {
  /** Such as `detectors.email`. */
  readonly field: string
  /** Continues a sentence that begins with the field. */
  readonly reason: string
}

const members = ["restore_output", "unreadable", "detectors", "custom_patterns"]

/**
 * Returns the first mistake in a configuration of `pii-redact` that is to be saved; `undefined` if there is none. One
 * that an older version saved may have members that this one does not know, and is read without them.
 */
export const mistakeIn = (config: Config): ConfigMistake | undefined => {
  const unknown = Object.keys(config).find((name) => !members.includes(name))
  if (unknown !== undefined) {
    return { field: unknown.slice(0, 64), reason: `is unknown; the members are ${members.join(", ")}` }
  }
  const { restore_output, unreadable } = config
  if (restore_output !== undefined && typeof restore_output !== "boolean") {
    return { field: "restore_output", reason: "must be true or false" }
  }
  if (unreadable !== undefined && unreadable !== "pass" && unreadable !== "block") {
    return { field: "unreadable", reason: 'must be "pass" or "block"' }
  }
  const mistake = DetectorSet.mistakeIn(config)
  if (mistake === undefined) return undefined
  const [field = "", ...reason] = mistake.replace(/\.$/, "").split(" ")
  return { field, reason: reason.join(" ") }
}

export const redactionOf = (
  kind: "request" | "response",
  { config, known }: Options,
  lastNumber: number = 0
): Result.Result<Redaction, string> =>
  Result.map(
    DetectorSet.of(config),
    (detectors) =>
      new Redaction({
        detectors,
        known,
        lastNumber,
        restore: kind === "response" && config["restore_output"] !== false
      })
  )

/**
 * The upstream may keep the turns of a conversation, with the placeholders of earlier requests, whose values the gateway
 * has forgotten. A request that continues such a conversation gets numbers of its own, so that an earlier placeholder in
 * the response is not taken for one of this request.
 */
const lastNumberBefore = (request: string): number =>
  continuesConversation.test(request) ? randomInt(10_000_000, 900_000_000) : 0

const continuesConversation = /"(?:previous_response_id|conversation)"\s{0,16}:\s{0,16}["{]/

/**
 * Detectors cannot read pictures, audio and files, a signed text must not change, and a value in unknown text may have
 * been sent in part before it was whole. The member `unreadable` of the
 * configuration decides whether such content passes: `pass` or `block`. By default the failure policy decides.
 */
export const verdictOf = (
  redaction: Redaction,
  unreadable: ReadonlySet<Place>,
  config: Config,
  failurePolicy: FailurePolicy
): Verdict => {
  const unguarded = [
    ...unreadable,
    ...(redaction.signedFindings === 0 ? [] : ["signed text"]),
    ...(redaction.lateFindings === 0 ? [] : ["unknown text"])
  ]
  const metadata = redaction.counts()
  if (unguarded.length === 0) return { action: "modify", reason: null, metadata }
  return {
    action: blocksUnreadable(config, failurePolicy) ? "block" : "modify",
    reason: `cannot redact: ${unguarded.join(", ")}`,
    metadata: { ...metadata, unguarded }
  }
}

/** True if content that detectors cannot read stops a text. */
export const blocksUnreadable = (config: Config, failurePolicy: FailurePolicy): boolean =>
  config["unreadable"] === undefined ? failurePolicy === "fail_closed" : config["unreadable"] === "block"
