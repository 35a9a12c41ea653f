import type { Fields } from "../../services/Broker.ts"
import type { ValidationIssues } from "./Parameters.ts"
import { maxDelayMs } from "./RetryPolicy.ts"

/** The fields of a payload. A payload with any other field is refused. */
export interface PayloadSchema {
  readonly name: string
  /** The version of the schema, shown in errors. Default: `"v1"`. */
  readonly version?: string | undefined
  readonly required_fields?: ReadonlyArray<string> | undefined
  readonly optional_fields?: ReadonlyArray<string> | undefined
}

export interface ActionSchema {
  readonly action: string
  readonly description?: string | undefined
  readonly payload?: PayloadSchema | undefined
}

/** Describes what a stage accepts and produces. All members are optional. `Name` is the type of the stages' names. */
export interface StageContract<Name extends string = string> {
  readonly description?: string | undefined
  readonly role?: string | undefined
  readonly owner?: string | undefined
  readonly tags?: ReadonlyArray<string> | undefined
  /** The service level in milliseconds. It is documentation only and not enforced. */
  readonly sla_ms?: number | undefined
  /** The accepted actions with their payloads. Without entries, the stage accepts all actions. */
  readonly accepted_actions?: ReadonlyArray<ActionSchema> | undefined
  /** The actions of messages that the stage may publish to other stages. Without entries, all actions are allowed. */
  readonly produced_actions?: ReadonlyArray<ActionSchema> | undefined
  /** The stages to which this stage may publish messages. Without entries, all stages are allowed. */
  readonly allowed_next_stages?: ReadonlyArray<Name> | undefined
  /** Forbids the stage to publish messages to other stages. Default: false. */
  readonly terminal?: boolean | undefined
  /** The maximum run time in seconds. A timeout retries the message with the reason `stage_timeout`. Default: none. */
  readonly timeout_seconds?: number | undefined
  /** Overrides `max_retries` of the consumer's retry policy. */
  readonly max_retries?: number | undefined
  /** Overrides `delay_ms` of the consumer's retry policy, in milliseconds. */
  readonly retry_delay_ms?: number | undefined
  /** The number of messages that a consumer without the option `concurrency` processes concurrently. */
  readonly max_inflight?: number | undefined
  /**
   * Members of the payload that identify a unit of work. Messages with the same task, action and values of these
   * members are never processed concurrently. Requires the service `StageDedup`. Default: none.
   */
  readonly dedup_key_fields?: ReadonlyArray<string> | undefined
}

export interface StageParameters<Name extends string = string> extends StageContract<NoInfer<Name>> {
  readonly name: Name
  readonly queue: string
  /** The binding keys of the stage's inbox queue on the workflow exchange. They are topic patterns. */
  readonly binding_keys: ReadonlyArray<string>
  /** The routing key of messages to this stage. It must match a binding key. */
  readonly publish_routing_key: string
  readonly queue_arguments_overrides?: Fields | undefined
  readonly queue_kwargs?: Fields | undefined
}

export interface EntryRouteParameters<Name extends string = string> {
  readonly name: string
  /** The routing key of messages that enter by this route. It must match a binding key of the target stage. */
  readonly routing_key: string
  readonly target_stage: Name
}

const maxSeconds = 2_147_483

export const checkContract = (
  at: string,
  contract: StageContract,
  stages: ReadonlySet<string>,
  issues: ValidationIssues
): void => {
  issues.checkInteger(`${at}.sla_ms`, contract.sla_ms, 1, Number.MAX_SAFE_INTEGER)
  issues.checkInteger(`${at}.max_retries`, contract.max_retries, 0, 1_000_000)
  issues.checkInteger(`${at}.max_inflight`, contract.max_inflight, 1, 65_535)
  issues.checkInteger(`${at}.retry_delay_ms`, contract.retry_delay_ms, 1, maxDelayMs)
  const { timeout_seconds: timeout } = contract
  if (timeout !== undefined && !(timeout > 0 && timeout <= maxSeconds)) {
    issues.addMistake(`${at}.timeout_seconds`, `must be more than 0 and at most ${maxSeconds}`)
  }
  checkActions(`${at}.accepted_actions`, contract.accepted_actions, issues)
  checkActions(`${at}.produced_actions`, contract.produced_actions, issues)
  checkNames(`${at}.dedup_key_fields`, contract.dedup_key_fields, issues)
  checkNames(`${at}.allowed_next_stages`, contract.allowed_next_stages, issues)
  for (const next of contract.allowed_next_stages ?? []) {
    if (!stages.has(next)) issues.addMistake(`${at}.allowed_next_stages`, `names ${next}, which is not a stage`)
  }
  if (contract.terminal === true) {
    for (const field of ["allowed_next_stages", "produced_actions"] as const) {
      if ((contract[field]?.length ?? 0) > 0) {
        issues.addMistake(`${at}.${field}`, "must be empty, because the stage is terminal")
      }
    }
  }
}

const checkActions = (at: string, actions: ReadonlyArray<ActionSchema> | undefined, issues: ValidationIssues): void => {
  checkNames(
    at,
    actions?.map(({ action }) => action),
    issues
  )
  for (const { action, payload } of actions ?? []) {
    if (payload === undefined) continue
    if (payload.name.trim() === "") issues.addMistake(`${at}.${action}.payload.name`, "must not be blank")
    const fields = [...(payload.required_fields ?? []), ...(payload.optional_fields ?? [])]
    checkNames(`${at}.${action}.payload`, fields, issues)
  }
}

const checkNames = (at: string, names: ReadonlyArray<string> | undefined, issues: ValidationIssues): void => {
  const seen = new Set<string>()
  for (const name of names ?? []) {
    if (name.trim() === "") issues.addMistake(at, "must not contain blank names")
    else if (seen.has(name)) issues.addMistake(at, `names ${name} twice`)
    seen.add(name)
  }
}
