import { Clock, Context, Deferred, type Duration, Effect, Exit, Layer, Option, Queue, Result, Schedule } from "effect"
import { LiveFeed } from "../../live/LiveFeed.ts"
import * as ConsumerOptions from "../../messaging/consume/ConsumerOptions.ts"
import * as DeliveryLoop from "../../messaging/consume/DeliveryLoop.ts"
import type { DeliveryVerdict } from "../../messaging/consume/DeliveryVerdict.ts"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import type { PublishedStatus } from "../../messaging/envelope/StatusEvent.ts"
import * as Timestamp from "../../messaging/envelope/Timestamp.ts"
import * as Observation from "../../messaging/observe/Observation.ts"
import { makeObserve, type ObservationSink } from "../../messaging/observe/ObservationSink.ts"
import { BrokerClient } from "../../messaging/publish/BrokerClient.ts"
import * as HandlerFailure from "../../messaging/retry/HandlerFailure.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import { isStreamOffset } from "../../messaging/topology/StatusPlane.ts"
import * as TopologyPlan from "../../messaging/topology/TopologyPlan.ts"
import { Broker, type Delivery, type Fields } from "../../services/Broker.ts"
import * as LogThrottle from "../../services/LogThrottle.ts"
import { Redis, type RedisError } from "../../services/Redis.ts"
import { defaultPrefix } from "../store/DefaultPrefix.ts"
import { StatusStore } from "../store/StatusStore.ts"
import * as HubMetrics from "./HubMetrics.ts"
import * as LiveStatus from "./LiveStatus.ts"
import { LowWaterMark } from "./LowWaterMark.ts"
import * as StatusMessage from "./StatusMessage.ts"
import * as StreamCheckpoint from "./StreamCheckpoint.ts"
import { TaskOrder } from "./TaskOrder.ts"

export interface Options {
  /** The number of events that are stored concurrently, 1 to 65,535. Limits the hub's memory. Default: 200. */
  readonly prefetch?: number | undefined
  /** The members of `meta` that are removed before an event is stored. Default: `["auth_token"]`. */
  readonly sanitizeMetaKeys?: ReadonlyArray<string> | undefined
  /** The field aliases of incoming events. Default: the aliases of the client. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  /**
   * Arguments of the AMQP subscription. On a stream, `x-stream-offset` is the start of a hub that has no checkpoint. It
   * overrides the setting of the topology. Default: the first event.
   */
  readonly consumeArguments?: Fields | undefined
  readonly observationSink?: ObservationSink | undefined
  /**
   * The prefix of the Redis key that holds the checkpoint of the stream. It must not contain braces. Use the prefix of
   * the store, because two stores must not share a checkpoint. Default: `svc`.
   */
  readonly prefix?: string | undefined
  /** The time that a stopping hub waits for events that are being stored. Default: 10 seconds. */
  readonly stopWithin?: Duration.Input
  /** Called with each event that was stored, also with one that was stored before. Must return at once. */
  readonly onStored?: ((event: PublishedStatus, properties: Delivery["properties"]) => void) | undefined
  /** The delay in seconds before the hub retries after an error of its consumer. Default: 2. */
  readonly idleRetrySeconds?: number
}

interface StreamSession extends StreamCheckpoint.CheckpointSession {
  readonly startedAt: number
  readonly lowWaterMark: LowWaterMark
  checkpointedOffset: number
}

/** Reports the progress of a hub. `started` and `caughtUp` succeed at once if their condition is met already. */
export interface Progress {
  /** Succeeds when the hub has started to consume. The status exchange and the status queue exist then. */
  readonly started: Effect.Effect<void>
  /**
   * Succeeds when the hub has processed every event that was in the status queue at the time of the call. If several
   * hubs share a queue that is not a stream, only the events of this hub count. Waits while the broker or the store is
   * unavailable.
   */
  readonly caughtUp: Effect.Effect<void>
  /**
   * The age of the oldest event that this hub has received and not stored, in milliseconds, by the clocks of two
   * machines. 0 if there is none. `undefined` until the hub has started.
   */
  readonly lagMs: Effect.Effect<number | undefined>
}

/** The progress of the hub that `layer` runs. A program can report that it is ready after `caughtUp` has succeeded. */
export class HubProgress extends Context.Service<HubProgress, Progress>()("svc/status/HubProgress") {}

