import { randomBytes } from "node:crypto"
import { Clock, Deferred, Effect, Exit, Latch, Layer, Option, type Scope } from "effect"
import * as LogThrottle from "../../services/LogThrottle.ts"
import type { RedisError } from "../../services/Redis.ts"
import { CurrentDelivery } from "../observe/CurrentDelivery.ts"
import type { CancelRequest } from "./ControlRecords.ts"
import { ControlStore, maxCancels } from "./ControlStore.ts"
import * as HandlerSchemas from "./HandlerSchemas.ts"
import { RegisteredConsumer, RunningHandler } from "./RegisteredConsumer.ts"
import { DefaultWorkControl, TaskCancelled, type TaskIdentity, type WorkControl } from "./WorkControl.ts"

export interface Options {
  readonly host: string
  readonly pid: number
  /** The version of the program. */
  readonly version: string
}

/** A worker reports and asks for pauses and requests to cancel this often. */
const roundMs = 1_000
const announceEveryMs = 60_000
const pausesKnownWithin = "10 seconds"
/** The maximum number of due times that wait for the next round. */
const maxDueTimes = 10_000

/**
 * Reports the consumers of this process to the `ControlStore` once a second, and carries out pauses and requests to
 * cancel. If the store is unavailable, the last known pauses and requests apply.
 */
