import { Clock, Context, Deferred, type Duration, Effect, Exit, Layer, Option, Queue, Result, Schedule } from "effect"
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
import { Redis, type RedisError } from "../../services/Redis.ts"
import { defaultPrefix } from "../store/DefaultPrefix.ts"
import * as LogThrottle from "../store/LogThrottle.ts"
import { StatusStore } from "../store/StatusStore.ts"
import * as HubMetrics from "./HubMetrics.ts"
import { LowWaterMark } from "./LowWaterMark.ts"
import * as StatusMessage from "./StatusMessage.ts"
import * as StreamCheckpoint from "./StreamCheckpoint.ts"
import { TaskOrder } from "./TaskOrder.ts"

export interface Options {
  /** Events that are held at once, and so stored at once: 1 to 65,535. With their sizes the bound of its memory. Default: 200. */
  readonly prefetch?: number | undefined
  /** Members of an event's `meta` that are not stored. Default: `["auth_token"]`. */
  readonly sanitizeMetaKeys?: ReadonlyArray<string> | undefined
  /** Default: the client's. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  /**
   * Of the subscription. `x-stream-offset` says where a hub begins that nobody has run before, over what the topology
   * says; by default with the first event. Later it goes on where it stopped.
   */
  readonly consumeArguments?: Fields | undefined
  readonly observationSink?: ObservationSink | undefined
  /**
   * Of the key that says how far a stream is stored; the same as that of the store that is filled, so that two stores of
   * one stream do not share it. Without braces. Default: `svc`, as of the store.
   */
  readonly prefix?: string | undefined
  /** For events that are being stored when the hub stops. Default: 10 seconds. */
  readonly stopWithin?: Duration.Input
  /** The pause after an error of the hub itself, in seconds. Default: 2. */
  readonly idleRetrySeconds?: number
}

interface StreamSession extends StreamCheckpoint.CheckpointSession {
  readonly startedAt: number
  readonly lowWaterMark: LowWaterMark
  /** The last offset that is written down. */
  checkpointedOffset: number
}

/** What others may wait for. Both succeed at once where it is so already. */
export interface Progress {
  /** Until the hub consumes for the first time: then the status exchange and its queue are there. */
  readonly started: Effect.Effect<void>
  /**
   * Until everything is stored, or left out, that the status queue held when this was asked. Of several hubs on a queue
   * that is no stream, it is what this one took. Waits as long as broker or store are away.
   */
  readonly caughtUp: Effect.Effect<void>
}

/** How far the hub of `layer` is: for a program that is ready only then. */
export class HubProgress extends Context.Service<HubProgress, Progress>()("svc/status/HubProgress") {}

export interface StatusHub extends Progress {
  /** The specification's `run_forever`: stores events until it is stopped or interrupted. Fails never. */
  readonly run: Effect.Effect<void>
  /** Takes no further event; succeeds when those that were taken are stored or given back, and where it was is kept. */
  readonly stop: Effect.Effect<void>
}

/** Between two tries of an event that the store does not take. */
const backoff = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")]).pipe(Schedule.jittered)

/** How far a stream is stored is written down so often, and after so many events. */
const checkpointInterval = { time: "1 second", events: 1_000 } as const

/** For the last time, when the hub stops. */
const finalCheckpointTimeout = "2 seconds"

