import { Schema, SchemaIssue } from "effect"

/** `field`: as the specification names it, such as `task_max_priority` or `stages[2].queue`. */
export const Mistake = Schema.Struct({ field: Schema.String, problem: Schema.String })
export type Mistake = typeof Mistake.Type

/** Thrown by the constructors of topologies, with everything that is wrong at once. */
export class TopologyError extends Schema.TaggedError<TopologyError>()("TopologyError", {
  topology: Schema.String,
  mistakes: Schema.Array(Mistake),
  message: Schema.String
}) {
  static of(topology: string, mistakes: ReadonlyArray<Mistake>): TopologyError {
    return new TopologyError({ topology, mistakes, message: mistakesSentence(topology, mistakes) })
  }
}

/** Thrown by the constructors of retry policies, aliases, contracts and other settings. */
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
 * - `malformed_json`: the bytes are not JSON, or not UTF-8.
 * - `invalid_envelope`: it is JSON, and not the envelope that was expected. Values stay out: they may be secret.
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
 * A publish that is refused before anything is sent. `reason` is the rule, `field` what to change.
 *
 * - `task_type_required`: a routed topology routes by it. `task_id`: cannot be a routing key of this topology.
 * - `priority_above_maximum`: the destination queue knows no such priority. `mixed_priorities`: a batch travels as one
 *   message, which has one. `mixed_task_types`: it goes by one routing key.
 * - `parent_task_id_required`: aggregation is sharded by it. `no_aggregation`: the topology has no shards. `shard`: the
 *   list names none, or one that there is not.
 * - `batch_id_required`, `empty_batch`: of batch publishing. `mode`: it is neither `individual` nor `batch_envelope`.
 * - `not_a_workflow`, `only_workflow`: the operation belongs to the other kind of topology.
 * - `unknown_stage`, `unknown_entry`, `unroutable_key`: no stage of this topology is meant.
 * - `status_too_large`: a status has more bytes than hubs store.
 * - `routing_key`: AMQP cannot carry it.
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

/** A hand-over that a stage contract forbids, or a message that a stage does not take. */
export class ContractError extends Schema.TaggedError<ContractError>()("ContractError", {
  reason: Schema.Literals([
    "terminal_stage_handoff",
    "forbidden_transition",
    "unsupported_action",
    "payload_schema_violation"
  ]),
  /** Whose rule it is. */
  stage: Schema.String,
  sourceStage: Schema.NullOr(Schema.String),
  targetStage: Schema.NullOr(Schema.String),
  action: Schema.NullOr(Schema.String),
  message: Schema.String
}) {}

/** A manual retry that was asked for in a way that cannot be meant. */
export class InvalidManualRetry extends Schema.TaggedError<InvalidManualRetry>()("InvalidManualRetry", {
  field: Schema.String,
  message: Schema.String
}) {}

/** Where a schema was not met, without the values. */
export const mistakesOf = (issue: SchemaIssue.Issue): ReadonlyArray<Mistake> =>
  formatIssues(issue).issues.map(({ message, path = [] }) => ({
    field: path.map((step) => String(typeof step === "object" ? step.key : step)).join("."),
    // it stands behind the name of its field
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
