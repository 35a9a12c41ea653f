import { Result } from "effect"
import * as CanonicalJson from "../envelope/CanonicalJson.ts"
import type { JsonObject } from "../envelope/Envelope.ts"
import { ContractError } from "../envelope/Errors.ts"
import type { WorkflowEnvelope } from "../envelope/WorkflowEnvelope.ts"
import type { ActionSchema, PayloadSchema } from "./Stage.ts"
import type { Stage } from "./WorkflowTopology.ts"

type ContractCheck = Result.Result<void, ContractError>

/** Checks a message from `source` to `target`. `source` is `undefined` if the publisher is not in the workflow. */
export const checkPublish = (source: Stage | undefined, target: Stage, envelope: WorkflowEnvelope): ContractCheck =>
  Result.flatMap(source === undefined ? contractKept : checkSource(source, target, envelope), () =>
    checkActions(target, "accepted_actions", source, target, envelope)
  )

export const checkConsume = (stage: Stage, envelope: WorkflowEnvelope): ContractCheck =>
  checkActions(stage, "accepted_actions", undefined, stage, envelope)

const contractKept: ContractCheck = Result.succeed(undefined)

const checkSource = (source: Stage, target: Stage, envelope: WorkflowEnvelope): ContractCheck => {
  const { contract, name } = source
  const failed = (reason: ContractError["reason"], message: string) =>
    Result.fail(contractError(reason, source, source, target, envelope, message))
  if (contract.terminal === true) {
    return failed(
      "terminal_stage_handoff",
      `Stage ${name} is terminal, so it must not publish to another stage: remove the publish, or the option terminal.`
    )
  }
  const allowed = contract.allowed_next_stages ?? []
  if (allowed.length > 0 && !allowed.includes(target.name)) {
    const message = `Stage ${name} must not publish to ${target.name}. Its allowed_next_stages are ${allowed.join(", ")}.`
    return failed("forbidden_transition", message)
  }
  return checkActions(source, "produced_actions", source, target, envelope)
}

const checkActions = (
  stage: Stage,
  side: "accepted_actions" | "produced_actions",
  source: Stage | undefined,
  target: Stage,
  envelope: WorkflowEnvelope
): ContractCheck => {
  const failed = (reason: ContractError["reason"], message: string) =>
    Result.fail(contractError(reason, stage, source, target, envelope, message))
  const actions: ReadonlyArray<ActionSchema> = stage.contract[side] ?? []
  if (actions.length === 0) return contractKept
  const { action = "" } = envelope
  const schema = actions.find((schema) => schema.action === action)
  if (schema === undefined) {
    const known = actions.map(({ action }) => action).join(", ")
    const given = action === "" ? "none" : action
    return failed(
      "unsupported_action",
      `The ${side} of stage ${stage.name} are ${known}, but the action of the message is ${given}.`
    )
  }
  const problem = schema.payload && payloadMismatch(schema.payload, envelope.payload)
  return problem === undefined
    ? contractKept
    : failed("payload_schema_violation", `The payload of ${action} for stage ${stage.name} ${problem}.`)
}

const payloadMismatch = (schema: PayloadSchema, payload: JsonObject): string | undefined => {
  const required = schema.required_fields ?? []
  const known = new Set([...required, ...(schema.optional_fields ?? [])])
  const missing = required.filter((name) => !Object.hasOwn(payload, name))
  const unknown = Object.keys(payload).filter((name) => !known.has(name))
  if (missing.length + unknown.length === 0) return undefined
  const problems = [
    ...(missing.length > 0 ? [`lacks ${missing.join(", ")}`] : []),
    ...(unknown.length > 0 ? [`contains ${unknown.slice(0, 10).join(", ")}, which it must not contain`] : [])
  ]
  return `does not meet ${schema.name} ${schema.version ?? "v1"}: it ${problems.join(" and ")}`
}

const contractError = (
  reason: ContractError["reason"],
  stage: Stage,
  source: Stage | undefined,
  target: Stage,
  envelope: WorkflowEnvelope,
  message: string
): ContractError =>
  new ContractError({
    reason,
    stage: stage.name,
    sourceStage: source?.name ?? null,
    targetStage: target.name,
    action: envelope.action ?? null,
    message
  })

/**
 * Returns a hash that is equal for messages with the same task, action and `dedup_key_fields`. Returns `undefined` if
 * the stage has no `dedup_key_fields`. Fails if a field is nested too deeply to be serialised.
 */
export const dedupSignature = (
  stage: Pick<Stage, "name" | "contract">,
  { action, payload, task_id }: Pick<WorkflowEnvelope, "task_id" | "action" | "payload">
): Result.Result<string | undefined, ContractError> => {
  const { dedup_key_fields: names = [] } = stage.contract
  if (names.length === 0) return Result.succeed(undefined)
  const own = (name: string) => (Object.hasOwn(payload, name) ? (payload[name] ?? null) : null)
  const fields = () => Object.fromEntries(names.map((name) => [name, own(name)]))
  return Result.try({
    try: () => CanonicalJson.sha256({ action: action ?? null, fields: fields(), task_id }),
    catch: () =>
      new ContractError({
        reason: "payload_schema_violation",
        stage: stage.name,
        sourceStage: null,
        targetStage: stage.name,
        action: action ?? null,
        message: `The payload nests too deeply in one of the dedup_key_fields of stage ${stage.name} (${names.join(", ")}). Send simpler values in these fields.`
      })
  })
}
