import { Effect, Result } from "effect"
import type { Delivery, Fields } from "../../services/Broker.ts"
import type { JsonObject, NoCamelCaseMembers } from "../envelope/Envelope.ts"
import type { EnvelopeError, InvalidManualRetry, InvalidPublish } from "../envelope/Errors.ts"
import type { ExactAndOrdinary } from "../envelope/ExactJson.ts"
import type * as StatusEvent from "../envelope/StatusEvent.ts"
import type * as TaskEnvelope from "../envelope/TaskEnvelope.ts"
import type { BrokerClient, PublishError } from "../publish/BrokerClient.ts"
import * as Publications from "../publish/Publications.ts"
import * as HandOverHeaders from "../retry/HandOverHeaders.ts"
import * as ManualRetry from "../retry/ManualRetry.ts"
import * as ReplayOrigin from "../retry/ReplayOrigin.ts"
import * as RetryHeaders from "../retry/RetryHeaders.ts"
import * as BatchFanOut from "./BatchFanOut.ts"

/** The details of a status. The context adds the task id, the correlation id and the number of manual retries. */
export interface StatusDetails extends NoCamelCaseMembers<typeof StatusEvent.Declared.fields> {
  readonly message?: string | null | undefined
  readonly meta?: JsonObject | undefined
  readonly result?: JsonObject | null | undefined
  /** Default: the correlation id of the task. */
  readonly correlation_id?: string | null | undefined
  readonly event_id?: string | null | undefined
  /** Default: the service of the task. */
  readonly service?: string | null | undefined
  readonly timestamp?: string | undefined
  readonly [extra: string]: unknown
}

export interface ConsumerIdentity {
  readonly client: BrokerClient["Service"]
  readonly name: string
  readonly queue: string
  /** `null` if the consumer has no retry policy. */
  readonly maxRetries: number | null
}

/** A status of the current task. The context overwrites its `task_id`. */
type StatusWithDetails = StatusDetails & { readonly status: string }

/** Describes the delivery that a task or aggregation handler processes. Its methods publish statuses of the task. */
export abstract class DeliveryContext {
  readonly client: BrokerClient["Service"]
  readonly consumerName: string
  /** The queue that this worker consumes. Retries return to it. */
  readonly sourceQueueName: string
  /** `null` if the consumer has no retry policy. */
  readonly maxRetries: number | null
  /** The decoded message body, with canonical member names. */
  readonly rawPayload: JsonObject
  readonly deliveryTag: number
  /** True if the broker has delivered the message before without receiving an acknowledgement. */
  readonly redelivered: boolean
  readonly headers: Fields

  constructor(consumer: ConsumerIdentity, delivery: Delivery, rawPayload: JsonObject) {
    this.client = consumer.client
    this.consumerName = consumer.name
    this.sourceQueueName = consumer.queue
    this.maxRetries = consumer.maxRetries
    this.rawPayload = rawPayload
    this.deliveryTag = delivery.deliveryTag
    this.redelivered = delivery.redelivered
    this.headers = delivery.properties.headers ?? {}
  }

  abstract readonly taskId: string
  /** The correlation id of the body, else of the message properties, else the task id. */
  abstract readonly correlationId: string
  abstract readonly lineage: HandOverHeaders.HandOverHeaders
  /** The replay of a dead letter that published the message. Its statuses name it in `meta.replayed_from`. */
  abstract readonly replay: ReplayOrigin.ReplayOrigin | undefined
  protected abstract readonly echoedFields: { readonly service?: string; readonly task_type?: string }

  /** The number of retries so far. 0 for the first delivery. */
  get retryAttempt(): number {
    return RetryHeaders.attemptOf(this.headers)
  }

  /** The id of the batch that contained the task. `undefined` for a task that was published on its own. */
  get batchId(): string | undefined {
    return this.#position?.batchId
  }

  /** The position in the batch, from 0. */
  get batchIndex(): number | undefined {
    return this.#position?.batchIndex
  }

  get batchSize(): number | undefined {
    return this.#position?.batchSize
  }

  get manualRetryCount(): number {
    return this.lineage.count
  }

  get manualRetryPreviousTaskType(): string | undefined {
    return this.lineage.previousTaskType
  }

