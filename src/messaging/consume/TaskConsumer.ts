import { Duration, Effect, Layer } from "effect"
import { Broker } from "../../services/Broker.ts"
import { SettingsError } from "../envelope/Errors.ts"
import * as Observation from "../observe/Observation.ts"
import { makeObserve } from "../observe/ObservationSink.ts"
import { BrokerClient } from "../publish/BrokerClient.ts"
import type { LifecycleStatusConfig } from "../topology/StatusSettings.ts"
import { TaskTopology } from "../topology/TaskTopology.ts"
import * as TopologyPlan from "../topology/TopologyPlan.ts"
import * as ConsumerOptions from "./ConsumerOptions.ts"
import * as ConsumerTimeout from "./ConsumerTimeout.ts"
import * as DeliveryLoop from "./DeliveryLoop.ts"
import type { TaskHandler } from "./Handler.ts"
import * as TaskDelivery from "./TaskDelivery.ts"

/** Of a task consumer, beside those of every consumer. Without a retry policy batches are rejected as well. */
export interface Options<R> extends ConsumerOptions.ConsumerOptions {
  readonly handler: TaskHandler<R>
  /** Statuses about the work itself, `processing`, `completed` and `failed`. Default: none, as of `new LifecycleStatusConfig()`. */
  readonly lifecycleStatuses?: LifecycleStatusConfig | undefined
  /**
   * How long a handler may take: then it is interrupted, and has failed with `HandlerTimeout`, which is tried again. Default:
   * as long as it likes; the broker takes a message back after its consumer timeout, which is 30 minutes by default.
   */
  readonly handleWithin?: Duration.Input | undefined
}

export interface TaskConsumer<R> {
  /** The task queue that it works on. */
  readonly queue: string
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
  const refusal = ConsumerOptions.validate("TaskConsumer", options)
  if (refusal !== undefined) return yield* refusal
  const { concurrency = topology.prefetchCount, consumerName: name = "svc-task-consumer" } = options

  const { family, queue, routing } = topology.tasks
  const observe = yield* makeObserve(options.observationSink)
  const handleWithin = options.handleWithin === undefined ? undefined : Duration.fromInputUnsafe(options.handleWithin)
  const delivery = yield* TaskDelivery.make<R>({
    ...options,
    broker,
    consumer: { client, name, queue, maxRetries: options.retryPolicy?.maxRetries ?? null },
    handleWithin,
    aliases: options.aliasConfig ?? client.aliases,
    isRouted: routing._tag === "Routed",
    observe
  })

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
    ...ConsumerOptions.loopOptions(options),
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
  return { queue, run, stop }
})

/** A worker for as long as the layer is there; it stops as `stop` does. */
export const layer = <R>(options: Options<R>): Layer.Layer<never, SettingsError, Broker | BrokerClient | R> =>
  Layer.effectDiscard(Effect.flatMap(make(options), ({ run }) => Effect.forkScoped(run)))