export interface StatusHub extends Progress {
  /** Stores events until the hub is stopped or interrupted. Never fails. The specification calls this `run_forever`. */
  readonly run: Effect.Effect<void>
  /** Stops consuming. Succeeds when all events in progress are stored or requeued and the checkpoint is saved. */
  readonly stop: Effect.Effect<void>
}

const backoff = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")]).pipe(Schedule.jittered)

/** The hub saves a checkpoint after this time, or earlier if it has processed this number of events. */
const checkpointInterval = { time: "1 second", events: 1_000 } as const

const finalCheckpointTimeout = "2 seconds"

/**
 * Copies events from the status queue or stream of the client's topology into the store.
 *
 * - An event is acknowledged after it is stored. If Redis is unavailable, the hub keeps the event and retries. So an
 *   outage of Redis delays events but loses none.
 * - Events that are larger than the topology's `status_max_event_bytes` are not stored. Clients of this library do not
 *   publish such events.
 * - Delivery is at-least-once. The store recognises an event that is delivered again and keeps one copy.
 * - Events of one task are stored in order. Events of different tasks are stored concurrently.
 *
 * Several hubs may run. On a stream each hub reads all events, and the store keeps one copy of each event. On any other
 * queue the hubs share the events, so two events of one task may be stored in the wrong order.
 *
 * On a stream, a checkpoint in Redis records the offset up to which all events are stored. If Redis loses data, the hub
 * reads the lost events again.
 */
