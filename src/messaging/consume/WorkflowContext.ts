import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import type { Delivery, Fields } from "../../services/Broker.ts"
import type { JsonObject } from "../envelope/Envelope.ts"
import type { ContractError } from "../envelope/Errors.ts"
import type * as WorkflowEnvelope from "../envelope/WorkflowEnvelope.ts"
import * as Observation from "../observe/Observation.ts"
import type { Observe } from "../observe/ObservationSink.ts"
import type { BrokerClient, PublishError } from "../publish/BrokerClient.ts"
import * as Publications from "../publish/Publications.ts"
import * as ReplayOrigin from "../retry/ReplayOrigin.ts"
import * as RetryHeaders from "../retry/RetryHeaders.ts"
import type { Stage } from "../topology/WorkflowTopology.ts"
import type { StatusDetails } from "./HandlerContext.ts"

/** A message for another stage. */
interface HandOver {
  readonly payload: JsonObject
  readonly action?: string | undefined
  /** Default: `{}`. */
  readonly meta?: JsonObject | undefined
  /** The priority of the new message. The priority of the current message is not inherited. Default: none. */
  readonly priority?: number | undefined
}

/** Describes the message that a stage handler processes. Its methods publish statuses and messages for other stages. */
export interface WorkflowContext {
  /** The client, for operations that the context does not offer, such as a status of another task. */
  readonly client: BrokerClient["Service"]
  readonly consumerName: string
  /** The stage of the consumer. The envelope may name another stage. */
  readonly stage: string
  readonly sourceQueueName: string
  /** The correlation id of the envelope, else of the message properties, else the task id. */
  readonly correlationId: string
  readonly deliveryTag: number
  /** True if the broker has delivered the message before without receiving an acknowledgement. */
  readonly redelivered: boolean
  /** The number of retries so far. 0 for the first delivery. */
  readonly retryAttempt: number
  /** `null` if the consumer has no retry policy. */
  readonly maxRetries: number | null
  readonly headers: Fields

  /** Publishes a status of the current task. */
  readonly publishStatus: (status: string, details?: StatusDetails) => Effect.Effect<void, PublishError>
  /**
   * Publishes a new message of the same task to a stage. Its `origin_stage` is the current stage. Fails with a
   * `ContractError` if the contract of the current stage or of the target stage forbids the message.
   */
  readonly publishToStage: (stage: string, work: HandOver) => Effect.Effect<void, PublishError | ContractError>
  /** Publishes a new message of the same task by a routing key. */
  readonly publishWorkflowMessage: (
    routingKey: string,
    work: HandOver
  ) => Effect.Effect<void, PublishError | ContractError>
}

interface StageRuntime {
  readonly client: BrokerClient["Service"]
  readonly consumerName: string
  readonly stage: Stage
  readonly maxRetries: number | null
  readonly observe: Observe
}

export const make = (
  { client, consumerName, maxRetries, observe, stage }: StageRuntime,
  delivery: Delivery,
  envelope: WorkflowEnvelope.WorkflowEnvelope
): WorkflowContext => {
  const { headers = {} } = delivery.properties
  const correlationId = envelope.correlation_id || delivery.properties.correlationId || envelope.task_id

  const handOver = (
    target: Exclude<Publications.WorkflowTarget, { readonly _tag: "Entry" }>,
    { action, meta = {}, payload, priority }: HandOver
  ) =>
    Effect.gen(function* () {
      const destination = yield* Effect.fromResult(Publications.destination(client.topology, target))
      const message = {
        task_id: envelope.task_id,
        message_id: randomUUID().replaceAll("-", ""),
        correlation_id: correlationId,
        origin_stage: stage.name,
        action,
        payload,
        meta,
        priority
      }
      yield* target._tag === "Key"
        ? client.publishWorkflowMessage(message, target.routingKey)
        : client.publishToStage(message, target.stage)
      observe((at) =>
        Observation.of("WorkflowMessagePublished", at, {
          consumer_name: consumerName,
          queue_name: stage.queue,
          stage: destination.stage.name,
          routing_key: destination.routingKey,
          task_id: envelope.task_id,
          message_id: message.message_id,
          origin_stage: stage.name,
          correlation_id: correlationId
        })
      )
    })

  return {
    client,
    consumerName,
    stage: stage.name,
    sourceQueueName: stage.queue,
    correlationId,
    deliveryTag: delivery.deliveryTag,
    redelivered: delivery.redelivered,
    retryAttempt: RetryHeaders.attemptOf(headers),
    maxRetries,
    headers,
    publishStatus: (status, details = {}) =>
      client.publishStatus({
        ...details,
        meta: ReplayOrigin.intoMeta(details.meta ?? {}, ReplayOrigin.ofHeaders(headers)),
        task_id: envelope.task_id,
        status,
        correlation_id: details.correlation_id || correlationId
      }),
    publishToStage: (stage, work) => handOver({ _tag: "Stage", stage }, work),
    publishWorkflowMessage: (routingKey, work) => handOver({ _tag: "Key", routingKey }, work)
  }
}
