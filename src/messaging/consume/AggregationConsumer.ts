import { Clock, Effect, Layer, Result } from "effect"
import { Broker, type Delivery } from "../../services/Broker.ts"
import type { JsonObject } from "../envelope/Envelope.ts"
import type { EnvelopeError, InvalidPublish, SettingsError } from "../envelope/Errors.ts"
import { type Both, both } from "../envelope/ExactJson.ts"
import * as StatusEvent from "../envelope/StatusEvent.ts"
import * as Timestamp from "../envelope/Timestamp.ts"
import * as DeadLetterRecording from "../failure/DeadLetterRecording.ts"
import { ExceptionDetails, redacted } from "../failure/ExceptionDetails.ts"
import * as FailureLog from "../failure/FailureLog.ts"
import * as Redelivery from "../failure/Redelivery.ts"
import * as HandlerMetrics from "../observe/HandlerMetrics.ts"
import * as Observation from "../observe/Observation.ts"
import { observing } from "../observe/ObservationSink.ts"
import { BrokerClient } from "../publish/BrokerClient.ts"
import * as TaskStatuses from "../publish/TaskStatuses.ts"
import * as HandlerFailure from "../retry/HandlerFailure.ts"
import * as RetryHeaders from "../retry/RetryHeaders.ts"
import { RetryStatusConfig } from "../topology/StatusSettings.ts"
import { aggregationQueue } from "../topology/TaskTopology.ts"
import * as TopologyPlan from "../topology/TopologyPlan.ts"
import { AggregationContext } from "./AggregationContext.ts"
import type { AggregationHandler } from "./AggregationHandler.ts"
import * as ConsumerOptions from "./ConsumerOptions.ts"
import * as ConsumerTimeout from "./ConsumerTimeout.ts"
import * as DeliveryLoop from "./DeliveryLoop.ts"
import type { Verdict } from "./Verdict.ts"

/** Of one aggregation consumer, beside those of every consumer. */
export interface Options<R> extends ConsumerOptions.ConsumerOptions {
  /** The shards whose events it takes: from 0 up to the topology's `shard_count` - 1. No two consumers should share one: its work would be done twice. */
  readonly shards: ReadonlyArray<number>
  /** Default: the name that the topology gives to a queue of these shards, such as `aggregation.queue.0`. */
  readonly queueName?: string | undefined
  readonly handler: AggregationHandler<R>
}

export interface AggregationConsumer<R> {
  /** The queue that it works on. */
  readonly queue: string
  /** The specification's `run_forever`: consumes until it is stopped or interrupted. */
  readonly run: Effect.Effect<void, never, R>
  /** Takes no further event; succeeds when those in work are done, or given back. */
  readonly stop: Effect.Effect<void>
}