export const make = Effect.fnUntraced(function* ({
  host,
  pid,
  version
}: Options): Effect.fn.Return<WorkControl, never, ControlStore | Scope.Scope> {
  const store = yield* ControlStore
  const clock = yield* Clock.Clock
  const logUnavailable = yield* LogThrottle.makePerMinute
  const worker = `${host}:${pid}:${randomBytes(3).toString("hex")}`
  const startedAt = new Date(clock.currentTimeMillisUnsafe()).toISOString()
  const consumers = new Set<RegisteredConsumer>()
  /** Only a filter: the store has the last word on whether a task is cancelled. */
  const cancelledTasks = new Set<string>()
  let pausedQueues: ReadonlySet<string> = new Set()
  let sequence = 0
  const known = Deferred.makeUnsafe<void>()

  const readPauses = Effect.map(store.pauses, (pauses) => {
    pausedQueues = new Set(pauses.map(({ queue }) => queue))
    for (const consumer of consumers) consumer.setPaused(pausedQueues.has(consumer.identity.queue))
  })

  const readCancels = Effect.gen(function* () {
    for (;;) {
      const found = yield* store.cancelsAfter(sequence)
      sequence = found.sequence
      for (const taskId of found.taskIds) cancelledTasks.add(taskId)
      // The store has at most `maxCancels` requests, so the oldest ids of a larger set are no longer requested.
      for (const taskId of cancelledTasks) {
        if (cancelledTasks.size <= 2 * maxCancels) break
        cancelledTasks.delete(taskId)
      }
      yield* Effect.forEach(found.taskIds, cancelRunning, { concurrency: 16, discard: true })
      if (found.taskIds.length === 0) return
    }
  })

  const cancelRunning = (taskId: string) => {
    const handlers = [...consumers].flatMap(({ running }) =>
      [...running].filter(({ task }) => task.cancellable && task.taskId === taskId)
    )
    if (handlers.length === 0) return Effect.void
    return Effect.map(store.cancelOf(taskId), (request) => {
      if (Option.isNone(request)) return
      for (const { cancelled } of handlers) Deferred.doneUnsafe(cancelled, Exit.succeed(request.value))
    })
  }

  const report = Effect.suspend(() =>
    store.report({
      worker,
      host,
      pid,
      version,
      started_at: startedAt,
      seen_at: new Date(clock.currentTimeMillisUnsafe()).toISOString(),
      consumers: [...consumers].map(({ report }) => report)
    })
  )

  const announceHandlers = Effect.fnUntraced(function* (consumer: RegisteredConsumer) {
    const { handled, queue } = consumer.identity
    if (handled === undefined) return
    const schemas = consumer.schemas ?? (yield* HandlerSchemas.written(handled.payloads))
    consumer.schemas = schemas
    const reportedAt = new Date(clock.currentTimeMillisUnsafe()).toISOString()
    yield* store.announceHandlers(
      {
        queue,
        worker,
        version,
        started_at: startedAt,
        reported_at: reportedAt,
        typed_by: handled.typedBy,
        handlers: schemas.handlers,
        left_out: schemas.leftOut
      },
      schemas.texts
    )
  })

  /** Counts that cannot be written are kept for the next round. */
  const writeNumbers = (consumer: RegisteredConsumer) =>
    Effect.gen(function* () {
      const { doneCount, dueTimes, identity } = consumer
      const now = clock.currentTimeMillisUnsafe()
      if (now - consumer.announcedAt >= announceEveryMs) {
        yield* store.announce(identity.group())
        yield* announceHandlers(consumer)
        consumer.announcedAt = now
      }
      if (doneCount > 0) {
        yield* store.addDone(identity.queue, doneCount)
        consumer.doneCount -= doneCount
      }
      if (dueTimes.length > 0) {
        consumer.dueTimes = []
        yield* Effect.onError(store.addDueTimes(identity.queue, dueTimes), () =>
          Effect.sync(() => {
            consumer.dueTimes = [...dueTimes, ...consumer.dueTimes].slice(0, maxDueTimes)
          })
        )
      }
    })

  // Cancels are read before the report is written. A report after a request thereby proves that the worker has read it.
  const round = Effect.all(
    [
      readPauses.pipe(Effect.andThen(Effect.sync(() => Deferred.doneUnsafe(known, Exit.void)))),
      Effect.andThen(readCancels, report),
      Effect.suspend(() => Effect.forEach(consumers, writeNumbers, { concurrency: 16, discard: true }))
    ],
    { concurrency: "unbounded", discard: true }
  ).pipe(
    Effect.catch((error: RedisError) =>
      logUnavailable((suppressed) =>
        Effect.logWarning(
          `Redis does not respond, so this worker learns of no new pauses and requests to cancel${suppressed}`,
          error.message
        )
      )
    )
  )

  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(store.forget(worker), "1 second")))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(round, Effect.sleep(roundMs))))

  const knownInTime = Deferred.await(known).pipe(
    Effect.timeoutOrElse({
      duration: pausesKnownWithin,
      orElse: () =>
        Effect.logWarning("Redis does not respond, so this worker starts without knowing which queues are paused")
    })
  )

  const logUnknown = (taskId: string) => (error: RedisError) =>
    Effect.as(
      logUnavailable((suppressed) =>
        Effect.logWarning(
          `Redis does not respond, so it is unknown whether task ${taskId} was cancelled, and the task is handled${suppressed}`,
          error.message
        )
      ),
      Option.none<CancelRequest>()
    )

  /** A retry or a redelivery may be older than a request that this process has not read yet. */
  const cancelOf = ({ attempt, cancellable, redelivered, taskId }: TaskIdentity) =>
    cancellable && (attempt > 0 || redelivered || cancelledTasks.has(taskId))
      ? Effect.catch(Effect.map(store.cancelOf(taskId), Option.filter(isInForce)), logUnknown(taskId))
      : Effect.succeed(Option.none<CancelRequest>())

  const answer = (request: CancelRequest, state: "interrupting" | "cancelled" | "ended") =>
    Effect.catch(store.answerCancel(request, { state, worker }), (error) =>
      Effect.logWarning(`The answer to the request to cancel task ${request.task_id} was not stored`, error.message)
    )

  /** The handler's own success counts, even if it was interrupted too late. */
  const runUntilCancelled = <A, E, R>(
    handler: Effect.Effect<A, E, R>,
    cancelled: Deferred.Deferred<CancelRequest>
  ): Effect.Effect<Exit.Exit<A, E | TaskCancelled>, never, R> =>
    Effect.suspend(() => {
      let succeeded: Exit.Exit<A, E> | undefined
      const watched = Effect.onExit(handler, (exit) =>
        Effect.sync(() => {
          if (Exit.isSuccess(exit)) succeeded = exit
        })
      )
      const run: Effect.Effect<Exit.Exit<A, E> | CancelRequest, never, R> = Effect.raceFirst(
        Effect.exit(watched),
        Effect.tap(Deferred.await(cancelled), (request) => answer(request, "interrupting"))
      )
      return Effect.flatMap(run, (first): Effect.Effect<Exit.Exit<A, E | TaskCancelled>> => {
        if (Exit.isExit(first)) return Effect.succeed(first)
        return succeeded === undefined
          ? Effect.succeed(Exit.fail(TaskCancelled.of(first)))
          : Effect.as(answer(first, "ended"), succeeded)
      })
    })

  const handleIn = <A, E, R>(consumer: RegisteredConsumer, task: TaskIdentity, handler: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      const running = new RunningHandler(task, clock.currentTimeMillisUnsafe())
      // Registered before the check, so that no request can be missed between the check and the start.
      consumer.running.add(running)
      const timed = Effect.onExit(handler, (exit) =>
        Effect.sync(() => {
          if (!Exit.hasInterrupts(exit)) consumer.onEnded(running, clock.currentTimeMillisUnsafe())
        })
      )
      return Effect.flatMap(
        cancelOf(task),
        (request): Effect.Effect<Exit.Exit<A, E | TaskCancelled>, never, R> =>
          Option.isSome(request)
            ? Effect.succeed(Exit.fail(TaskCancelled.of(request.value)))
            : runUntilCancelled(timed, running.cancelled)
      ).pipe(Effect.ensuring(Effect.sync(() => consumer.running.delete(running))))
    })

  return {
    worker,
    consumer: (identity) => {
      const consumer = new RegisteredConsumer(identity, pausedQueues.has(identity.queue))
      const register = Effect.sync(() => {
        consumer.setPaused(pausedQueues.has(identity.queue))
        consumers.add(consumer)
      })
      return {
        worker,
        gate: {
          known: knownInTime,
          whenPaused: Latch.await(consumer.paused),
          whenOpen: Latch.await(consumer.open)
        },
        whileRunning: (run) =>
          Effect.acquireUseRelease(
            register,
            () => run,
            () => Effect.sync(() => consumers.delete(consumer))
          ),
        handle: (task, handler) => handleIn(consumer, task, handler),
        asDelivery: ({ attempt, taskId }, work) =>
          Effect.provideService(work, CurrentDelivery, { taskId, queue: identity.queue, worker, attempt }),
        confirmCancelled: (taskId) =>
          Effect.flatMap(
            Effect.catch(store.cancelOf(taskId), () => Effect.succeedNone),
            (request) => (Option.isSome(request) ? answer(request.value, "cancelled") : Effect.void)
          ),
        onSettled: () => {
          consumer.doneCount++
        },
        onRetryScheduled: (dueMs) => {
          if (consumer.dueTimes.length < maxDueTimes) consumer.dueTimes.push(dueMs)
        }
      }
    }
  }
})

/** A request that came too late does not apply to a redelivery. */
const isInForce = ({ state }: CancelRequest): boolean => state !== "ended"

/** Provides the control of all consumers of this process that are created below this layer. */
export const layer = (options: Options): Layer.Layer<never, never, ControlStore> =>
  Layer.effect(DefaultWorkControl, make(options))
