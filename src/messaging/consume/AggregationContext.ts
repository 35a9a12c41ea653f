import type { Delivery } from "../../services/Broker.ts"
import type { JsonObject } from "../envelope/Envelope.ts"
import type { ExactAndOrdinary } from "../envelope/ExactJson.ts"
import { parentTaskId, type StatusEvent } from "../envelope/StatusEvent.ts"
import * as HandOverHeaders from "../retry/HandOverHeaders.ts"
import { type ConsumerIdentity, DeliveryContext } from "./HandlerContext.ts"

/**
 * Describes the delivery that an aggregation handler processes, and publishes statuses about it.
 *
 * The current task is the child that the event belongs to. To publish a status of the parent, use
 * `client.publishStatus`.
 *
 * A status that the handler publishes with `publishAggregationStatus` for the same parent reaches the same handler
 * again. Such a handler needs a condition that ends the cycle.
 */
export class AggregationContext extends DeliveryContext {
  readonly taskId: string
  readonly correlationId: string
  /** The parent whose children are aggregated. `undefined` if the event names no parent. */
  readonly parentTaskId: string | undefined
  readonly lineage: HandOverHeaders.HandOverHeaders
  readonly event: StatusEvent

  constructor(
    consumer: ConsumerIdentity,
    delivery: Delivery,
    rawPayload: JsonObject,
    { exact, ordinary: event }: ExactAndOrdinary<StatusEvent>
  ) {
    super(consumer, delivery, rawPayload)
    this.event = event
    this.taskId = event.task_id
    this.correlationId = event.correlation_id || delivery.properties.correlationId || event.task_id
    this.parentTaskId = parentTaskId(exact)
    const lineage = HandOverHeaders.ofHeaders(this.headers)
    this.lineage = HandOverHeaders.isEmpty(lineage) ? HandOverHeaders.ofMeta(event.meta) : lineage
  }

  protected get echoedFields() {
    const { service, task_type } = this.event
    return { ...(service !== undefined && { service }), ...(task_type !== undefined && { task_type }) }
  }
}
