import { Clock, Context, type Duration, Effect, Layer, Option, Schedule, Schema, type Scope, Stream } from "effect"
import type { Pause, QueueGroup, Resumed, WorkerReport } from "../../messaging/control/ControlRecords.ts"
import { ControlStore, type MinuteOfQueue } from "../../messaging/control/ControlStore.ts"
import { Broker, type Connection } from "../../services/Broker.ts"
import type { RedisError } from "../../services/Redis.ts"
import * as QueueState from "./QueueState.ts"

/** No topology, worker or option names this queue. */
export class UnknownQueue extends Schema.TaggedError<UnknownQueue>()("UnknownQueue", { queue: Schema.String }) {
  override get message() {
    return `There is no worker queue ${JSON.stringify(this.queue)}. GET /queues lists all.`
  }
}

export class NotPaused extends Schema.TaggedError<NotPaused>()("NotPaused", { queue: Schema.String }) {
  override get message() {
    return `The queue ${JSON.stringify(this.queue)} is not paused.`
  }
}

export interface QueueView {
  readonly queue: string
  readonly state: QueueState.QueueState
  /** `null` while the broker does not respond. */
  readonly ready: number | null
  readonly consumers: number | null
  /** The messages that the workers report as in progress. */
  readonly in_work: number
  readonly waiting_for_retry: number | null
  /** `null` if nothing waits, or if it is not known when it is due. */
  readonly next_retry_at: string | null
  /** The messages in the dead-letter queue, also those that were replayed and not removed since. */
  readonly dead: number | null
  readonly dead_letter_queue: string
  readonly oldest_age: QueueState.OldestAge | null
  readonly last_hour: {
    readonly in: number
    readonly out: number
    readonly minutes: ReadonlyArray<{
      readonly at: string
      readonly in: number | null
      readonly out: number
      readonly ready: number | null
    }>
  }
  readonly paused: Pick<Pause, "reason" | "by" | "paused_at"> | null
  /** The consumers that report themselves, and how many of them have stopped to take messages. */
  readonly reporting_consumers: number
  readonly stopped_consumers: number
}

/** `blocked`: the broker lacks memory or disk and takes no messages. `detail` says what is wrong. */
export interface BrokerState {
  readonly state: "connected" | "blocked" | "connecting" | "closed"
  readonly detail: string
}

export interface Options {
  /** The queues of the topologies. Queues that workers announce are added to them. */
  readonly queues: ReadonlyArray<string>
  /** The time between two counts of ready messages, of which rates are made. Default: 15 seconds. */
  readonly sampleEvery?: Duration.Input | undefined
}

/** Shows the queues and workers, and pauses queues. */
export class QueueBoard extends Context.Service<
  QueueBoard,
  {
    readonly queues: Effect.Effect<ReadonlyArray<QueueView>, RedisError>
    readonly workers: Effect.Effect<ReadonlyArray<WorkerReport>, RedisError>
    /** The connection of this process to the broker. */
    readonly broker: Effect.Effect<BrokerState>
    /** A second pause replaces the reason of the first. */
    readonly pause: (
      queue: string,
      why: { readonly reason: string; readonly by: string | null }
    ) => Effect.Effect<Pause, RedisError | UnknownQueue>
    readonly resume: (queue: string) => Effect.Effect<Pause, RedisError | UnknownQueue | NotPaused>
  }
>()("svc/status/QueueBoard") {}

const inspectTimeout = "2 seconds"
const inspectConcurrency = 16
/** Many viewers of the board cause no more requests to the broker than one. */
const cacheTtl = "1 second"
const defaultDeadLetterSuffix = ".dlq"

interface Count {
  readonly messages: number
  readonly consumers: number
}

const nothing: Count = { messages: 0, consumers: 0 }

