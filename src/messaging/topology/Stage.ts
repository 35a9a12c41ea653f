import type { Fields } from "../../services/Broker.ts"
import type { ValidationIssues } from "./Parameters.ts"
import { maxDelayMs } from "./RetryPolicy.ts"

/** The shape of a payload: a field that is in neither list is an error. */
export interface PayloadSchema {
  readonly name: string
  /** Default: `"v1"`. */
  readonly version?: string | undefined
  readonly required_fields?: ReadonlyArray<string> | undefined
  readonly optional_fields?: ReadonlyArray<string> | undefined
}

export interface ActionSchema {
  readonly action: string
  readonly description?: string | undefined
  readonly payload?: PayloadSchema | undefined
}

/** What a stage promises beyond its transport. Everything may be left out. */
export interface StageContract {
  readonly description?: string | undefined
  readonly role?: string | undefined
  readonly owner?: string | undefined
  readonly tags?: ReadonlyArray<string> | undefined
  /** Milliseconds; for people, nothing is done about it. */
  readonly sla_ms?: number | undefined
  /** The actions that it takes, with their payloads. Default, and empty: any. */
  readonly accepted_actions?: ReadonlyArray<ActionSchema> | undefined
  /** The actions that it hands over with. Default, and empty: any. */
  readonly produced_actions?: ReadonlyArray<ActionSchema> | undefined
  /** The stages that it hands over to. Default, and empty: any. */
  readonly allowed_next_stages?: ReadonlyArray<string> | undefined
  /** It hands over to nobody. */
  readonly terminal?: boolean | undefined
  /** Of a handler, in seconds; past it the message is retried for `stage_timeout`. */
  readonly timeout_seconds?: number | undefined
  /** Instead of that of the consumer's retry policy. */
  readonly max_retries?: number | undefined
  /** Milliseconds, instead of the delay of the consumer's retry policy. */
  readonly retry_delay_ms?: number | undefined
  /** How many messages are worked on at once, where the consumer says nothing. */
  readonly max_inflight?: number | undefined
  /**
   * Members of the payload: two messages of a task that agree on them are the same work, and are not worked on at the same
   * time. Needs the service `StageDedup`. Default: none.
   */
  readonly dedup_key_fields?: ReadonlyArray<string> | undefined
}

export interface StageParameters extends StageContract {
  readonly name: string
  readonly queue: string
  /** Topic patterns of the inbox. */
  readonly binding_keys: ReadonlyArray<string>
  /** How others reach it: must match one of the binding keys. */
  readonly publish_routing_key: string
  readonly queue_arguments_overrides?: Fields | undefined
  readonly queue_kwargs?: Fields | undefined
}

export interface EntryRouteParameters {
  readonly name: string
  /** Must match a binding key of the target. */
  readonly routing_key: string
  readonly target_stage: string
}

/** Timers hold no more. */
const maxSeconds = 2_147_483

/** What is wrong with a contract, on its own and among the stages of its topology. */
export const checkContract = (
  at: string,
  contract: StageContract,
  stages: ReadonlySet<string>,
  findings: ValidationIssues
): void => {
  findings.checkInteger(`${at}.sla_ms`, contract.sla_ms, 1, Number.MAX_SAFE_INTEGER)
  findings.checkInteger(`${at}.max_retries`, contract.max_retries, 0, 1_000_000)
  findings.checkInteger(`${at}.max_inflight`, contract.max_inflight, 1, 65_535)
  findings.checkInteger(`${at}.retry_delay_ms`, contract.retry_delay_ms, 1, maxDelayMs)
  const { timeout_seconds: timeout } = contract
  if (timeout !== undefined && !(timeout > 0 && timeout <= maxSeconds)) {
    findings.addMistake(`${at}.timeout_seconds`, `must be more than 0 and at most ${maxSeconds}`)
  }
  checkActions(`${at}.accepted_actions`, contract.accepted_actions, findings)
  checkActions(`${at}.produced_actions`, contract.produced_actions, findings)
  checkNames(`${at}.dedup_key_fields`, contract.dedup_key_fields, findings)
  checkNames(`${at}.allowed_next_stages`, contract.allowed_next_stages, findings)
  for (const next of contract.allowed_next_stages ?? []) {
    if (!stages.has(next)) findings.addMistake(`${at}.allowed_next_stages`, `names ${next}, which is no stage`)
  }
  if (contract.terminal === true) {
    for (const field of ["allowed_next_stages", "produced_actions"] as const) {
      if ((contract[field]?.length ?? 0) > 0) {
        findings.addMistake(`${at}.${field}`, "must be empty: the stage is terminal")
      }
    }
  }
}

const checkActions = (
  at: string,
  actions: ReadonlyArray<ActionSchema> | undefined,
  findings: ValidationIssues
): void => {
  checkNames(
    at,
    actions?.map(({ action }) => action),
    findings
  )
  for (const { action, payload } of actions ?? []) {
    if (payload === undefined) continue
    if (payload.name.trim() === "") findings.addMistake(`${at}.${action}.payload.name`, "must not be blank")
    const fields = [...(payload.required_fields ?? []), ...(payload.optional_fields ?? [])]
    checkNames(`${at}.${action}.payload`, fields, findings)
  }
}

const checkNames = (at: string, names: ReadonlyArray<string> | undefined, findings: ValidationIssues): void => {
  const seen = new Set<string>()
  for (const name of names ?? []) {
    if (name.trim() === "") findings.addMistake(at, "must not name blanks")
    else if (seen.has(name)) findings.addMistake(at, `names ${name} twice`)
    seen.add(name)
  }
}
