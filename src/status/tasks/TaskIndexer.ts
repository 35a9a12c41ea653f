import {
  Clock,
  Context,
  Deferred,
  type Duration,
  Effect,
  Exit,
  Layer,
  Queue,
  Result,
  Schedule,
  type Scope
} from "effect"
import * as DeliveryLoop from "../../messaging/consume/DeliveryLoop.ts"
import type { DeliveryVerdict } from "../../messaging/consume/DeliveryVerdict.ts"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import type { PublishedStatus } from "../../messaging/envelope/StatusEvent.ts"
import * as Timestamp from "../../messaging/envelope/Timestamp.ts"
import * as CurrentDelivery from "../../messaging/observe/CurrentDelivery.ts"
import { BrokerClient } from "../../messaging/publish/BrokerClient.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import { Broker, type Delivery } from "../../services/Broker.ts"
import * as LogThrottle from "../../services/LogThrottle.ts"
import { Redis } from "../../services/Redis.ts"
import { digestOf } from "../hub/LowWaterMark.ts"
import * as StatusMessage from "../hub/StatusMessage.ts"
import * as StreamCheckpoint from "../hub/StreamCheckpoint.ts"
import * as RedisStatusStore from "../store/RedisStatusStore.ts"
import { StatusStore } from "../store/StatusStore.ts"
import { TerminalStatusSet } from "../store/TerminalStatusSet.ts"
import { type ChangeOptions, changeOf, maxAttributes, merge, noFacts, type TaskChange } from "./IndexedTask.ts"
import { TaskIndex } from "./TaskIndex.ts"

export interface Options {
  /** Up to 8 members of `meta` whose texts and numbers are attributes of a task, for filters. Default: none. */
  readonly attributes?: ReadonlyArray<string> | undefined
  readonly terminalStatuses?: TerminalStatusSet | undefined
  /** The prefix of the status store, whose statuses are indexed at the first start. Default: `svc`. */
  readonly storePrefix?: string | undefined
  /** The members of `meta` that are never indexed. Default: `["auth_token"]`. */
  readonly sanitizeMetaKeys?: ReadonlyArray<string> | undefined
  /** The time between two pages of stored statuses that are indexed at the first start. Default: 50 ms. */
  readonly backfillPause?: Duration.Input | undefined
}

/** How up to date the index is. */
export interface IndexState {
  /** True if the index has read all statuses up to a moment ago. */
  readonly caughtUp: boolean
  /** True if the statuses that were stored before the first start are in the index. */
  readonly backfilled: boolean
  /** Why the index does not accept tasks now. `null` while it does. */
  readonly failure: string | null
}

export class TaskIndexer extends Context.Service<
  TaskIndexer,
  {
    readonly attributes: ReadonlyArray<string>
    readonly state: Effect.Effect<IndexState>
    /** Indexes a status that the hub has stored. Only for status queues that are no streams. Never waits. */
    readonly offer: (event: PublishedStatus, properties: Delivery["properties"]) => void
  }
>()("svc/status/TaskIndexer") {}

/** Statuses that wait for the index. The stream keeps all others; a queue that is no stream does not. */
const capacity = 2_000
const batchSize = 500
const caughtUpAfterMs = 5_000

const backoff = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")]).pipe(Schedule.jittered)

const trimEvery = "10 minutes"

interface Waiting {
  readonly change: TaskChange | undefined
  /** The place in the stream. `undefined` for a status of the hub. */
  readonly place: { readonly offset: number; readonly content: Uint8Array } | undefined
  readonly session: number
  readonly recorded: Deferred.Deferred<void>
}

/**
 * Copies statuses into the `TaskIndex`. It reads the status stream itself, from a position that is stored with the tasks.
 * A slow or unavailable index thereby delays nothing else, and continues where it was.
 *
 * A status queue that is no stream has one reader, the hub. It passes on what it has stored. What does not fit into the
 * memory of 2,000 statuses is read from the status store later.
 */
