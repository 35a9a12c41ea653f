import type { Delivery } from "../../services/Broker.ts"
import type { JsonObject } from "../envelope/Envelope.ts"
import type { ExactAndOrdinary } from "../envelope/ExactJson.ts"
import { parentTaskId, type StatusEvent } from "../envelope/StatusEvent.ts"
import * as HandOverHeaders from "../retry/HandOverHeaders.ts"
import { type ConsumerIdentity, DeliveryContext } from "./HandlerContext.ts"

/**
 * Describes the event that an aggregation handler processes. Its methods publish statuses.
 *
 * The current task is the child task of the event. To publish a status of the parent task, use `client.publishStatus`.
 *
 * The handler also receives the statuses that it publishes with `publishAggregationStatus` for the same parent. The
 * handler therefore needs a condition that ends this cycle.
 */
export class AggregationContext extends DeliveryContext {
  readonly taskId: string
  readonly correlationId: string
  /** The parent whose children are aggregated. `undefined` if the event names no parent. */
  readonly parentTaskId: string | undefined
  readonly lineage: HandOverHeaders.HandOverHeaders
  /** An event of a task does not come from the task's dead-letter queue. */
  readonly replay = undefined
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
