import { Effect, Result, Schema } from "effect"
import type { Fields, Publication } from "../../services/Broker.ts"
import * as BatchEnvelope from "../envelope/BatchEnvelope.ts"
import type { JsonObject } from "../envelope/Envelope.ts"
import { EnvelopeError, InvalidPublish } from "../envelope/Errors.ts"
import * as TaskEnvelope from "../envelope/TaskEnvelope.ts"
import type { Timestamp } from "../envelope/Timestamp.ts"
import type { BrokerCapabilities } from "../topology/BrokerCapabilities.ts"
import type { Topology } from "../topology/Topology.ts"
import * as Publications from "./Publications.ts"
import { PublishRefused, PublishUnknown, type UnconfirmedPublish, Unroutable } from "./PublishOutcome.ts"

/**
 * The options of `publishTasks`. `mode` has two values:
 *
 * - `individual` sends one message per task and is the default. `concurrency` limits the number of publishes in
 *   progress, by default to 256. The connection may have a lower limit.
 * - `batch_envelope` sends one message with all tasks. Only a consumer with a retry policy accepts such a message.
 */
export type ManyTasksOptions =
  | {
      readonly mode?: "individual" | undefined
      readonly headers?: Fields | undefined
      readonly concurrency?: number | undefined
    }
  | {
      readonly mode: "batch_envelope"
      readonly batchId: string
      readonly meta?: JsonObject | undefined
      readonly headers?: Fields | undefined
    }

/** Some tasks were not published. Each is identified by its index. */
export class TasksUnpublished extends Schema.TaggedError<TasksUnpublished>()("TasksUnpublished", {
  /** Tasks that were sent but not confirmed. */
  failures: Schema.NonEmptyArray(
    Schema.Struct({ index: Schema.Int, error: Schema.Union([Unroutable, PublishRefused, PublishUnknown]) })
  ),
  /** Tasks that were not sent, because another task had failed. */
  unsent: Schema.Array(Schema.Int),
  message: Schema.String
}) {}

/** Returns the messages of all tasks, or one error that lists all invalid tasks. Member names must be canonical. */
export const publications = (
  topology: Topology,
  tasks: ReadonlyArray<unknown>,
  options: ManyTasksOptions,
  now: Timestamp,
  capabilities: BrokerCapabilities | undefined
): Result.Result<ReadonlyArray<Publication>, InvalidPublish | EnvelopeError> => {
  const { headers = {} } = options
  const known = { headers, ...(capabilities !== undefined && { capabilities }) }
  const { mode = "individual" } = options
  // JavaScript callers may pass any text. A misspelt `batch_envelope` must not publish the tasks individually.
  if (mode !== "individual" && mode !== "batch_envelope") {
    return refused("mode", "mode", "The mode must be individual or batch_envelope.")
  }
  if (options.mode !== "batch_envelope") {
    if ("batchId" in options)
      return refused(
        "mode",
        "mode",
        "A batchId is only allowed in the mode batch_envelope: set the mode, or leave out the batchId."
      )
    return Result.flatMap(readAll(tasks, now), (tasks) =>
      Result.all(tasks.map((task) => Publications.task(topology, task, known)))
    )
  }
  const { batchId, meta = {} } = options
  if (typeof batchId !== "string" || batchId.trim() === "")
    return refused(
      "batch_id_required",
      "batchId",
      "The mode batch_envelope requires a batchId, which must not be blank."
    )
  if (tasks.length === 0) return refused("empty_batch", "tasks", "The mode batch_envelope requires at least one task.")
  return Result.flatMap(BatchEnvelope.read({ batch_id: batchId, tasks, meta }, now), (batch) =>
    Result.map(Publications.batch(topology, batch, known), (publication) => [publication])
  )
}

/** After a failure, starts no further publish. Awaits the publishes in progress, because they may also fail. */
export const publishAll = (
  publications: ReadonlyArray<Publication>,
  publish: (publication: Publication) => Effect.Effect<void, UnconfirmedPublish>,
  options: ManyTasksOptions
): Effect.Effect<void, UnconfirmedPublish | TasksUnpublished> => {
  if (options.mode === "batch_envelope") return Effect.forEach(publications, publish, { discard: true })
  return Effect.suspend(() => {
    const failures: Array<{ readonly index: number; readonly error: UnconfirmedPublish }> = []
    const unsent: Array<number> = []
    const publishOne = (publication: Publication, index: number) =>
      Effect.suspend(() => {
        if (failures.length === 0) {
          return Effect.catch(publish(publication), (error) => Effect.sync(() => void failures.push({ index, error })))
        }
        unsent.push(index)
        return Effect.void
      })
    return Effect.andThen(
      Effect.forEach(publications, publishOne, { concurrency: options.concurrency ?? 256, discard: true }),
      Effect.suspend(() => {
        const [first, ...others] = failures
        return first === undefined
          ? Effect.void
          : Effect.fail(tasksUnpublished([first, ...others], unsent, publications.length))
      })
    )
  })
}

const tasksUnpublished = (
  failures: TasksUnpublished["failures"],
  unsent: ReadonlyArray<number>,
  total: number
): TasksUnpublished => {
  const [{ error, index }] = failures
  return new TasksUnpublished({
    failures,
    unsent,
    message: `Of ${total} tasks, ${failures.length} failed and ${unsent.length} were not sent. Task ${index}: ${error.message}`
  })
}

const readAll = (
  tasks: ReadonlyArray<unknown>,
  now: Timestamp
): Result.Result<ReadonlyArray<TaskEnvelope.TaskEnvelope>, EnvelopeError> => {
  const read = tasks.map((task) => TaskEnvelope.read(task, now))
  const mistakes = read.flatMap((task, index) =>
    Result.isFailure(task) ? task.failure.mistakes.map((mistake) => BatchEnvelope.mistakeInItem(index, mistake)) : []
  )
  return mistakes.length > 0 ? Result.fail(EnvelopeError.invalid("task", mistakes)) : Result.all(read)
}

const refused = (reason: InvalidPublish["reason"], field: string, message: string) =>
  Result.fail(new InvalidPublish({ reason, field, message }))
