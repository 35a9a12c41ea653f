import { randomUUID } from "node:crypto"
import { Clock, Effect, Schedule } from "effect"
import type { JsonObject } from "../envelope/Envelope.ts"
import type { TaskEnvelope } from "../envelope/TaskEnvelope.ts"
import * as Timestamp from "../envelope/Timestamp.ts"
import * as HandOverHeaders from "../retry/HandOverHeaders.ts"
import * as ReplayOrigin from "../retry/ReplayOrigin.ts"
import type { BrokerClient, PublishError } from "./BrokerClient.ts"

export interface StatusOwner {
  readonly taskId: string
  readonly correlationId: string
  readonly lineage: HandOverHeaders.HandOverHeaders
  /** Missing if the message does not come from a dead-letter queue. */
  readonly replay?: ReplayOrigin.ReplayOrigin | undefined
  readonly task: Pick<TaskEnvelope, "service" | "task_type">
}

export interface StatusContent {
  readonly status: string
  readonly message?: string
  readonly meta?: JsonObject
  /** Default: a random id. */
  readonly eventId?: string
  /** True if the status reports that the message has failed for good. */
  readonly failed?: boolean
}

const terminalRetries = { times: 5, spacing: "1 second" } as const

/**
 * Publishes a status about a delivery. Returns false if the status was not confirmed. A missing status must not fail
 * the task. A `terminal` status is retried with the same event id, because no later status would replace it.
 */
export const publish = Effect.fnUntraced(function* (
  client: BrokerClient["Service"],
  owner: StatusOwner,
  content: StatusContent,
  terminal: boolean
) {
  const { service, task_type } = owner.task
  const event = {
    task_id: owner.taskId,
    status: content.status,
    ...(content.message !== undefined && { message: content.message }),
    meta: ReplayOrigin.intoMeta(
      HandOverHeaders.intoMeta(content.meta ?? {}, owner.lineage),
      owner.replay,
      content.failed
    ),
    correlation_id: owner.correlationId,
    ...(service !== undefined && { service }),
    ...(task_type !== undefined && { task_type }),
    timestamp: Timestamp.ofMillis(yield* Clock.currentTimeMillis),
    event_id: content.eventId ?? randomUUID().replaceAll("-", "")
  }
  const once = client.publishStatus(event)
  const published = terminal
    ? Effect.retry(once, {
        schedule: Schedule.spaced(terminalRetries.spacing),
        times: terminalRetries.times,
        while: isTransient
      })
    : once
  return yield* Effect.matchEffect(published, {
    onSuccess: () => Effect.succeed(true),
    onFailure: (error) =>
      Effect.as(
        Effect.logWarning(
          `The status ${content.status} of task ${owner.taskId} could not be published, so readers will not see it. The task itself is not affected`,
          error.message
        ),
        false
      )
  })
})

const isTransient = (error: PublishError): boolean =>
  error._tag === "PublishUnknown" ||
  (error._tag === "PublishRefused" &&
    (error.reason === "nacked" || error.reason === "blocked" || error.reason === "unreachable"))