  get manualRetrySourceConsumer(): string | undefined {
    return this.lineage.sourceConsumer
  }

  get manualRetryReason(): string | undefined {
    return this.lineage.reason
  }

  /** Publishes a status of the current task. To publish a status of another task, use `client.publishStatus`. */
  publishStatus(status: string | StatusWithDetails, details: StatusDetails = {}): Effect.Effect<void, PublishError> {
    return Effect.suspend(() => this.client.publishStatus(this.#event(status, details)))
  }

  /** Publishes a status of the current task. The aggregation worker of `meta.parent_task_id` also receives it. */
  publishAggregationStatus(
    status: string | StatusWithDetails,
    details: StatusDetails = {}
  ): Effect.Effect<void, PublishError> {
    return Effect.suspend(() => this.client.publishAggregationStatus(this.#event(status, details)))
  }

  #event(status: string | StatusWithDetails, details: StatusDetails): StatusEvent.StatusInput {
    const given = typeof status === "string" ? { ...details, status } : status
    return {
      ...this.echoedFields,
      ...given,
      meta: ReplayOrigin.intoMeta(HandOverHeaders.intoMeta(given.meta ?? {}, this.lineage), this.replay),
      task_id: this.taskId,
      correlation_id: given.correlation_id || this.correlationId
    }
  }

  get #position(): BatchFanOut.BatchPosition | undefined {
    return BatchFanOut.positionOf(this.headers)
  }
}

/**
 * `manualRetry` ends the handler with this defect, because `Effect.catch` and `Effect.retry` do not intercept defects.
 * The consumer compares defects by identity, because reading a property of an unknown error may run user code.
 */
export const handOverSignal = { _tag: "HandedOver" } as const

/** Describes a task to its handler. `manualRetry` hands the task over to another worker. */
export class HandlerContext extends DeliveryContext {
  readonly taskId: string
  readonly correlationId: string
  readonly #task: ExactAndOrdinary<TaskEnvelope.TaskEnvelope>
  #lineage: HandOverHeaders.HandOverHeaders | undefined
  #handOver: ManualRetry.ManualRetry | undefined

  constructor(
    consumer: ConsumerIdentity,
    delivery: Delivery,
    rawPayload: JsonObject,
    task: ExactAndOrdinary<TaskEnvelope.TaskEnvelope>
  ) {
    super(consumer, delivery, rawPayload)
    const { correlation_id, task_id } = task.ordinary
    this.#task = task
    this.taskId = task_id
    this.correlationId = correlation_id || delivery.properties.correlationId || task_id
  }

  get lineage(): HandOverHeaders.HandOverHeaders {
    this.#lineage ??= HandOverHeaders.ofHeaders(this.headers)
    return this.#lineage
  }

  get replay(): ReplayOrigin.ReplayOrigin | undefined {
    return ReplayOrigin.ofHeaders(this.headers)
  }

  protected get echoedFields() {
    const { service, task_type } = this.#task.ordinary
    return { ...(service !== undefined && { service }), ...(task_type !== undefined && { task_type }) }
  }

  /**
   * Republishes the task under the same id and ends the handler. In a routed topology, `taskType` is the routing key.
   *
   * The handler ends with a defect. If the handler intercepts the defect, the task is republished only if the handler
   * succeeds. If `manualRetry` was called several times, the last request is used.
   *
   * Fails with an `InvalidManualRetry`, an `EnvelopeError` or an `InvalidPublish` if the request is invalid.
   */
  manualRetry(
    request: ManualRetry.ManualRetryRequest = {}
  ): Effect.Effect<never, InvalidManualRetry | EnvelopeError | InvalidPublish> {
    return Effect.suspend(() => {
      const prepared = Result.flatMap(ManualRetry.prepare(this.#task.exact, this, request), (retry) =>
        // The publication is discarded. An invalid task must fail in the handler, not later in the consumer.
        Result.map(Publications.task(this.client.topology, retry.task, { headers: retry.headers }), () => retry)
      )
      if (Result.isFailure(prepared)) return Effect.fail(prepared.failure)
      this.#handOver = prepared.success
      return Effect.die(handOverSignal)
    })
  }

  get handOver(): ManualRetry.ManualRetry | undefined {
    return this.#handOver
  }
}
