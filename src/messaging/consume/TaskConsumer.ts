import { Duration, Effect, Layer } from "effect"
import { Broker } from "../../services/Broker.ts"
import { DefaultWorkControl } from "../control/WorkControl.ts"
import { SettingsError } from "../envelope/Errors.ts"
import * as Observation from "../observe/Observation.ts"
import { DefaultObservationSink, makeObserve } from "../observe/ObservationSink.ts"
import { BrokerClient } from "../publish/BrokerClient.ts"
import type { LifecycleStatusConfig } from "../topology/StatusSettings.ts"
import { TaskTopology } from "../topology/TaskTopology.ts"
import * as TopologyPlan from "../topology/TopologyPlan.ts"
import * as ConsumerOptions from "./ConsumerOptions.ts"
import * as ConsumerTimeout from "./ConsumerTimeout.ts"
import * as DeliveryLoop from "./DeliveryLoop.ts"
import type { TaskHandler } from "./Handler.ts"
import * as TaskDelivery from "./TaskDelivery.ts"

/** Options of a task consumer, in addition to the common options. Without a `retryPolicy`, batches are rejected. */
export interface Options<R> extends ConsumerOptions.ConsumerOptions {
  readonly handler: TaskHandler<R>
  /** Publishes the statuses `processing`, `completed` and `failed` of each task. Default: disabled. */
  readonly lifecycleStatuses?: LifecycleStatusConfig | undefined
  /**
   * The maximum run time of a handler. A handler that exceeds it is interrupted and fails with a `HandlerTimeout`. The
   * task is then retried. Default: no limit. The broker has its own consumer timeout, by default 30 minutes.
   */
  readonly handleWithin?: Duration.Input | undefined
}

export interface TaskConsumer<R> {
  readonly queue: string
  /** Processes messages until `stop` runs or the fiber is interrupted. Named `run_forever` in the specification. */
  readonly run: Effect.Effect<void, never, R>
  /** Stops the subscription. Succeeds after every task in progress is settled or returned to the queue. */
  readonly stop: Effect.Effect<void>
}

/**
 * Creates a consumer for the task queue of the client's topology. It does nothing until `run` is executed. Fails with
 * `SettingsError` if the topology has no task queue or an option is invalid.
 *
 * ```ts
 * const handler = Handler.byTaskType({
 *   resize: Handler.withPayload(Schema.Struct({ url: Schema.String }), ({ payload }, context) =>
 *     Effect.andThen(resize(payload.url), context.publishStatus("resized"))
 *   )
 * })
 * const worker = TaskConsumer.layer({ handler, retryPolicy: new RetryPolicy() }).pipe(
 *   Layer.provide(BrokerClient.layer({ topology }))
 * )
 * ```
 */
export const make = Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<TaskConsumer<R>, SettingsError, Broker | BrokerClient> {
  const broker = yield* Broker
  const client = yield* BrokerClient
  const { topology } = client
  if (!(topology instanceof TaskTopology)) {
    const problem = `is a ${topology.kind}, which has no task queue: use a WorkflowConsumer`
    return yield* SettingsError.of("TaskConsumer", [{ field: "topology", problem }])
  }
  const refusal = ConsumerOptions.validate("TaskConsumer", options)
  if (refusal !== undefined) return yield* refusal
  const { concurrency = topology.prefetchCount, consumerName: name = "svc-task-consumer" } = options

  const { family, queue, routing } = topology.tasks
  const observe = yield* makeObserve(options.observationSink ?? (yield* DefaultObservationSink))
  const handleWithin = options.handleWithin === undefined ? undefined : Duration.fromInputUnsafe(options.handleWithin)
  const delivery = yield* TaskDelivery.make<R>({
    ...options,
    broker,
    consumer: { client, name, queue, maxRetries: options.retryPolicy?.maxRetries ?? null },
    handleWithin,
    aliases: options.aliasConfig ?? client.aliases,
    isRouted: routing._tag === "Routed",
    observe,
    concurrency,
    workControl: options.workControl ?? (yield* DefaultWorkControl)
  })
  const { control } = delivery

  const prepare = Effect.all(
    [
      client.initialize,
      TopologyPlan.declare(broker, topology, ConsumerOptions.inboxDeclarations(topology, queue)),
      delivery.prepare,
      ConsumerTimeout.warnOnce(broker, name, family, handleWithin)
    ],
    { discard: true }
  )

  const { run, stop } = DeliveryLoop.make<R>(broker, {
    ...ConsumerOptions.loopOptions(options, control),
    name,
    queue,
    concurrency,
    prepare,
    work: delivery.work,
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
      )
  })
  return { queue, run: control === undefined ? run : control.whileRunning(run), stop }
})

/** Runs a consumer for the lifetime of the layer. Closing the layer has the effect of `stop`. */
export const layer = <R>(options: Options<R>): Layer.Layer<never, SettingsError, Broker | BrokerClient | R> =>
  Layer.effectDiscard(Effect.flatMap(make(options), ({ run }) => Effect.forkScoped(run)))
