import { Clock, Effect, Layer, Result } from "effect"
import { Broker, type Delivery } from "../../services/Broker.ts"
import { DefaultWorkControl } from "../control/WorkControl.ts"
import type { JsonObject } from "../envelope/Envelope.ts"
import type { EnvelopeError, InvalidPublish, SettingsError } from "../envelope/Errors.ts"
import { type ExactAndOrdinary, readBoth } from "../envelope/ExactJson.ts"
import * as StatusEvent from "../envelope/StatusEvent.ts"
import * as Timestamp from "../envelope/Timestamp.ts"
import * as FailurePath from "../failure/FailurePath.ts"
import type { RedeliveryError } from "../failure/Redelivery.ts"
import * as HandlerMetrics from "../observe/HandlerMetrics.ts"
import * as Observation from "../observe/Observation.ts"
import { DefaultObservationSink, makeObserve } from "../observe/ObservationSink.ts"
import { BrokerClient } from "../publish/BrokerClient.ts"
import * as HandlerFailure from "../retry/HandlerFailure.ts"
import * as ReplayOrigin from "../retry/ReplayOrigin.ts"
import * as RetryHeaders from "../retry/RetryHeaders.ts"
import { aggregationQueue } from "../topology/TaskTopology.ts"
import * as TopologyPlan from "../topology/TopologyPlan.ts"
import { AggregationContext } from "./AggregationContext.ts"
import type { AggregationHandler } from "./AggregationHandler.ts"
import * as ConsumerOptions from "./ConsumerOptions.ts"
import * as ConsumerTimeout from "./ConsumerTimeout.ts"
import * as DeliveryLoop from "./DeliveryLoop.ts"
import type { DeliveryVerdict } from "./DeliveryVerdict.ts"

/** Options of one aggregation consumer, in addition to the options of all consumers. */
export interface Options<R> extends ConsumerOptions.ConsumerOptions {
  /** The numbers of the shards to aggregate, from 0. Events of a shard with two consumers are processed twice. */
  readonly shards: ReadonlyArray<number>
  /** The name of the queue. Default: the name that the topology defines, such as `aggregation.queue.0`. */
  readonly queueName?: string | undefined
  readonly handler: AggregationHandler<R>
}

export interface AggregationConsumer<R> {
  readonly queue: string
  /** Processes messages until `stop` runs or the fiber is interrupted. Named `run_forever` in the specification. */
  readonly run: Effect.Effect<void, never, R>
  /** Stops the subscription. Succeeds after every event in progress is settled or returned to the queue. */
  readonly stop: Effect.Effect<void>
}

/**
 * Creates a consumer for the events of the given shards. It does nothing until `run` is executed. Fails with
 * `InvalidPublish` if the topology has no such shards. Fails with `SettingsError` if an option is invalid.
 */