/** A worker for the events of some shards. Nothing happens before it runs. */
export const make = Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<AggregationConsumer<R>, InvalidPublish | SettingsError, Broker | BrokerClient> {
  const broker = yield* Broker
  const client = yield* BrokerClient
  const refusal = ConsumerOptions.refusal("AggregationConsumer", options)
  if (refusal !== undefined) return yield* refusal
  const { consumerName: name = "svc-aggregation-consumer", handler, queueName, retryPolicy, shards } = options
  const retryStatuses = options.retryStatuses ?? new RetryStatusConfig()
  const aliases = options.aliasConfig ?? client.aliases
  const {
    declarations,
    family,
    name: queue
  } = yield* Effect.fromResult(aggregationQueue(client.topology, shards, queueName))
  const redelivery = retryPolicy && (yield* Effect.fromResult(Redelivery.make(broker, client, queue, retryPolicy)))
  const consumer = { client, name, queue, maxRetries: retryPolicy?.maxRetries ?? null }
  const observe = yield* observing(options.observationSink)
  const redact = yield* ExceptionDetails
  const record = DeadLetterRecording.make(name, options.dlqStore, observe)
  const place = { consumer_name: name, queue_name: queue }

  const work = (delivery: Delivery): Effect.Effect<Verdict, Redelivery.Unredelivered, R> =>
    Clock.clockWith((clock) => {
      const now = Timestamp.ofMillis(clock.currentTimeMillisUnsafe())
      const read = aliases.read("status", delivery.content)
      if (Result.isFailure(read)) return unreadable(delivery, read.failure)
      const event = both(read.success, (message) =>
        Result.map(StatusEvent.readLeniently(message, now), ({ event }) => event)
      )
      if (Result.isFailure(event)) return unreadable(delivery, event.failure)
      return handle(delivery, event.success, read.success.ordinary)
    })

  const handle = (delivery: Delivery, event: Both<StatusEvent.StatusEvent>, raw: JsonObject) => {
    const context = new AggregationContext(consumer, delivery, raw, event)
    const child = {
      task_id: context.taskId,
      parent_task_id: context.parentTaskId ?? null,
      correlation_id: context.correlationId,
      retry_attempt: context.retryAttempt
    }
    observe((at) =>
      Observation.of("AggregationMessageReceived", at, {
        ...place,
        ...child,
        delivery_tag: delivery.deliveryTag,
        redelivered: delivery.redelivered
      })
    )
    return Effect.matchCauseEffect(
      HandlerMetrics.timed(
        delivery.queue,
        Effect.suspend(() => handler.handle(context.event, context))
      ),
      {
        onSuccess: (): Effect.Effect<Verdict, Redelivery.Unredelivered> =>
          Effect.succeed({
            settle: "ack",
            settled: observe.later((at) => Observation.of("AggregationMessageAcked", at, { ...place, ...child }))
          }),
        onFailure: (cause) => {
          const failure = redacted(redact, HandlerFailure.ofCause(cause))
          observe((at) =>
            Observation.of("AggregationHandlerFailed", at, {
              ...place,
              ...child,
              exception_type: failure.exceptionType,
              exception_message: failure.text,
              requeue: false
            })
          )
          return failed(delivery, failure, child, { context, meta: event.exact.meta })
        }
      }
    )
  }

  const failed = Effect.fnUntraced(function* (
    delivery: Delivery,
    failure: Redelivery.Failure,
    child: Child,
    read: { readonly context: AggregationContext; readonly meta: JsonObject } | undefined
  ): Effect.fn.Return<Verdict, Redelivery.Unredelivered> {
    const kind = failure.exceptionType ?? failure.reason
    const failedAttempt = { consumer: name, queue, taskId: child.task_id, failure, attempt: child.retry_attempt }
    if (redelivery === undefined) {
      yield* FailureLog.log({ ...failedAttempt, maxRetries: 0, went: undefined })
      return { settle: "reject", failure: kind }
    }
    const went = yield* redelivery.redeliver(delivery, failure)
    const { _tag, attempt, queue: target, reason } = went
    const { maxRetries } = redelivery.policy
    yield* FailureLog.log({ ...failedAttempt, maxRetries, went })
    const type = _tag === "Retry" ? "AggregationRetryScheduled" : "AggregationDeadLetterPublished"
    observe((at) =>
      Observation.of(type, at, {
        ...child,
        consumer_name: name,
        queue_name: target,
        source_queue_name: queue,
        retry_attempt: attempt,
        max_retries: maxRetries,
        reason
      })
    )
    yield* record({ redelivery, delivery, failure, went, taskId: child.task_id })
    if (read !== undefined && retryStatuses.enabled) {
      const { meta, ...said } =
        _tag === "Retry"
          ? retryStatuses.retrying(attempt, maxRetries, failure.text)
          : retryStatuses.deadLettered(attempt, maxRetries, failure.text)
      const { correlationId, event, lineage, taskId } = read.context
      // by its task id, and so into no aggregation queue
      yield* TaskStatuses.publish(
        client,
        { taskId, correlationId, lineage, task: event },
        { ...said, meta: { ...meta, ...read.meta } },
        _tag === "DeadLetter"
      )
    }
    return { settle: "ack", failure: kind }
  })

  const unreadable = (delivery: Delivery, { _tag, message, reason }: EnvelopeError) =>
    failed(
      delivery,
      // nothing was thrown where bytes are no JSON
      redacted(redact, {
        reason,
        exceptionType: reason === "malformed_json" ? null : _tag,
        text: message,
        stack: "",
        retryable: false
      }),
      {
        task_id: null,
        parent_task_id: null,
        correlation_id: delivery.properties.correlationId ?? null,
        retry_attempt: RetryHeaders.attemptOf(delivery.properties.headers ?? {})
      },
      undefined
    )

  const { run, stop } = DeliveryLoop.make<R>(broker, {
    ...ConsumerOptions.ofLoop(options),
    name,
    queue,
    concurrency: options.concurrency ?? client.topology.prefetchCount,
    prepare: Effect.all(
      [
        client.initialize,
        TopologyPlan.declare(broker, client.topology, declarations),
        redelivery?.prepare ?? Effect.void,
        ConsumerTimeout.warnOnce(broker, name, family, undefined)
      ],
      { discard: true }
    ),
    work
  })
  return { queue, run, stop }
})

/** A worker for as long as the layer is there; it stops as `stop` does. */
export const layer = <R>(
  options: Options<R>
): Layer.Layer<never, InvalidPublish | SettingsError, Broker | BrokerClient | R> =>
  Layer.effectDiscard(Effect.flatMap(make(options), ({ run }) => Effect.forkScoped(run)))

/** Whose event it is, as far as it could be read. */
interface Child {
  readonly task_id: string | null
  readonly parent_task_id: string | null
  readonly correlation_id: string | null
  readonly retry_attempt: number
}