const make = Effect.fnUntraced(function* ({
  queues: named,
  sampleEvery = "15 seconds"
}: Options): Effect.fn.Return<QueueBoard["Service"], never, Broker | ControlStore | Scope.Scope> {
  const store = yield* ControlStore
  const { connection, inspect } = yield* Broker

  /** `undefined`: the broker did not respond. */
  const countOf = (queue: string): Effect.Effect<Count | undefined> =>
    Effect.match(Effect.timeout(inspect(queue), inspectTimeout), {
      onFailure: () => undefined,
      onSuccess: Option.getOrElse(() => nothing)
    })

  /** A paused queue stays in the list, so that it can be resumed after all of its workers have gone. */
  const groupsWith = (pauses: ReadonlyArray<Pause>) =>
    Effect.map(store.groups, (announced) => {
      const known = new Map(announced.map((group) => [group.queue, group]))
      for (const queue of [...named, ...pauses.map((pause) => pause.queue)])
        if (!known.has(queue)) known.set(queue, unannounced(queue))
      return [...known.values()].toSorted((one, other) => (one.queue < other.queue ? -1 : 1))
    })

  const groups = Effect.flatMap(store.pauses, groupsWith)

  const existing = Effect.fnUntraced(function* (queue: string) {
    if (!(yield* groups).some((group) => group.queue === queue)) return yield* new UnknownQueue({ queue })
  })

  const viewOf = Effect.fnUntraced(function* (group: QueueGroup, { isAlarmed, pauses, resumed, workers }: Known) {
    const { queue, retry_queues } = group
    const deadLetterQueue = group.dead_letter_queue ?? `${queue}${defaultDeadLetterSuffix}`
    const [own, dead, waiting, minutes, due, now] = yield* Effect.all(
      [
        countOf(queue),
        countOf(deadLetterQueue),
        Effect.forEach(retry_queues, countOf, { concurrency: inspectConcurrency }),
        store.lastHour(queue),
        store.nextDue(queue),
        Clock.currentTimeMillis
      ],
      { concurrency: "unbounded" }
    )
    return describe({
      queue,
      deadLetterQueue,
      own,
      dead,
      waiting,
      minutes,
      nextDue: Option.getOrUndefined(due),
      pause: pauses.find((pause) => pause.queue === queue),
      isAlarmed,
      resumed: resumed.find((one) => one.queue === queue),
      consumers: consumersOf(queue, workers),
      now
    })
  })

  const broker = Effect.map(Stream.runHead(connection), (state) =>
    Option.match(state, { onNone: () => brokerState({ _tag: "Closed" }), onSome: brokerState })
  )

  const views = Effect.gen(function* () {
    // Ended pauses are read last, so that a pause that ends meanwhile is found once at least.
    const [pauses, workers, { state }] = yield* Effect.all([store.pauses, store.workers, broker], {
      concurrency: "unbounded"
    })
    const known: Known = { pauses, workers, isAlarmed: state === "blocked", resumed: yield* store.resumed }
    return yield* Effect.forEach(yield* groupsWith(pauses), (group) => viewOf(group, known), {
      concurrency: inspectConcurrency
    })
  }).pipe(Effect.withSpan("QueueBoard.queues"))

  const sample = Effect.gen(function* () {
    const workers = yield* store.workers
    yield* Effect.forEach(
      yield* groups,
      ({ queue }) =>
        Effect.flatMap(countOf(queue), (count) =>
          count === undefined
            ? Effect.void
            : store.sampleMessages(queue, {
                ready: count.messages,
                inWork: inWorkOf(consumersOf(queue, workers))
              })
        ),
      { concurrency: inspectConcurrency, discard: true }
    )
  })
  yield* Effect.forkScoped(Effect.repeat(Effect.ignore(sample), Schedule.spaced(sampleEvery)))

  return QueueBoard.of({
    queues: yield* Effect.cachedWithTTL(views, cacheTtl),
    workers: store.workers,
    broker,
    pause: Effect.fn("QueueBoard.pause")(function* (queue, { by, reason }) {
      yield* existing(queue)
      return yield* store.pause({ queue, reason, by })
    }),
    resume: Effect.fn("QueueBoard.resume")(function* (queue) {
      yield* existing(queue)
      const ended = yield* store.resume(queue)
      return Option.isSome(ended) ? ended.value : yield* new NotPaused({ queue })
    })
  })
})

export const layer = (options: Options): Layer.Layer<QueueBoard, never, Broker | ControlStore> =>
  Layer.effect(QueueBoard, make(options))

const brokerState = (connection: Connection): BrokerState => {
  switch (connection._tag) {
    case "Connected":
      return { state: "connected", detail: "" }
    case "Blocked":
      return { state: "blocked", detail: `The broker takes no messages: ${connection.reason}` }
    case "Connecting":
      return {
        state: "connecting",
        detail: `The broker cannot be reached: ${connection.failure || "not connected yet"}`
      }
    case "Closed":
      return { state: "closed", detail: "The connection to the broker is closed, because this process ends." }
  }
}

