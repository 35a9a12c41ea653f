import { Cause, Context, type Effect, Exit, Result, Schema } from "effect"
import type { CancelRequest, QueueGroup } from "./ControlRecords.ts"
import type { HandledPayloads } from "./HandledPayloads.ts"

/** The handler was interrupted, because somebody cancelled the task. */
export class TaskCancelled extends Schema.TaggedError<TaskCancelled>()("TaskCancelled", {
  cancelId: Schema.String,
  reason: Schema.String,
  by: Schema.NullOr(Schema.String),
  message: Schema.String
}) {
  static of({ by, cancel_id: cancelId, reason }: CancelRequest): TaskCancelled {
    const message = `Cancelled${by === null ? "" : ` by ${by}`}: ${reason}`
    return new TaskCancelled({ cancelId, reason, by, message })
  }
}

/** Returns why a handler was cancelled, or `undefined` if it was not. */
export const cancellationOf = (exit: Exit.Exit<unknown, unknown>): TaskCancelled | undefined => {
  if (!Exit.isFailure(exit)) return undefined
  const failure = Cause.findError(exit.cause)
  return Result.isSuccess(failure) && failure.success instanceof TaskCancelled ? failure.success : undefined
}

export interface ConsumerIdentity {
  readonly name: string
  readonly queue: string
  readonly concurrency: number
  /** `undefined` if the consumer takes messages whose payload is not its own to decode, such as statuses. */
  readonly handled?: HandledPayloads | undefined
  /** Called once a minute, because the names of retry queues depend on the broker. */
  readonly group: () => QueueGroup
}

export interface TaskIdentity {
  readonly taskId: string
  readonly taskType: string | null
  /** The number of retries so far. */
  readonly attempt: number
  readonly redelivered: boolean
  /** False for an event of a task, whose handler works on another task. */
  readonly cancellable: boolean
}

/** Tells a consumer when to take messages. */
export interface QueueGate {
  /** Succeeds once the pauses are known. Waits for at most 10 seconds, and then assumes that nothing is paused. */
  readonly known: Effect.Effect<void>
  /** Succeeds while the queue is paused. */
  readonly whenPaused: Effect.Effect<void>
  /** Succeeds while the queue is not paused. */
  readonly whenOpen: Effect.Effect<void>
}

export interface ConsumerControl {
  readonly worker: string
  readonly gate: QueueGate
  /** Registers the consumer while `run` runs. */
  readonly whileRunning: <A, E, R>(run: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /**
   * Runs the handler of a task. A request to cancel interrupts the handler, and the result is then a failure with
   * `TaskCancelled`, unless the handler has succeeded meanwhile. If the task was cancelled before, the handler is not
   * run.
   */
  readonly handle: <A, E, R>(
    task: TaskIdentity,
    handler: Effect.Effect<A, E, R>
  ) => Effect.Effect<Exit.Exit<A, E | TaskCancelled>, never, R>
  /** Makes statuses of the task name this delivery. */
  readonly asDelivery: <A, E, R>(task: TaskIdentity, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Records that the status `cancelled` was published, or that its publish was given up. */
  readonly confirmCancelled: (taskId: string) => Effect.Effect<void>
  readonly onSettled: () => void
  readonly onRetryScheduled: (dueMs: number) => void
}

/** Lets operators see and control the consumers of this process. */
export interface WorkControl {
  readonly worker: string
  readonly consumer: (identity: ConsumerIdentity) => ConsumerControl
}

/** The control of consumers. The roles provide the one of `RedisWorkControl` here. Default: none. */
export const DefaultWorkControl = Context.Reference<WorkControl | undefined>("svc/messaging/DefaultWorkControl", {
  defaultValue: () => undefined
})
