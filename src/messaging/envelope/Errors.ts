import { Schema, SchemaIssue } from "effect"

/** One invalid parameter. `field` is its name in the specification, such as `stages[2].queue`. */
export const Mistake = Schema.Struct({ field: Schema.String, problem: Schema.String })
export type Mistake = typeof Mistake.Type

/** The constructors of topologies throw this error. It lists all invalid parameters. */
export class TopologyError extends Schema.TaggedError<TopologyError>()("TopologyError", {
  topology: Schema.String,
  mistakes: Schema.Array(Mistake),
  message: Schema.String
}) {
  static of(topology: string, mistakes: ReadonlyArray<Mistake>): TopologyError {
    return new TopologyError({ topology, mistakes, message: mistakesSentence(topology, mistakes) })
  }
}

/** The constructors of retry policies, aliases and other settings throw this error. It lists all invalid options. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  settings: Schema.String,
  mistakes: Schema.Array(Mistake),
  message: Schema.String
}) {
  static of(settings: string, mistakes: ReadonlyArray<Mistake>): SettingsError {
    return new SettingsError({ settings, mistakes, message: mistakesSentence(settings, mistakes) })
  }
}

export const EnvelopeKind = Schema.Literals(["task", "batch", "status", "workflow"])
export type EnvelopeKind = typeof EnvelopeKind.Type

/**
 * The body of a message is not a valid envelope. The error contains no values, because they may be secret.
 * - `malformed_json`: the body is not JSON or not UTF-8.
 * - `invalid_envelope`: the body is JSON, but not the expected envelope.
 */
export class EnvelopeError extends Schema.TaggedError<EnvelopeError>()("EnvelopeError", {
  reason: Schema.Literals(["malformed_json", "invalid_envelope"]),
  envelope: EnvelopeKind,
  mistakes: Schema.Array(Mistake),
  message: Schema.String
}) {
  static malformed(envelope: EnvelopeKind, problem: string): EnvelopeError {
    return new EnvelopeError({
      reason: "malformed_json",
      envelope,
      mistakes: [],
      message: `The body of the ${envelope} message ${problem}.`
    })
  }

  static invalid(envelope: EnvelopeKind, mistakes: ReadonlyArray<Mistake>): EnvelopeError {
    return new EnvelopeError({
      reason: "invalid_envelope",
      envelope,
      mistakes,
      message: mistakesSentence(`${envelope} envelope`, mistakes)
    })
  }
}

/**
 * The client refused a publish and sent nothing. `reason` is the violated rule. `field` is the member to change.
 *
 * - `task_type_required`: a routed topology routes tasks by their type.
 * - `task_id`: the task id is also a routing key of an aggregation queue.
 * - `priority_above_maximum`: the priority exceeds the maximum of the queue.
 * - `mixed_priorities`, `mixed_task_types`: the tasks of a batch have different priorities or types.
 * - `parent_task_id_required`: the status has no `meta.parent_task_id`, which determines the aggregation shard.
 * - `no_aggregation`: the topology has no shards.
 * - `shard`: the list of shards is empty or contains an unknown shard.
 * - `batch_id_required`, `empty_batch`: a batch envelope needs an id and at least one task.
 * - `mode`: the mode is neither `individual` nor `batch_envelope`.
 * - `not_a_workflow`: the operation requires a workflow topology. `only_workflow`: it requires a task topology.
 * - `unknown_stage`, `unknown_entry`, `unroutable_key`: the topology has no such stage, entry route or key.
 * - `status_too_large`: the status exceeds `status_max_event_bytes`.
 * - `routing_key`: the routing strategy threw an error, or returned a key that AMQP cannot carry.
 */
export class InvalidPublish extends Schema.TaggedError<InvalidPublish>()("InvalidPublish", {
  reason: Schema.Literals([
    "task_type_required",
    "task_id",
    "priority_above_maximum",
    "mixed_priorities",
    "mixed_task_types",
    "parent_task_id_required",
    "no_aggregation",
    "shard",
    "batch_id_required",
    "empty_batch",
    "mode",
    "not_a_workflow",
    "only_workflow",
    "unknown_stage",
    "unknown_entry",
    "unroutable_key",
    "status_too_large",
    "routing_key"
  ]),
  field: Schema.String,
  message: Schema.String
}) {}

/** A workflow message violates the contract of its source stage or of its target stage. */
export class ContractError extends Schema.TaggedError<ContractError>()("ContractError", {
  reason: Schema.Literals([
    "terminal_stage_handoff",
    "forbidden_transition",
    "unsupported_action",
    "payload_schema_violation"
  ]),
  /** The stage whose contract is violated. */
  stage: Schema.String,
  sourceStage: Schema.NullOr(Schema.String),
  targetStage: Schema.NullOr(Schema.String),
  action: Schema.NullOr(Schema.String),
  message: Schema.String
}) {}

/** The options of a manual retry contradict each other or are invalid. */
export class InvalidManualRetry extends Schema.TaggedError<InvalidManualRetry>()("InvalidManualRetry", {
  field: Schema.String,
  message: Schema.String
}) {}

/** Converts the issues of a schema to mistakes that do not contain the values. */
export const mistakesOf = (issue: SchemaIssue.Issue): ReadonlyArray<Mistake> =>
  formatIssues(issue).issues.map(({ message, path = [] }) => ({
    field: path.map((step) => String(typeof step === "object" ? step.key : step)).join("."),
    // Messages show the problem after the name of the field, such as `priority must be …`.
    problem: message.replace(/^Expected /, "must be ")
  }))

const maxNamedMistakes = 10

const mistakesSentence = (subject: string, mistakes: ReadonlyArray<Mistake>): string => {
  const named = mistakes.slice(0, maxNamedMistakes).map(({ field, problem }) => `${field} ${problem}`.trim())
  const more = mistakes.length - named.length
  return `${subject}: ${named.join("; ")}${more > 0 ? `; and ${more} more` : ""}.`
}

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => (issue._tag === "MissingKey" ? "is required" : SchemaIssue.defaultLeafHook(issue))
})
