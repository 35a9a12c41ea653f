import { Effect, Schema } from "effect"
import * as HandledPayloads from "../control/HandledPayloads.ts"
import { Mistake } from "../envelope/Errors.ts"
import * as Payload from "../envelope/Payload.ts"
import type { Declared, TaskEnvelope } from "../envelope/TaskEnvelope.ts"
import type { HandlerContext } from "./HandlerContext.ts"

/** A task whose payload was decoded with the handler's schema. `context.rawPayload` contains the whole message body. */
export type Task<Payload> = Omit<typeof Declared.Type, "payload"> & { readonly payload: Payload }

/**
 * The handler of a task consumer. Its success value is ignored. A failure or defect fails the task. With a retry
 * policy, the task is then retried, unless the error has `retryable: false`. `R` is the type of services that the
 * handler needs.
 */
export interface TaskHandler<R = never> {
  readonly handle: (task: TaskEnvelope, context: HandlerContext) => Effect.Effect<unknown, unknown, R>
  /** The payloads that the handler decodes. Workers report their schemas to operators. Default: any payload. */
  readonly payloads?: ReadonlyArray<HandledPayloads.HandledPayload> | undefined
}

/** The handler refused the task before it did any work. The task is not retried. */
export class TaskRefused extends Schema.TaggedError<TaskRefused>()("TaskRefused", {
  reason: Schema.Literals(["unknown_task_type", "payload_schema_violation"]),
  taskType: Schema.NullOr(Schema.String),
  mistakes: Schema.Array(Mistake),
  message: Schema.String
}) {
  readonly retryable = false
}

/** A failure that is not retried. Handlers can also fail with their own errors that have `retryable: false`. */
export class PermanentFailure extends Schema.TaggedError<PermanentFailure>()("PermanentFailure", {
  message: Schema.String
}) {
  readonly retryable = false
}

/** Creates a handler for all task types. It receives the undecoded payload. */
export const make = <R>(
  handle: (task: TaskEnvelope, context: HandlerContext) => Effect.Effect<unknown, unknown, R>
): TaskHandler<R> => ({ handle })

/** Creates a handler that decodes the payload with a schema. Invalid payloads fail with `payload_schema_violation`. */
export const withPayload = <Payload, RD, R>(
  schema: Schema.ConstraintDecoder<Payload, RD>,
  handle: (task: Task<Payload>, context: HandlerContext) => Effect.Effect<unknown, unknown, R>
): TaskHandler<RD | R> => {
  const decode = Payload.decoder(schema)
  return {
    payloads: [{ type: null, schema }],
    handle: (task, context) =>
      Effect.matchEffect(decode(task.payload), {
        onSuccess: (payload): Effect.Effect<unknown, unknown, R> => handle({ ...task, payload }, context),
        onFailure: (mistakes) => Effect.fail(unfit(task, mistakes))
      })
  }
}

/** Combines one handler per task type. Tasks of another type or without a type fail with `unknown_task_type`. */
export const byTaskType = <Requirements extends Readonly<Record<string, unknown>>>(
  handlers: {
    readonly [TaskType in keyof Requirements]: TaskHandler<Requirements[TaskType]>
  }
): TaskHandler<Requirements[keyof Requirements]> => {
  const known = new Map<string, TaskHandler<Requirements[keyof Requirements]>>(Object.entries(handlers))
  return {
    payloads: HandledPayloads.byType(known),
    handle: (task, context) =>
      known.get(task.task_type ?? "")?.handle(task, context) ?? Effect.fail(unknown(task, known.keys()))
  }
}

const unfit = ({ task_type }: TaskEnvelope, mistakes: ReadonlyArray<Mistake>): TaskRefused =>
  new TaskRefused({
    reason: "payload_schema_violation",
    taskType: task_type ?? null,
    mistakes,
    message: Payload.mismatchMessage("the handler's schema", mistakes)
  })

const unknown = ({ task_type }: TaskEnvelope, known: Iterable<string>): TaskRefused => {
  const subject = task_type === undefined ? "A task without a task_type" : `The task type ${task_type}`
  return new TaskRefused({
    reason: "unknown_task_type",
    taskType: task_type ?? null,
    mistakes: [],
    message: `${subject} has no handler in this worker. Publish one of ${Array.from(known).join(", ")}, or add a handler.`
  })
}