export const make = Effect.fnUntraced(function* (
  options: Options = {}
): Effect.fn.Return<StatusHub, SettingsError, Broker | BrokerClient | StatusStore | Redis> {
  const broker = yield* Broker
  const client = yield* BrokerClient
  const store = yield* StatusStore
  const redis = yield* Redis
  const clock = yield* Clock.Clock
  const { status } = client.topology
  const { isStream, queue } = status
  const refusal = settingsErrorOf(options, isStream)
  if (refusal !== undefined) return yield* refusal
  const { consumeArguments = {}, prefetch = 200, prefix = defaultPrefix } = options

  const observe = yield* makeObserve(options.observationSink)
  const live = (yield* LiveFeed).tasks
  const count = yield* HubMetrics.make
  const [logMalformed, logLeftOut] = [yield* LogThrottle.makePerMinute, yield* LogThrottle.makePerMinute]
  const readEvent = StatusMessage.eventReader({
    aliases: options.aliasConfig ?? client.aliases,
    sanitizeMetaKeys: options.sanitizeMetaKeys,
    maxEventBytes: status.maxEventBytes
  })
  const order = new TaskOrder()
  const checkpoint = StreamCheckpoint.make(redis, broker, {
    key: redis.key(`${prefix}:hub:{${encodeURIComponent(queue)}}`),
    queue
  })
  const checkpointDue = yield* Queue.sliding<void>(1)
  let session: StreamSession | undefined
  let retryingCount = 0
  /** The times of the events, in milliseconds. */
  const unsettled = new Map<Delivery, number>()
  const started = Deferred.makeUnsafe<void>()

  const now = () => Timestamp.ofMillis(clock.currentTimeMillisUnsafe())

  const observeStoreFailure = (event: PublishedStatus, error: unknown) => {
    const { exceptionType, text } = HandlerFailure.of(error)
    observe((at) =>
      Observation.of("StatusHubStoreWriteFailed", at, {
        task_id: event.task_id,
        exception_type: exceptionType,
        exception_message: text
      })
    )
  }

  const retryUntilStored = (event: PublishedStatus) =>
    Effect.acquireUseRelease(
      Effect.suspend(() =>
        retryingCount++ === 0
          ? Effect.logWarning(`The status store is unavailable. The hub keeps events of ${queue} and retries.`)
          : Effect.void
      ),
      () =>
        Effect.retry(
          Effect.tapError(store.store(event), () => Effect.sync(count.storeFailed)),
          { schedule: backoff, while: (error) => !isWrongKeyType(error) }
        ),
      () =>
        Effect.suspend(() =>
          --retryingCount === 0
            ? Effect.logInfo("The status store is available again and receives the waiting events")
            : Effect.void
        )
    )

  /** Leaves out an event that Redis can never store. Retrying it for ever would block the other events of its task. */
  const leaveOut = (event: PublishedStatus, why: string, error: unknown) => {
    count.leftOut()
    observeStoreFailure(event, error)
    const which = `event ${JSON.stringify(event.event_id)} of task ${JSON.stringify(event.task_id)}`
    return logLeftOut((suppressed) =>
      Effect.logError(`${why}: ${which} is not stored and will be missing from the task's history${suppressed}`, error)
    )
  }

  const storeEvent = (event: PublishedStatus) =>
    Effect.map(
      Effect.catch(store.store(event), (error) => {
        count.storeFailed()
        if (isWrongKeyType(error)) return Effect.fail(error)
        observeStoreFailure(event, error)
        return retryUntilStored(event)
      }),
      (outcome) => {
        if (outcome === "duplicate") return count.duplicate()
        count.stored()
        if (live.isFollowed) live.add("status", () => LiveStatus.describe(event))
        count.recordLag(clock.currentTimeMillisUnsafe() - Timestamp.toMillis(event.timestamp))
        observe((at) =>
          Observation.of("StatusHubStoredEvent", at, {
            task_id: event.task_id,
            event_id: event.event_id,
            status: event.status
          })
        )
      }
    )

  const reportMalformed = ({ detail, reason, taskId }: StatusMessage.Malformed, { properties }: Delivery) => {
    count.malformed()
    const task_id = taskId ?? taskIdHeader(properties)
    observe((at) => Observation.of("StatusHubMalformedMessage", at, { task_id, reason }))
    return logMalformed((suppressed) =>
      Effect.logWarning(`A message of ${queue} is not a status event and is not stored: ${reason}${suppressed}`, detail)
    )
  }

  const observeLeftOutMembers = ({ event: { event_id, task_id }, droppedMembers }: StatusMessage.ReceivedStatus) => {
    if (droppedMembers.length === 0) return
    const members = droppedMembers.join(",")
    observe((at) => Observation.of("StatusHubMembersLeftOut", at, { task_id, event_id, members }))
  }

  const requestCheckpoint = () => {
    if (session === undefined) return
    const { checkpointedOffset, lowWaterMark } = session
    if ((lowWaterMark.latest?.offset ?? -1) - checkpointedOffset >= checkpointInterval.events)
      Queue.offerUnsafe(checkpointDue, undefined)
  }

  /** Registers the delivery synchronously, because events of a task must be stored in the order of their deliveries. */
  const handleDelivery = (delivery: Delivery): Effect.Effect<DeliveryVerdict> => {
    unsettled.set(delivery, clock.currentTimeMillisUnsafe())
    return Effect.onExit(processDelivery(delivery), () => Effect.sync(() => unsettled.delete(delivery)))
  }

  const processDelivery = (delivery: Delivery): Effect.Effect<DeliveryVerdict> => {
    const verdict = { settle: "ack" as const, ...(isStream && { settled: trackOffset(delivery) }) }
    const received = readEvent(delivery.content, now())
    if (Result.isFailure(received))
      return Effect.as(afterCapacity(reportMalformed(received.failure, delivery)), verdict)
    const { event } = received.success
    unsettled.set(delivery, Timestamp.toMillis(event.timestamp))
    observeLeftOutMembers(received.success)
    const stored = Effect.map(order.runInOrder(event.task_id, afterCapacity(storeOrLeaveOut(event))), () =>
      options.onStored?.(event, delivery.properties)
    )
    return Effect.as(stored, verdict)
  }

  const storeOrLeaveOut = (event: PublishedStatus) =>
    storeEvent(event).pipe(
      Effect.catch((error) => leaveOut(event, "A Redis key of the task has the wrong type and must be deleted", error)),
      Effect.catchDefect((defect) => leaveOut(event, "The status store threw an unexpected error", defect))
    )

  /** Runs `stored` after `lowWaterMark` has room again. This limits the number of messages in memory. */
  const afterCapacity = (stored: Effect.Effect<void>) =>
    session?.lowWaterMark.isFull === true ? Effect.andThen(session.lowWaterMark.whenNotFull, stored) : stored

  const trackOffset = ({ content, epoch, properties }: Delivery) => {
    const offset = StreamCheckpoint.offsetOf(properties)
    const markDone = offset === undefined ? undefined : session?.lowWaterMark.track(epoch, offset, content)
    return () => {
      markDone?.()
      requestCheckpoint()
    }
  }

  const saveCheckpoint = (read: StreamSession) =>
    Effect.suspend(() => {
      const { latest } = read.lowWaterMark
      return Effect.map(read.advance(latest), (outcome) => {
        if (outcome === "moved" && latest !== undefined) read.checkpointedOffset = latest.offset
        return outcome
      })
    })

  /** Runs whenever the hub opens a channel, because the stream may have been redeclared or have lost messages. */
  const startSession = Effect.gen(function* () {
    if (session !== undefined) yield* saveCheckpoint(session)
    session = undefined
    const initial = consumeArguments["x-stream-offset"] ?? status.initialOffset ?? "first"
    const opened = yield* checkpoint.start(initial)
    session = {
      ...opened,
      lowWaterMark: new LowWaterMark(),
      checkpointedOffset: -1,
      startedAt: clock.currentTimeMillisUnsafe()
    }
    return { ...consumeArguments, "x-stream-offset": opened.from }
  })

  const loop = DeliveryLoop.make(broker, {
    name: "svc-status-hub",
    queue,
    concurrency: prefetch,
    arguments: isStream ? startSession : consumeArguments,
    prepare: Effect.all(
      [
        client.initialize,
        TopologyPlan.declare(broker, client.topology, ConsumerOptions.inboxDeclarations(client.topology, queue))
      ],
      { discard: true }
    ),
    work: handleDelivery,
    onStarted: () => {
      Deferred.doneUnsafe(started, Exit.void)
      observe((at) => Observation.of("StatusHubStarted", at, { queue_name: queue }))
    },
    onError: ({ exceptionType, text }, retryDelaySeconds) =>
      observe((at) =>
        Observation.of("StatusHubLoopError", at, {
          exception_type: exceptionType,
          exception_message: text,
          retry_delay_seconds: retryDelaySeconds
        })
      ),
    // The check for a lost subscription needs the consumer count of the queue. RabbitMQ reports none for a stream.
    ...(isStream && { consumeTimeoutSeconds: null }),
    idleRetrySeconds: options.idleRetrySeconds,
    stopWithin: options.stopWithin
  })

  /** Runs even if no event was stored, because saving the checkpoint also detects whether Redis has lost data. */
  const checkpointOrRestart = Effect.gen(function* () {
    const read = session
    // If a new session has started meanwhile, this outcome does not apply to the new session.
    if (read === undefined || (yield* saveCheckpoint(read)) === "moved" || session !== read) return
    yield* Effect.logWarning(
      `Redis may have lost the latest events of stream ${queue}. The hub reads these events again.`
    )
    session = undefined
    yield* loop.stop
  }).pipe(Effect.ignore)

  const checkpointing = Effect.forever(
    Effect.andThen(Effect.timeoutOption(Queue.take(checkpointDue), checkpointInterval.time), checkpointOrRestart)
  )

  /**
   * Returns whether all events up to the offset `end` are stored. A hub that starts at a later event may receive none.
   * Such a hub counts as up to date if no event arrives for a second.
   */
  const isStoredUpTo = (end: number): boolean => {
    if (session === undefined) return false
    const { from, lowWaterMark, startedAt } = session
    if (lowWaterMark.latest !== undefined) return lowWaterMark.latest.offset >= end
    if (typeof from === "number" || from === "first") return (typeof from === "number" ? from : 0) > end
    return unsettled.size === 0 && clock.currentTimeMillisUnsafe() - startedAt > firstDeliveryWaitMs
  }

  const caughtUp = Effect.gen(function* () {
    yield* Deferred.await(started)
    if (isStream) {
      const end = yield* StreamCheckpoint.lastOffsetOf(broker, queue)
      return yield* pollUntil(Effect.sync(() => isStoredUpTo(end)))
    }
    yield* pollUntil(
      Effect.map(broker.inspect(queue), Option.match({ onNone: () => true, onSome: ({ messages }) => messages === 0 }))
    )
    // The broker responds to the ping after the earlier deliveries, so this process has received them now.
    yield* broker.ping
    const pending = [...unsettled.keys()]
    yield* pollUntil(Effect.sync(() => !pending.some((delivery) => unsettled.has(delivery))))
  }).pipe(Effect.retry(Schedule.spaced("1 second")), Effect.orDie)

  const lagMs = Effect.sync(() => {
    if (!Deferred.isDoneUnsafe(started)) return undefined
    // events arrive in the order in which they were published, so that the first is the oldest
    const [oldest] = unsettled.values()
    return oldest === undefined ? 0 : Math.max(0, clock.currentTimeMillisUnsafe() - oldest)
  })

  let current: { isStopping: boolean; readonly ended: Deferred.Deferred<void> } | undefined

  const consuming = isStream
    ? Effect.raceFirst(Effect.repeat(loop.run, { while: () => current?.isStopping !== true }), checkpointing).pipe(
        Effect.ensuring(Effect.suspend(() => Effect.timeoutOption(checkpointOrRestart, finalCheckpointTimeout)))
      )
    : loop.run

  return {
    started: Deferred.await(started),
    caughtUp,
    lagMs,
    run: Effect.suspend(() => {
      if (current !== undefined) return Effect.die(new Error("The status hub is running already: call run only once."))
      const running = { isStopping: false, ended: Deferred.makeUnsafe<void>() }
      current = running
      return Effect.ensuring(
        consuming,
        Effect.sync(() => {
          current = undefined
          Deferred.doneUnsafe(running.ended, Exit.void)
        })
      )
    }),
    stop: Effect.suspend(() => {
      if (current === undefined) return Effect.void
      const { ended } = current
      current.isStopping = true
      return Effect.andThen(loop.stop, Deferred.await(ended))
    })
  }
})