const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<
  TaskIndexer["Service"],
  SettingsError,
  Broker | BrokerClient | StatusStore | Redis | TaskIndex | Scope.Scope
> {
  const {
    attributes = [],
    backfillPause = "50 millis",
    storePrefix,
    terminalStatuses = new TerminalStatusSet()
  } = options
  const refusal = settingsErrorOf(attributes)
  if (refusal !== undefined) return yield* refusal
  const broker = yield* Broker
  const client = yield* BrokerClient
  const index = yield* TaskIndex
  const statuses = yield* StatusStore
  const redis = yield* Redis
  const clock = yield* Clock.Clock
  const logFailure = yield* LogThrottle.makePerMinute
  const { status } = client.topology
  const changeOptions: ChangeOptions = { attributes, isTerminal: (name) => terminalStatuses.has(name) }
  const readEvent = StatusMessage.eventReader({
    aliases: client.aliases,
    sanitizeMetaKeys: options.sanitizeMetaKeys,
    maxEventBytes: status.maxEventBytes
  })
  const source = `stream:${status.queue}`
  const backfillSource = `statuses:${storePrefix ?? "svc"}`

  const waiting = yield* Queue.dropping<Waiting>(capacity)
  let session = 0
  let failure: string | null = null
  let lastDeliveryAt = clock.currentTimeMillisUnsafe()
  let waitingCount = 0
  let backfilled = false
  /** True if statuses were dropped that only the status store has. */
  let hasGap = false

  const retried = <A, E extends { readonly message: string }, R>(
    work: Effect.Effect<A, E, R>
  ): Effect.Effect<A, never, R> =>
    work.pipe(
      Effect.tapError((error) =>
        Effect.andThen(
          Effect.sync(() => {
            failure = error.message
          }),
          logFailure((suppressed) =>
            Effect.logWarning(
              `The index of tasks is unavailable, so GET /tasks is behind. It continues where it was${suppressed}`,
              error.message
            )
          )
        )
      ),
      Effect.retry(backoff),
      Effect.orDie,
      Effect.tap(() =>
        Effect.sync(() => {
          failure = null
        })
      )
    )

  const mergedOf = (batch: ReadonlyArray<Waiting>): ReadonlyArray<TaskChange> => {
    const tasks = new Map<string, TaskChange>()
    for (const { change } of batch) {
      if (change !== undefined) tasks.set(change.task.task_id, merge(tasks.get(change.task.task_id), change))
    }
    return [...tasks.values()]
  }

  const recordBatch = Effect.gen(function* () {
    const taken = yield* Queue.takeBetween(waiting, 1, batchSize)
    // The broker delivers the messages of a lost channel again, so those of an earlier session must not move the position.
    const batch = taken.filter((one) => one.session === session)
    const place = batch.findLast((one) => one.place !== undefined)?.place
    const progress = place && {
      source,
      position: StreamCheckpoint.encodeCheckpoint({ offset: place.offset, digest: digestOf(place.content) })
    }
    if (batch.length > 0) yield* retried(index.record(mergedOf(batch), progress))
    waitingCount -= taken.length
    for (const { recorded } of taken) Deferred.doneUnsafe(recorded, Exit.void)
  })

  const readDelivery = (delivery: Delivery): Effect.Effect<DeliveryVerdict> => {
    lastDeliveryAt = clock.currentTimeMillisUnsafe()
    const offset = StreamCheckpoint.offsetOf(delivery.properties)
    const received = readEvent(delivery.content, Timestamp.ofMillis(lastDeliveryAt))
    const change = Result.isSuccess(received)
      ? changeOf(received.success.event, CurrentDelivery.factsOf(delivery.properties.headers), changeOptions)
      : undefined
    const recorded = Deferred.makeUnsafe<void>()
    const place = offset === undefined ? undefined : { offset, content: delivery.content }
    // The prefetch is smaller than the capacity, so a delivery always fits.
    if (Queue.offerUnsafe(waiting, { change, place, session, recorded })) waitingCount++
    return Effect.as(Deferred.await(recorded), { settle: "ack" })
  }

  const loop = DeliveryLoop.make(broker, {
    name: "svc-task-indexer",
    queue: status.queue,
    concurrency: batchSize * 2,
    arguments: Effect.gen(function* () {
      const checkpoint = yield* index.progress(source)
      session++
      return { "x-stream-offset": yield* StreamCheckpoint.resumeAfter(broker, status.queue, checkpoint) }
    }),
    prepare: client.initialize,
    work: readDelivery,
    consumeTimeoutSeconds: null,
    stopWithin: "2 seconds"
  })

  const changesOfStored = (taskId: string) =>
    Effect.map(statuses.history(taskId), ({ events }) =>
      events.reduce<TaskChange | undefined>((known, { json }) => {
        const event = readEvent(Buffer.from(json), Timestamp.ofMillis(0))
        const change = Result.isSuccess(event) ? changeOf(event.success.event, noFacts, changeOptions) : undefined
        return change === undefined ? known : merge(known, change)
      }, undefined)
    )

  /** Continues at the stored cursor. Each page and its cursor are stored together. */
  const backfill = Effect.gen(function* () {
    let position = yield* retried(index.progress(backfillSource))
    while (position !== done) {
      const page = yield* retried(RedisStatusStore.scan(redis, { prefix: storePrefix }, position))
      const changes = yield* retried(Effect.forEach(page.taskIds, changesOfStored, { concurrency: 16 }))
      const known = new Map(changes.flatMap((change) => (change === undefined ? [] : [[change.task.task_id, change]])))
      position = page.next ?? done
      yield* retried(index.record([...known.values()], { source: backfillSource, position }))
      yield* Effect.sleep(backfillPause)
    }
    backfilled = true
  })

  const fillGaps = Effect.gen(function* () {
    if (!hasGap || failure !== null || waitingCount > 0) return
    hasGap = false
    yield* retried(index.record([], { source: backfillSource, position: "0" }))
    yield* backfill
  })

  yield* Effect.forkScoped(Effect.forever(recordBatch))
  yield* Effect.forkScoped(Effect.andThen(backfill, Effect.forever(Effect.andThen(Effect.sleep("1 second"), fillGaps))))
  yield* Effect.forkScoped(Effect.repeat(Effect.ignore(index.trim), Schedule.spaced(trimEvery)))
  if (status.isStream) yield* Effect.forkScoped(loop.run)

  return TaskIndexer.of({
    attributes,
    state: Effect.map(Clock.currentTimeMillis, (now) => ({
      caughtUp: failure === null && !hasGap && (waitingCount === 0 || now - lastDeliveryAt > caughtUpAfterMs),
      backfilled,
      failure
    })),
    offer: (event, properties) => {
      if (status.isStream) return
      const change = changeOf(event, CurrentDelivery.factsOf(properties.headers), changeOptions)
      if (change === undefined) return
      const one = { change, place: undefined, session, recorded: Deferred.makeUnsafe<void>() }
      if (Queue.offerUnsafe(waiting, one)) waitingCount++
      else hasGap = true
    }
  })
})

const done = "done"

export const layer = (
  options: Options = {}
): Layer.Layer<TaskIndexer, SettingsError, Broker | BrokerClient | StatusStore | Redis | TaskIndex> =>
  Layer.effect(TaskIndexer, make(options))

const settingsErrorOf = (attributes: ReadonlyArray<string>): SettingsError | undefined => {
  const issues = new ValidationIssues()
  if (attributes.length > maxAttributes || new Set(attributes).size < attributes.length) {
    issues.addMistake("attributes", `must be at most ${maxAttributes} different names`)
  }
  for (const name of attributes) issues.checkKey("attributes", name)
  return issues.mistakes.length > 0 ? SettingsError.of("TaskIndexer", issues.mistakes) : undefined
}
