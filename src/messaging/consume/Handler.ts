import { Effect, Schema } from "effect"
import { Mistake } from "../envelope/Errors.ts"
import * as Payload from "../envelope/Payload.ts"
import type { Declared, TaskEnvelope } from "../envelope/TaskEnvelope.ts"
import type { HandlerContext } from "./HandlerContext.ts"

/** A task whose payload has met the handler's schema. Fields that nobody declared are in `context.rawPayload`. */
export type Task<Payload> = Omit<typeof Declared.Type, "payload"> & { readonly payload: Payload }

/**
 * What a task consumer runs. It succeeds with anything; whatever it fails or dies with is a failure of the task, which is
 * tried again unless the error has a member `retryable` that is `false`. `R`: the services that it needs.
 */
export interface TaskHandler<R = never> {
  readonly handle: (task: TaskEnvelope, context: HandlerContext) => Effect.Effect<unknown, unknown, R>
}

/** A task that its handler does not take. Nothing has run, and trying again is pointless. */
export class TaskRefused extends Schema.TaggedError<TaskRefused>()("TaskRefused", {
  reason: Schema.Literals(["unknown_task_type", "payload_schema_violation"]),
  taskType: Schema.NullOr(Schema.String),
  /** Of the payload. */
  mistakes: Schema.Array(Mistake),
  message: Schema.String
}) {
  readonly retryable = false
}

/** A failure that trying again does not mend, for handlers that have no error of their own that says so. */
export class PermanentFailure extends Schema.TaggedError<PermanentFailure>()("PermanentFailure", {
  message: Schema.String
}) {
  readonly retryable = false
}

/** For all task types, with the payload as it came. */
export const make = <R>(
  handle: (task: TaskEnvelope, context: HandlerContext) => Effect.Effect<unknown, unknown, R>
): TaskHandler<R> => ({ handle })

/** For payloads of one schema: what does not meet it is refused as `payload_schema_violation`. */
export const withPayload = <Payload, RD, R>(
  schema: Schema.ConstraintDecoder<Payload, RD>,
  handle: (task: Task<Payload>, context: HandlerContext) => Effect.Effect<unknown, unknown, R>
): TaskHandler<RD | R> => {
  const decode = Payload.decoder(schema)
  return {
    handle: (task, context) =>
      Effect.matchEffect(decode(task.payload), {
        onSuccess: (payload): Effect.Effect<unknown, unknown, R> => handle({ ...task, payload }, context),
        onFailure: (mistakes) => Effect.fail(unfit(task, mistakes))
      })
  }
}

/** A handler for each task type; others, and tasks without a type, are refused as `unknown_task_type`. */
export const byTaskType = <Requirements extends Readonly<Record<string, unknown>>>(
  handlers: {
    readonly [TaskType in keyof Requirements]: TaskHandler<Requirements[TaskType]>
  }
): TaskHandler<Requirements[keyof Requirements]> => {
  const known = new Map<string, TaskHandler<Requirements[keyof Requirements]>>(Object.entries(handlers))
  return {
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
    message: `${subject} is not taken here, where there are ${Array.from(known).join(", ")}.`
  })
}
