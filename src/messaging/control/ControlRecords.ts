import { Schema } from "effect"

/** Consumers of a paused queue take no messages until the queue is resumed. */
export const Pause = Schema.Struct({
  queue: Schema.String,
  reason: Schema.String,
  /** The name that the caller gave. */
  by: Schema.NullOr(Schema.String),
  /** ISO 8601. */
  paused_at: Schema.String
})
export interface Pause extends Schema.Schema.Type<typeof Pause> {}

/** The latest end of a pause of a queue. */
export const Resumed = Schema.Struct({ queue: Schema.String, resumed_at: Schema.String })
export interface Resumed extends Schema.Schema.Type<typeof Resumed> {}

/**
 * A request to cancel a task. It applies to every message of the task until it expires or is withdrawn.
 *
 * - `requested`: no worker has met a message of the task since.
 * - `interrupting`: a worker has interrupted the handler, and waits for its end.
 * - `cancelled`: a worker has ended the task without a result.
 * - `ended`: the handler ended before the interruption had an effect.
 */
export const CancelRequest = Schema.Struct({
  cancel_id: Schema.String,
  task_id: Schema.String,
  reason: Schema.String,
  by: Schema.NullOr(Schema.String),
  requested_at: Schema.String,
  expires_at: Schema.String,
  state: Schema.Literals(["requested", "interrupting", "cancelled", "ended"]),
  worker: Schema.NullOr(Schema.String),
  answered_at: Schema.NullOr(Schema.String)
})
export interface CancelRequest extends Schema.Schema.Type<typeof CancelRequest> {}

export const RunningTask = Schema.Struct({
  task_id: Schema.String,
  task_type: Schema.NullOr(Schema.String),
  attempt: Schema.Number,
  started_at: Schema.String,
  /** The average time that this worker took for its latest tasks of this type. Absent before the first of them has ended. */
  usual_ms: Schema.optionalKey(Schema.Number)
})
export interface RunningTask extends Schema.Schema.Type<typeof RunningTask> {}

export const ConsumerReport = Schema.Struct({
  name: Schema.String,
  queue: Schema.String,
  /** The number of messages that the consumer may have in progress. */
  concurrency: Schema.Number,
  in_work: Schema.Number,
  /** True if the consumer has stopped to take messages, because its queue is paused. */
  paused: Schema.Boolean,
  /** The longest running handlers first. At most 100. `in_work` counts all. */
  running: Schema.Array(RunningTask)
})
export interface ConsumerReport extends Schema.Schema.Type<typeof ConsumerReport> {}

/** A worker process reports itself once a second. */
export const WorkerReport = Schema.Struct({
  worker: Schema.String,
  host: Schema.String,
  pid: Schema.Number,
  version: Schema.String,
  started_at: Schema.String,
  seen_at: Schema.String,
  consumers: Schema.Array(ConsumerReport)
})
export interface WorkerReport extends Schema.Schema.Type<typeof WorkerReport> {}

/** A worker queue and the queues that belong to it. Consumers announce them, because only they know their retry policy. */
export const QueueGroup = Schema.Struct({
  queue: Schema.String,
  retry_queues: Schema.Array(Schema.String),
  /** `null` if the consumers have no retry policy. */
  dead_letter_queue: Schema.NullOr(Schema.String)
})
export interface QueueGroup extends Schema.Schema.Type<typeof QueueGroup> {}

/**
 * Says whether the payloads of one type have a known schema.
 *
 * - `reported`: `schema` names their JSON Schema.
 * - `none`: the handler was made without a schema.
 * - `not_representable`: the schema has no form as JSON Schema.
 * - `too_large`: its JSON Schema is too large to be reported.
 */
export const HandlerSchema = Schema.Struct({
  /** `null`: all types that are not listed. */
  type: Schema.NullOr(Schema.String),
  known: Schema.Literals(["reported", "none", "not_representable", "too_large"]),
  /** The SHA-256 of the JSON Schema. */
  schema: Schema.NullOr(Schema.String)
})
export interface HandlerSchema extends Schema.Schema.Type<typeof HandlerSchema> {}

/** The types of messages that the consumers of a queue take, as reported by the worker that started last. */
export const HandlerReport = Schema.Struct({
  queue: Schema.String,
  worker: Schema.String,
  version: Schema.String,
  started_at: Schema.String,
  reported_at: Schema.String,
  /** The member of a message that names its type. */
  typed_by: Schema.Literals(["task_type", "action"]),
  handlers: Schema.Array(HandlerSchema),
  /** The number of further types, which are not listed. */
  left_out: Schema.Number
})
export interface HandlerReport extends Schema.Schema.Type<typeof HandlerReport> {}