const pollUntil = <E>(holds: Effect.Effect<boolean, E>) =>
  Effect.asVoid(Effect.repeat(holds, { schedule: Schedule.spaced("50 millis"), until: (isSo) => isSo }))

/** A hub assumes that the broker delivers the first message to a new consumer within this time. */
const firstDeliveryWaitMs = 1_000

/** Runs a hub for the lifetime of the layer. When the layer closes, the hub stops gracefully. */
export const layer = (
  options?: Options
): Layer.Layer<HubProgress, SettingsError, Broker | BrokerClient | StatusStore | Redis> =>
  Layer.effect(
    HubProgress,
    Effect.gen(function* () {
      const { caughtUp, lagMs, run, started } = yield* make(options)
      yield* Effect.forkScoped(run)
      return { caughtUp, lagMs, started }
    })
  )

/** True if a key has the wrong type. Redis then rejects every write to the key until the key is deleted. */
const isWrongKeyType = (error: RedisError): boolean => /\bWRONGTYPE\b/.test(error.message)

/** Returns the task id from the header that clients of this library set. */
const taskIdHeader = ({ headers }: Delivery["properties"]): string | null => {
  const taskId = headers?.["task_id"]
  return typeof taskId === "string" ? taskId : null
}

const settingsErrorOf = (options: Options, isStream: boolean): SettingsError | undefined => {
  const issues = new ValidationIssues()
  const { prefix = defaultPrefix } = options
  issues.checkInteger("prefetch", options.prefetch, 1, 65_535)
  if (prefix.trim() === "" || /[{}]/.test(prefix)) issues.addMistake("prefix", "must not be blank or contain { or }")
  const { idleRetrySeconds: pause } = options
  if (pause !== undefined && !(pause > 0 && pause <= 86_400)) {
    issues.addMistake("idleRetrySeconds", "must be more than 0 and at most 86400 seconds (one day)")
  }
  ConsumerOptions.checkDuration("stopWithin", options.stopWithin, issues, "zero")
  ConsumerOptions.checkPriority(options.consumeArguments, issues)
  const offset = options.consumeArguments?.["x-stream-offset"]
  if (offset !== undefined && !isStream) {
    issues.addMistake(
      "consumeArguments.x-stream-offset",
      "applies only to streams, and the status queue is not a stream"
    )
  } else if (offset !== undefined && !isStreamOffset(offset)) {
    const problem = "must be first, last, next, an offset of 0 or more, a Date, or an age such as 1h"
    issues.addMistake("consumeArguments.x-stream-offset", problem)
  }
  return issues.mistakes.length > 0 ? SettingsError.of("StatusHub", issues.mistakes) : undefined
}