const unannounced = (queue: string): QueueGroup => ({ queue, retry_queues: [], dead_letter_queue: null })

type Consumers = WorkerReport["consumers"]

const consumersOf = (queue: string, workers: ReadonlyArray<WorkerReport>): Consumers =>
  workers.flatMap(({ consumers }) => consumers.filter((consumer) => consumer.queue === queue))

const inWorkOf = (consumers: Consumers): number => consumers.reduce((sum, { in_work }) => sum + in_work, 0)

/** Facts that hold for all queues. */
interface Known {
  /** The broker lacks memory or disk. */
  readonly isAlarmed: boolean
  readonly pauses: ReadonlyArray<Pause>
  readonly resumed: ReadonlyArray<Resumed>
  readonly workers: ReadonlyArray<WorkerReport>
}

interface Evidence {
  readonly queue: string
  readonly deadLetterQueue: string
  readonly own: Count | undefined
  readonly dead: Count | undefined
  readonly waiting: ReadonlyArray<Count | undefined>
  readonly minutes: ReadonlyArray<MinuteOfQueue>
  readonly nextDue: number | undefined
  readonly pause: Pause | undefined
  readonly isAlarmed: boolean
  readonly resumed: Resumed | undefined
  readonly consumers: Consumers
  readonly now: number
}

const describe = ({
  consumers,
  dead,
  deadLetterQueue,
  isAlarmed,
  minutes,
  nextDue,
  now,
  own,
  pause,
  queue,
  resumed,
  waiting
}: Evidence): QueueView => {
  const inWork = inWorkOf(consumers)
  const minute = Math.floor(now / 60_000)
  const counted = own === undefined ? minutes : withNow(minutes, { minute, ready: own.messages, inWork })
  const rates = QueueState.ratesOf(counted).filter((one) => one.minute > minute - 60)
  const waitingCount = waiting.reduce<number | null>(
    (sum, count) => (sum === null || count === undefined ? null : sum + count.messages),
    0
  )
  const isPaused = pause !== undefined
  const numbers = own && {
    ready: own.messages,
    consumers: own.consumers,
    isPaused,
    isAlarmed,
    resumedForMs: resumed && now - Date.parse(resumed.resumed_at),
    reported: {
      consumers: consumers.length,
      places: consumers.reduce((sum, { concurrency }) => sum + concurrency, 0),
      inWork
    },
    rates,
    minute
  }
  // a broker with an alarm may not respond on a connection that publishes
  const withoutCount: QueueState.QueueState = isPaused ? "paused" : isAlarmed ? "alarm" : "unknown"
  return {
    queue,
    state: numbers === undefined ? withoutCount : QueueState.stateOf(numbers),
    ready: own?.messages ?? null,
    consumers: own?.consumers ?? null,
    in_work: inWork,
    waiting_for_retry: waitingCount,
    next_retry_at: nextDue === undefined || waitingCount === 0 ? null : new Date(nextDue).toISOString(),
    dead: dead?.messages ?? null,
    dead_letter_queue: deadLetterQueue,
    oldest_age: (numbers && QueueState.oldestAge(numbers, now)) ?? null,
    last_hour: {
      in: QueueState.arrivedIn(rates),
      out: rates.reduce((sum, { out }) => sum + out, 0),
      minutes: rates.map(({ minute, ...counts }) => ({ at: new Date(minute * 60_000).toISOString(), ...counts }))
    },
    paused: pause === undefined ? null : { reason: pause.reason, by: pause.by, paused_at: pause.paused_at },
    reporting_consumers: consumers.length,
    stopped_consumers: consumers.filter(({ paused }) => paused).length
  }
}

/** The numbers of this moment are newer than the latest inspection, so that a minute has as many arrivals as it shows. */
const withNow = (
  minutes: ReadonlyArray<MinuteOfQueue>,
  { inWork, minute, ready }: { readonly minute: number; readonly ready: number; readonly inWork: number }
): ReadonlyArray<MinuteOfQueue> => {
  const done = minutes.find((one) => one.minute === minute)?.done ?? 0
  const now = { minute, done, ready, passed: ready + inWork + done }
  return [...minutes.filter((one) => one.minute < minute), now]
}
