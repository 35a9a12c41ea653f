import { Context, type Duration, Effect, Layer, Option, Schema } from "effect"
import type { CancelRequest } from "../../messaging/control/ControlRecords.ts"
import { type CancelInput, ControlStore, maxCancels } from "../../messaging/control/ControlStore.ts"
import type { RedisError } from "../../services/Redis.ts"
import { StatusStore } from "../store/StatusStore.ts"
import { TerminalStatusSet } from "../store/TerminalStatusSet.ts"

/** The task has ended, so there is nothing to cancel. */
export class TaskEnded extends Schema.TaggedError<TaskEnded>()("TaskEnded", {
  taskId: Schema.String,
  status: Schema.String
}) {
  override get message() {
    return `Task ${this.taskId} has ended with the status ${this.status}, so there is nothing to cancel. GET /status/{task_id} shows how it ended.`
  }
}

export class TooManyCancels extends Schema.TaggedError<TooManyCancels>()("TooManyCancels", {}) {
  override get message() {
    return `There are ${maxCancels.toLocaleString("en")} requests to cancel that no worker has answered yet. Withdraw requests that are no longer needed, or purge the queue instead.`
  }
}

/**
 * - `cancelled`: a worker has interrupted the handler, and the task has the status `cancelled`.
 * - `interrupting`: a worker has interrupted the handler, which has not ended yet.
 * - `not_held`: no worker holds the task. If a message of the task waits, the worker that gets it will not handle it.
 */
export interface Cancellation {
  readonly request: CancelRequest
  readonly outcome: "cancelled" | "interrupting" | "not_held"
}

/**
 * The outcome of a request to cancel a task:
 *
 * - `requested`: no worker has ended the task yet.
 * - `cancelled`: a worker has ended the task, which has the status `cancelled`.
 * - `ended`: the task has ended in another way.
 * - `withdrawn`: the request was taken back.
 */
export type RequestOutcome = "requested" | "cancelled" | "ended" | "withdrawn"

export interface Options {
  readonly terminalStatuses?: TerminalStatusSet | undefined
  /** The time to wait for a worker's answer. Default: 5 seconds. */
  readonly answerWithin?: Duration.Input | undefined
}

export class TaskCancellation extends Context.Service<
  TaskCancellation,
  {
    /** Asks for it, and waits for the worker's answer. */
    readonly cancel: (input: CancelInput) => Effect.Effect<Cancellation, RedisError | TaskEnded | TooManyCancels>
    /** Asks for it, and does not wait. Idempotent while the request has no answer. */
    readonly request: (input: CancelInput) => Effect.Effect<CancelRequest, RedisError | TaskEnded | TooManyCancels>
    readonly requestOf: (taskId: string) => Effect.Effect<Option.Option<CancelRequest>, RedisError>
    /** Returns the request of each task, in the order of the ids. */
    readonly requestsOf: (
      taskIds: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<Option.Option<CancelRequest>>, RedisError>
    /** Returns what became of the request that `requestsOf` has found. */
    readonly outcomeOf: (
      taskId: string,
      request: Option.Option<CancelRequest>
    ) => Effect.Effect<RequestOutcome, RedisError>
    /**
     * Returns whether a request was withdrawn. A handler that is interrupted already is not continued. With `cancelId`,
     * withdraws only this request, and only if it has had no effect yet.
     */
    readonly withdraw: (taskId: string, cancelId?: string) => Effect.Effect<boolean, RedisError>
  }
>()("svc/status/TaskCancellation") {}

const lookEvery = "100 millis"

const make = Effect.fnUntraced(function* ({
  answerWithin = "5 seconds",
  terminalStatuses = new TerminalStatusSet()
}: Options) {
  const store = yield* ControlStore
  const statuses = yield* StatusStore

  /** A worker reads requests before it reports. Its second report after a request proves that it has read the request. */
  const makeHolders = Effect.map(store.workers, (before) => {
    const reports = new Map(before.map(({ seen_at, worker }) => [worker, { seenAt: seen_at, count: 0 }]))
    return Effect.map(store.workers, (now) => {
      for (const { seen_at, worker } of now) {
        const known = reports.get(worker)
        if (known !== undefined && known.seenAt !== seen_at) {
          reports.set(worker, { seenAt: seen_at, count: known.count + 1 })
        }
      }
      const alive = new Set(now.map(({ worker }) => worker))
      return ![...reports].some(([worker, { count }]) => alive.has(worker) && count < 2)
    })
  })

  const ended = Effect.fnUntraced(function* (taskId: string) {
    const latest = yield* statuses.latest(taskId)
    return latest !== undefined && terminalStatuses.has(latest.status) ? latest.status : undefined
  })

  const ask = Effect.fn("TaskCancellation.request")(function* (input: CancelInput) {
    const status = yield* ended(input.taskId)
    if (status !== undefined) return yield* new TaskEnded({ taskId: input.taskId, status })
    const requested = yield* store.requestCancel(input)
    return requested === "full" ? yield* new TooManyCancels() : requested
  })

  const cancel = Effect.fn("TaskCancellation.cancel")(function* (input: CancelInput) {
    const requested = yield* ask(input)
    const allHaveRead = yield* makeHolders
    const answer = Effect.gen(function* () {
      for (;;) {
        const found = yield* store.cancelOf(input.taskId)
        const request = Option.getOrElse(found, () => requested)
        if (request.state === "cancelled") return { request, outcome: "cancelled" as const }
        if (request.state === "ended") return yield* new TaskEnded({ taskId: input.taskId, status: "completed" })
        if (request.state === "requested" && (yield* allHaveRead)) return { request, outcome: "not_held" as const }
        yield* Effect.sleep(lookEvery)
      }
    })
    const answered = yield* Effect.timeoutOption(answer, answerWithin)
    if (Option.isSome(answered)) return answered.value
    const request = Option.getOrElse(yield* store.cancelOf(input.taskId), () => requested)
    return { request, outcome: request.state === "requested" ? ("not_held" as const) : ("interrupting" as const) }
  })

  /** A task may end without its worker's answer, as that of a worker without a `workControl` does. */
  const outcomeOf = Effect.fnUntraced(function* (taskId: string, found: Option.Option<CancelRequest>) {
    const answer = Option.map(found, ({ state }) => state)
    if (Option.isSome(answer) && (answer.value === "cancelled" || answer.value === "ended")) return answer.value
    const status = yield* ended(taskId)
    if (status !== undefined) return isCancelled(status) ? ("cancelled" as const) : ("ended" as const)
    return Option.isSome(answer) ? ("requested" as const) : ("withdrawn" as const)
  })

  return TaskCancellation.of({
    cancel,
    request: ask,
    requestOf: store.cancelOf,
    requestsOf: store.cancelsOf,
    outcomeOf,
    withdraw: store.withdrawCancel
  })
})

const isCancelled = (status: string): boolean => status.trim().toLowerCase() === "cancelled"

export const layer = (options: Options = {}): Layer.Layer<TaskCancellation, never, ControlStore | StatusStore> =>
  Layer.effect(TaskCancellation, make(options))
