import { Duration, Effect, Layer } from "effect"
import { Broker, type Declarations, type Fields } from "../services/Broker.ts"
import type { ContractAliasConfig } from "./Aliases.ts"
import { BrokerClient } from "./BrokerClient.ts"
import * as ConsumerTimeout from "./ConsumerTimeout.ts"
import type { DeadLetterSink } from "./DeadLetter.ts"
import * as DeliveryLoop from "./DeliveryLoop.ts"
import { SettingsError } from "./Errors.ts"
import type { TaskHandler } from "./Handler.ts"
import * as Observation from "./Observation.ts"
import { type ObservationSink, observing } from "./ObservationSink.ts"
import { Findings } from "./Parameters.ts"
import * as Redelivery from "./Redelivery.ts"
import type { RetryPolicy } from "./RetryPolicy.ts"
import { LifecycleStatusConfig, RetryStatusConfig } from "./StatusSettings.ts"
import * as TaskDelivery from "./TaskDelivery.ts"
import { TaskTopology } from "./TaskTopology.ts"

export interface Options<R> {
  readonly handler: TaskHandler<R>
  /** Default: none. What fails is rejected then, to the dead-letter exchange of the queue or to nowhere, and batches too. */
  readonly retryPolicy?: RetryPolicy
  /** Default: not enabled. */
  readonly retryStatuses?: RetryStatusConfig
  /** Default: not enabled. */
  readonly lifecycleStatuses?: LifecycleStatusConfig
  /**
   * How long the queue may be silent, in seconds, before the consumer makes sure that the broker still serves it. `null`:
   * it never does. Default: 1.
   */
  readonly consumeTimeoutSeconds?: number | null
  /** Default: the client's. */
  readonly aliasConfig?: ContractAliasConfig
  /** Told of every dead letter, once it is safe in its queue. */
  readonly dlqStore?: DeadLetterSink
  readonly observationSink?: ObservationSink
  /** How many tasks are worked on at once: 1 to 65,535. Default: the topology's `prefetch_count`. */
  readonly concurrency?: number
  /** A handler that takes longer is interrupted, and has failed. Default: none. */
  readonly handleWithin?: Duration.Input
  /** For tasks that are worked on when the consumer stops; then they are interrupted and return. Default: 10 seconds. */
  readonly stopWithin?: Duration.Input
  /** The pause after an error of the consumer itself, in seconds. Default: 2. */
  readonly idleRetrySeconds?: number
  /** With no place free and nothing settled for so long, a warning names the tasks. Default: 1 minute. */
  readonly stalledAfter?: Duration.Input
  /** Of the subscription, such as `x-priority`. */
  readonly consumeArguments?: Fields
  /** In observations, lineage and the log. Default: `svc-task-consumer`. */
  readonly consumerName?: string
}

export interface TaskConsumer<R> {
  /** The specification's `run_forever`: consumes until it is stopped or interrupted. */
  readonly run: Effect.Effect<void, never, R>
  /** Takes no further task; succeeds when those in work are done, or given back. */
  readonly stop: Effect.Effect<void>
}

/** A worker for the task queue of the client's topology. Nothing happens before it runs. */
export const make = Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<TaskConsumer<R>, SettingsError, Broker | BrokerClient> {
  const broker = yield* Broker
  const client = yield* BrokerClient
  const { topology } = client
  if (!(topology instanceof TaskTopology)) {
    const problem = `is a ${topology.kind}, which has no task queue: its workers are workflow consumers`
    return yield* SettingsError.of("TaskConsumer", [{ field: "topology", problem }])
  }
  const findings = new Findings()
  const concurrency = findings.integer("concurrency", options.concurrency, 1, 65_535) ?? topology.prefetchCount
  seconds("consumeTimeoutSeconds", options.consumeTimeoutSeconds ?? undefined, findings)
  seconds("idleRetrySeconds", options.idleRetrySeconds, findings)
  const name = findings.key("consumerName", options.consumerName ?? "svc-task-consumer")
  if (findings.mistakes.length > 0) return yield* SettingsError.of("TaskConsumer", findings.mistakes)

  const { family, queue, routing } = topology.tasks
  const policy = options.retryPolicy
  const redelivery =
    policy === undefined ? undefined : yield* Effect.fromResult(Redelivery.make(broker, client, queue, policy))
  const observe = yield* observing(options.observationSink)
  const handleWithin = options.handleWithin === undefined ? undefined : Duration.fromInputUnsafe(options.handleWithin)
  const work = TaskDelivery.make({
    consumer: { client, name, queue, maxRetries: policy?.maxRetries ?? null },
    handler: options.handler,
    handleWithin,
    aliases: options.aliasConfig ?? client.aliases,
    redelivery,
    lifecycleStatuses: options.lifecycleStatuses ?? new LifecycleStatusConfig(),
    retryStatuses: options.retryStatuses ?? new RetryStatusConfig(),
    deadLetters: options.dlqStore,
    isRouted: routing._tag === "Routed",
    observe
  })

  let isWarned = false
  const warn = Effect.gen(function* () {
    if (isWarned) return
    isWarned = true
    const { version } = yield* broker.server
    const warning = ConsumerTimeout.warning(family, version, handleWithin)
    if (warning !== undefined) yield* Effect.logWarning(`${name}: ${warning}`)
  })
  const prepare = Effect.all(
    [client.initialize, broker.declare(inbox(topology)), redelivery?.prepare ?? Effect.void, warn],
    { discard: true }
  )

  return DeliveryLoop.make<R>(broker, {
    name,
    queue,
    concurrency,
    ...(options.consumeArguments && { arguments: options.consumeArguments }),
    prepare,
    work,
    onStarted: () =>
      observe((at) => Observation.of("TaskConsumerStarted", at, { consumer_name: name, queue_name: queue })),
    onError: ({ exceptionType, text }, retryDelaySeconds) =>
      observe((at) =>
        Observation.of("TaskConsumerLoopError", at, {
          consumer_name: name,
          exception_type: exceptionType,
          exception_message: text,
          retry_delay_seconds: retryDelaySeconds
        })
      ),
    consumeTimeoutSeconds: options.consumeTimeoutSeconds,
    idleRetrySeconds: options.idleRetrySeconds,
    stopWithin: options.stopWithin,
    stalledAfter: options.stalledAfter
  })
})

/** A worker for as long as the layer is there; it stops as `stop` does. */
export const layer = <R>(options: Options<R>): Layer.Layer<never, SettingsError, Broker | BrokerClient | R> =>
  Layer.effectDiscard(Effect.flatMap(make(options), ({ run }) => Effect.forkScoped(run)))

/** The client has declared them too, but only once: whoever deleted the queue meanwhile gets it back. */
const inbox = ({ bindings, queues, tasks }: TaskTopology): Declarations => ({
  exchanges: [],
  queues: queues.filter(({ name }) => name === tasks.queue),
  bindings: bindings.filter(({ queue }) => queue === tasks.queue)
})

const seconds = (field: string, value: number | undefined, findings: Findings): void => {
  if (value !== undefined && !(value > 0 && value <= 86_400)) {
    findings.mistake(field, "must be more than 0 and at most a day, in seconds")
  }
}