export const make = Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<AggregationConsumer<R>, InvalidPublish | SettingsError, Broker | BrokerClient> {
  const broker = yield* Broker
  const client = yield* BrokerClient
  const refusal = ConsumerOptions.validate("AggregationConsumer", options)
  if (refusal !== undefined) return yield* refusal
  const { consumerName: name = "svc-aggregation-consumer", handler, queueName, shards } = options
  const aliases = options.aliasConfig ?? client.aliases
  const {
    declarations,
    family,
    name: queue
  } = yield* Effect.fromResult(aggregationQueue(client.topology, shards, queueName))
  const consumer = { client, name, queue, maxRetries: options.retryPolicy?.maxRetries ?? null }
  const consumerFields = { consumer_name: name, queue_name: queue }
  const observe = yield* makeObserve(options.observationSink ?? (yield* DefaultObservationSink))
  const concurrency = options.concurrency ?? client.topology.prefetchCount
  const { fail, group, prepare } = yield* FailurePath.make<ChildFields>(broker, consumer, options, observe, {
    failed: ({ fields, status }, exception) => {
      if (status === undefined) return
      observe((at) =>
        Observation.of("AggregationHandlerFailed", at, { ...fields, task_id: status.about.taskId, ...exception })
      )
    },
    redelivered: (tag, redelivery, fields) =>
      observe((at) => Observation.of(redeliveryEvents[tag], at, { ...fields, ...redelivery })),
    retryScheduled: (dueMs) => control?.onRetryScheduled(dueMs),
    order: "logged first"
  })
  const workControl = options.workControl ?? (yield* DefaultWorkControl)
  const control = workControl?.consumer({ name, queue, concurrency, group })

  const work = (delivery: Delivery): Effect.Effect<DeliveryVerdict, RedeliveryError, R> =>
    Clock.clockWith((clock) => {
      const now = Timestamp.ofMillis(clock.currentTimeMillisUnsafe())
      const read = aliases.read("status", delivery.content)
      if (Result.isFailure(read)) return fail(unreadable(delivery, read.failure))
      const event = readBoth(read.success, (message) =>
        Result.map(StatusEvent.readLeniently(message, now), ({ event }) => event)
      )
      if (Result.isFailure(event)) return fail(unreadable(delivery, event.failure))
      return handle(delivery, event.success, read.success.ordinary)
    })

  const handle = (delivery: Delivery, event: ExactAndOrdinary<StatusEvent.StatusEvent>, raw: JsonObject) => {
    const context = new AggregationContext(consumer, delivery, raw, event)
    const childFields = {
      ...consumerFields,
      task_id: context.taskId,
      parent_task_id: context.parentTaskId ?? null,
      correlation_id: context.correlationId,
      retry_attempt: context.retryAttempt
    }
    observe((at) =>
      Observation.of("AggregationMessageReceived", at, {
        ...childFields,
        delivery_tag: delivery.deliveryTag,
        redelivered: delivery.redelivered
      })
    )
    const handled = HandlerMetrics.timed(
      delivery.queue,
      Effect.suspend(() => handler.handle(context.event, context))
    )
    const identity = {
      taskId: context.taskId,
      taskType: null,
      attempt: context.retryAttempt,
      redelivered: delivery.redelivered,
      cancellable: false
    }
    return Effect.matchCauseEffect(
      control === undefined ? handled : Effect.flatten(control.handle(identity, handled)),
      {
        onSuccess: (): Effect.Effect<DeliveryVerdict, RedeliveryError> =>
          Effect.succeed({
            settle: "ack",
            settled: observe.deferred((at) => Observation.of("AggregationMessageAcked", at, childFields))
          }),
        onFailure: (cause) => {
          const { correlationId, lineage, taskId } = context
          return fail({
            delivery,
            failure: HandlerFailure.ofCause(cause),
            fields: childFields,
            status: {
              about: { taskId, correlationId, lineage, task: context.event },
              meta: ReplayOrigin.outOfMeta(event.exact.meta)
            }
          })
        }
      }
    )
  }

  const unreadable = (delivery: Delivery, error: EnvelopeError) => ({
    delivery,
    failure: HandlerFailure.ofEnvelope(error),
    fields: {
      ...consumerFields,
      task_id: null,
      parent_task_id: null,
      correlation_id: delivery.properties.correlationId ?? null,
      retry_attempt: RetryHeaders.attemptOf(delivery.properties.headers ?? {})
    }
  })

  const { run, stop } = DeliveryLoop.make<R>(broker, {
    ...ConsumerOptions.loopOptions(options, control),
    name,
    queue,
    concurrency,
    prepare: Effect.all(
      [
        client.initialize,
        TopologyPlan.declare(broker, client.topology, declarations),
        prepare,
        ConsumerTimeout.warnOnce(broker, name, family, undefined)
      ],
      { discard: true }
    ),
    work
  })
  return { queue, run: control === undefined ? run : control.whileRunning(run), stop }
})

/** Runs a consumer for the lifetime of the layer. Closing the layer has the effect of `stop`. */
export const layer = <R>(
  options: Options<R>
): Layer.Layer<never, InvalidPublish | SettingsError, Broker | BrokerClient | R> =>
  Layer.effectDiscard(Effect.flatMap(make(options), ({ run }) => Effect.forkScoped(run)))

type ChildFields = Observation.FieldsOf<"AggregationMessageAcked">

const redeliveryEvents = { Retry: "AggregationRetryScheduled", DeadLetter: "AggregationDeadLetterPublished" } as const
