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
import * as RetryHeaders from "../retry/RetryHeaders.ts"
import * as BatchFanOut from "./BatchFanOut.ts"

/** What a handler says of its task beside the status itself. Task id, correlation id and lineage are the context's. */
export interface StatusDetails extends NoCamelCaseMembers<typeof StatusEvent.Declared.fields> {
  readonly message?: string | null | undefined
  readonly meta?: JsonObject | undefined
  readonly result?: JsonObject | null | undefined
  /** Default: the task's. */
  readonly correlation_id?: string | null | undefined
  readonly event_id?: string | null | undefined
  /** Default: the task's. */
  readonly service?: string | null | undefined
  readonly timestamp?: string | undefined
  readonly [extra: string]: unknown
}

/** Who handles, and for whom. */
export interface ConsumerIdentity {
  readonly client: BrokerClient["Service"]
  readonly name: string
  readonly queue: string
  /** None without a retry policy. */
  readonly maxRetries: number | null
}

/** The status of a task: as text with details, or as one value. A task id in it is overwritten. */
type StatusWithDetails = StatusDetails & { readonly status: string }

/** What a handler of tasks and one of aggregation know of their delivery, and publish about it. */
export abstract class DeliveryContext {
  readonly client: BrokerClient["Service"]
  readonly consumerName: string
  /** The queue whose worker this is: retries come back to it. */
  readonly sourceQueueName: string
  /** None without a retry policy. */
  readonly maxRetries: number | null
  /** The message as it was read, by canonical names. */
  readonly rawPayload: JsonObject
  readonly deliveryTag: number
  /** The broker has given it to somebody before, and does not know what became of it. */
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
  /** The body's, else that of the message, else the task id. */
  abstract readonly correlationId: string
  abstract readonly lineage: HandOverHeaders.HandOverHeaders
  /** Echoed in statuses where they are known. */
  protected abstract readonly echoedFields: { readonly service?: string; readonly task_type?: string }

  /** 0 is the original delivery. */
  get retryAttempt(): number {
    return RetryHeaders.attemptOf(this.headers)
  }

  /** Set only for items of a batch. */
  get batchId(): string | undefined {
    return this.#position?.batchId
  }

  /** Counts from 0. */
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

  /** A status of the current task. One of another task goes by `client.publishStatus`. */
  publishStatus(status: string | StatusWithDetails, details: StatusDetails = {}): Effect.Effect<void, PublishError> {
    return Effect.suspend(() => this.client.publishStatus(this.#event(status, details)))
  }

  /** A status of the current task that is also input for the aggregation of `meta.parent_task_id`. */
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
      meta: HandOverHeaders.intoMeta(given.meta ?? {}, this.lineage),
      task_id: this.taskId,
      correlation_id: given.correlation_id || this.correlationId
    }
  }

  get #position(): BatchFanOut.BatchPosition | undefined {
    return BatchFanOut.positionOf(this.headers)
  }
}

/**
 * What ends a handler that has handed its task over. A defect, so that neither `catch` nor `retry` meets it. Known by
 * identity: to ask anything else of what a handler threw is to run what its author wrote.
 */
export const handOverSignal = { _tag: "HandedOver" } as const

/** What a handler of tasks works with, beside the task. */
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

  protected get echoedFields() {
    const { service, task_type } = this.#task.ordinary
    return { ...(service !== undefined && { service }), ...(task_type !== undefined && { task_type }) }
  }

  /**
   * Hands the task over under its own id, by the routing of its `taskType`, and ends the handler: nothing behind it runs.
   * A handler that survives it is not asked again, the hand-over happens when it returns; should it fail otherwise, it
   * has failed, and nothing is handed over. The last request counts.
   */
  manualRetry(
    request: ManualRetry.ManualRetryRequest = {}
  ): Effect.Effect<never, InvalidManualRetry | EnvelopeError | InvalidPublish> {
    return Effect.suspend(() => {
      const prepared = Result.flatMap(ManualRetry.prepare(this.#task.exact, this, request), (retry) =>
        // what the topology would refuse is the handler's to know
        Result.map(Publications.task(this.client.topology, retry.task, { headers: retry.headers }), () => retry)
      )
      if (Result.isFailure(prepared)) return Effect.fail(prepared.failure)
      this.#handOver = prepared.success
      return Effect.die(handOverSignal)
    })
  }

  /** What was asked for by `manualRetry`; for the consumer. */
  get handOver(): ManualRetry.ManualRetry | undefined {
    return this.#handOver
  }
}