/**
 * Copies the status queue or stream of the client's topology into the store. An event is acknowledged when it is stored;
 * what the store does not take is held, and tried again until it does, so an outage of Redis costs time and nothing else.
 * Events above the topology's `status_max_event_bytes` are left out as malformed; the library's clients publish none.
 * A crash gives events again that are stored, and the store knows them. Events of one task are stored in their order,
 * those of different tasks at once.
 *
 * Several hubs may run. On a stream each reads everything, and the store keeps one of each event. On a queue they
 * share the events, and two events of one task that two hubs hold may be stored in either order.
 *
 * A stream is read on from where it is stored, which a key in Redis says, with every channel to the broker: it may be
 * another stream by then. Should Redis come back with less than it had, what was lost is read again.
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
  const count = yield* HubMetrics.make
  const [throttledMalformed, throttledLeftOut] = [yield* LogThrottle.make, yield* LogThrottle.make]
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
  /** What is read of the stream since the last start. */
  let session: StreamSession | undefined
  /** Events that the store has refused at least once, and not taken yet. */
  let retryingCount = 0
  /** Deliveries that are not settled yet. */
  const unsettled = new Set<Delivery>()
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
        retryingCount++ === 0 ? Effect.logWarning(`The store takes no statuses: ${queue} waits`) : Effect.void
      ),
      () =>
        Effect.retry(
          Effect.tapError(store.store(event), () => Effect.sync(count.storeFailed)),
          { schedule: backoff, while: (error) => !isWrongKeyType(error) }
        ),
      () =>
        Effect.suspend(() => (--retryingCount === 0 ? Effect.logInfo(`The store takes statuses again`) : Effect.void))
    )

  /** What can never be stored would be tried for ever, and hold up the rest: it is left out, loudly. */
  const leaveOut = (event: PublishedStatus, why: string, error: unknown) => {
    count.leftOut()
    observeStoreFailure(event, error)
    const which = `event ${JSON.stringify(event.event_id)} of task ${JSON.stringify(event.task_id)}`
    return throttledLeftOut((more) => Effect.logError(`${why}: ${which} is left out${more}`, error))
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
    return throttledMalformed((more) =>
      Effect.logWarning(`A message of ${queue} is no status event: ${reason}${more}`, detail)
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

  /** Before anything is awaited: deliveries come in their order, and that is the order of a task's events. */
  const handleDelivery = (delivery: Delivery): Effect.Effect<DeliveryVerdict> => {
    unsettled.add(delivery)
    return Effect.onExit(processDelivery(delivery), () => Effect.sync(() => unsettled.delete(delivery)))
  }

  const processDelivery = (delivery: Delivery): Effect.Effect<DeliveryVerdict> => {
    const verdict = { settle: "ack" as const, ...(isStream && { settled: trackOffset(delivery) }) }
    const received = readEvent(delivery.content, now())
    if (Result.isFailure(received))
      return Effect.as(afterCapacity(reportMalformed(received.failure, delivery)), verdict)
    const { event } = received.success
    observeLeftOutMembers(received.success)
    return Effect.as(order.runInOrder(event.task_id, afterCapacity(storeOrLeaveOut(event))), verdict)
  }

  const storeOrLeaveOut = (event: PublishedStatus) =>
    storeEvent(event).pipe(
      Effect.catch((error) => leaveOut(event, "A key of the task in Redis is of somebody else's kind", error)),
      Effect.catchDefect((defect) => leaveOut(event, "The store broke", defect))
    )

  /** Too far beyond an event that is not taken. */
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

  /** Writes down how far everything is stored. */
  const saveCheckpoint = (read: StreamSession) =>
    Effect.suspend(() => {
      const { latest } = read.lowWaterMark
      return Effect.map(read.advance(latest), (outcome) => {
        if (outcome === "moved" && latest !== undefined) read.checkpointedOffset = latest.offset
        return outcome
      })
    })

  /** For every channel: the stream may have been declared again since the one before, or have lost its end. */
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
    // a stream has messages and counts no consumers, so silence says nothing of it
    ...(isStream && { consumeTimeoutSeconds: null }),
    idleRetrySeconds: options.idleRetrySeconds,
    stopWithin: options.stopWithin
  })

  /** Also where nothing was stored since: Redis may have lost what was. */
  const checkpointOrRestart = Effect.gen(function* () {
    const read = session
    // or another start comes first
    if (read === undefined || (yield* saveCheckpoint(read)) === "moved" || session !== read) return
    yield* Effect.logWarning(`Redis may have lost what was stored of stream ${queue} last: it is read again from there`)
    session = undefined
    yield* loop.stop
  }).pipe(Effect.ignore)

  const checkpointing = Effect.forever(
    Effect.andThen(Effect.timeoutOption(Queue.take(checkpointDue), checkpointInterval.time), checkpointOrRestart)
  )

  /** Whether the stream is stored up to an offset. A hub that begins later than the first event may get nothing before. */
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
    // what was under way to this process arrives before the answer
    yield* broker.ping
    const pending = [...unsettled]
    yield* pollUntil(Effect.sync(() => !pending.some((delivery) => unsettled.has(delivery))))
  }).pipe(Effect.retry(Schedule.spaced("1 second")), Effect.orDie)

  let current: { isStopping: boolean; readonly ended: Deferred.Deferred<void> } | undefined

  const consuming = isStream
    ? Effect.raceFirst(
        // it ends when it is stopped, and when it has to begin anew
        Effect.repeat(loop.run, { while: () => current?.isStopping !== true }),
        checkpointing
      ).pipe(Effect.ensuring(Effect.suspend(() => Effect.timeoutOption(checkpointOrRestart, finalCheckpointTimeout))))
    : loop.run

  return {
    started: Deferred.await(started),
    caughtUp,
    run: Effect.suspend(() => {
      if (current !== undefined) return Effect.die(new Error("The status hub is running already."))
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

/** For the broker to deliver what a consumer begins with. */
const firstDeliveryWaitMs = 1_000

/** A hub for as long as the layer is there; it stops as `stop` does. */
export const layer = (
  options?: Options
): Layer.Layer<HubProgress, SettingsError, Broker | BrokerClient | StatusStore | Redis> =>
  Layer.effect(
    HubProgress,
    Effect.gen(function* () {
      const { caughtUp, run, started } = yield* make(options)
      yield* Effect.forkScoped(run)
      return { caughtUp, started }
    })
  )

/** Not of the store, which comes back, but of one key: until somebody deletes it, Redis refuses whatever is written there. */
const isWrongKeyType = (error: RedisError): boolean => /\bWRONGTYPE\b/.test(error.message)

/** The header that clients of the library send beside the body. */
const taskIdHeader = ({ headers }: Delivery["properties"]): string | null => {
  const taskId = headers?.["task_id"]
  return typeof taskId === "string" ? taskId : null
}

const settingsErrorOf = (options: Options, isStream: boolean): SettingsError | undefined => {
  const findings = new ValidationIssues()
  const { prefix = defaultPrefix } = options
  findings.checkInteger("prefetch", options.prefetch, 1, 65_535)
  if (prefix.trim() === "" || /[{}]/.test(prefix)) findings.addMistake("prefix", "must not be blank, or hold { or }")
  const { idleRetrySeconds: pause } = options
  if (pause !== undefined && !(pause > 0 && pause <= 86_400)) {
    findings.addMistake("idleRetrySeconds", "must be more than 0 and at most a day, in seconds")
  }
  ConsumerOptions.checkDuration("stopWithin", options.stopWithin, findings, "zero")
  ConsumerOptions.checkPriority(options.consumeArguments, findings)
  const offset = options.consumeArguments?.["x-stream-offset"]
  if (offset !== undefined && !isStream) {
    findings.addMistake("consumeArguments.x-stream-offset", "is of streams alone, and the status queue is none")
  } else if (offset !== undefined && !isStreamOffset(offset)) {
    const problem = "must be first, last, next, an offset of 0 or more, a Date, or an age such as 1h"
    findings.addMistake("consumeArguments.x-stream-offset", problem)
  }
  return findings.mistakes.length > 0 ? SettingsError.of("StatusHub", findings.mistakes) : undefined
}
