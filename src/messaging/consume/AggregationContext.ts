import type { Delivery } from "../../services/Broker.ts"
import type { JsonObject } from "../envelope/Envelope.ts"
import type { Both } from "../envelope/ExactJson.ts"
import { parentTaskId, type StatusEvent } from "../envelope/StatusEvent.ts"
import * as Lineage from "../retry/Lineage.ts"
import { type Consumer, DeliveryContext } from "./HandlerContext.ts"

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
  readonly lineage: Lineage.Lineage
  readonly event: StatusEvent

  constructor(
    consumer: Consumer,
    delivery: Delivery,
    rawPayload: JsonObject,
    { exact, ordinary: event }: Both<StatusEvent>
  ) {
    super(consumer, delivery, rawPayload)
    this.event = event
    this.taskId = event.task_id
    this.correlationId = event.correlation_id || delivery.properties.correlationId || event.task_id
    this.parentTaskId = parentTaskId(exact)
    const lineage = Lineage.ofHeaders(this.headers)
    this.lineage = Lineage.isEmpty(lineage) ? Lineage.ofMeta(event.meta) : lineage
  }

  protected get echoed() {
    const { service, task_type } = this.event
    return { ...(service !== undefined && { service }), ...(task_type !== undefined && { task_type }) }
  }
}
