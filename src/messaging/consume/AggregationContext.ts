import type { Delivery } from "../../services/Broker.ts"
import type { JsonObject } from "../envelope/Envelope.ts"
import type { ExactAndOrdinary } from "../envelope/ExactJson.ts"
import { parentTaskId, type StatusEvent } from "../envelope/StatusEvent.ts"
import * as HandOverHeaders from "../retry/HandOverHeaders.ts"
import { type ConsumerIdentity, DeliveryContext } from "./HandlerContext.ts"

/**
 * What a handler of aggregation works with, beside the event. The current task is the event's, a child; what it has to
 * say of the parent goes by `client.publishStatus`. `publishAggregationStatus` for the same parent comes back to the same
 * shard: whoever does that must know when to end.
 */
export class AggregationContext extends DeliveryContext {
  readonly taskId: string
  readonly correlationId: string
  /** Whose children are aggregated; none where somebody else published the event. */
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
