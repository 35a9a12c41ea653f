import { randomUUID } from "node:crypto"
import { Clock, Effect, Metric, Schedule, Schema } from "effect"
import { ofMillis, withOffset } from "../../messaging/envelope/Timestamp.ts"
import type { DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import * as RetryHeaders from "../../messaging/retry/RetryHeaders.ts"
import { Broker, type Field, type Fields, type Outcome, type Publication } from "../../services/Broker.ts"
import type { RedisError } from "../../services/Redis.ts"
import { type Claim, DeadLetterStore, type ReplaySettlement } from "../dead-letters/DeadLetterStore.ts"

/** A successful replay. The broker has confirmed the message in `target_queue_name`. */
export interface Replayed {
  readonly dlq_id: string
  readonly target_queue_name: string
  readonly state: "replayed"
  readonly replayed_at: string
  readonly replay_count: number
  readonly forced: boolean
}

/**
 * A replay failed. For every reason except `unknown`, nothing was published and the record is unchanged.
 *
 * - `absent`: the record does not exist. `changed`: the record is not in the required state.
 * - `replayed`, `in_progress`, `replay_unknown`: the record is already in this state.
 * - `replaced`: the record was edited, so the edited one is replayed. `archived`: somebody has archived the record.
 * - `begun`: the same job has replayed the record before. The job counts the record as done.
 * - `no_queue`: the source queue does not exist. `unavailable`: the broker accepts no messages now. `refused`: the
 *   broker rejects this message.
 * - `unknown`: the message was sent, but it is unknown whether the broker stored it. The record is `replay_unknown`.
 */
export class ReplayError extends Schema.TaggedError<ReplayError>()("ReplayError", {
  reason: Schema.Literals([
    "absent",
    "replayed",
    "begun",
    "in_progress",
    "replay_unknown",
    "changed",
    "replaced",
    "archived",
    "no_queue",
    "unavailable",
    "refused",
    "unknown"
  ]),
  message: Schema.String
}) {}

export interface ReplayOptions {
  /** Also replays a record whose state is `replayed` or `replay_unknown`. Default: false. */
  readonly force?: boolean
  /** The state that the record must be in. Default: any state that `force` allows. */
  readonly state?: Claim["state"]
  /** The replay job and its current batch. Missing if a request replays a single record. */
  readonly job?: Claim["job"]
}

const replays = Metric.counter("svc_dlq_replays_total", {
  description: "Replays of dead letters by outcome",
  incremental: true
})

/**
 * Publishes a dead letter to its source queue. The state of the record is `replay_unknown` before the publish and
 * `replayed` after it. A crash in between leaves `replay_unknown`, because the message may have been published. The
 * effect is uninterruptible, and each step has a timeout.
 */
export const replay = (
  dlqId: string,
  { force = false, job, state }: ReplayOptions = {}
): Effect.Effect<Replayed, ReplayError | RedisError, DeadLetterStore | Broker> =>
  attemptReplay({ dlqId, token: randomUUID(), job, force, state }).pipe(
    Effect.tap(() => countOutcome("replayed")),
    Effect.tapError((error) => countOutcome(error._tag === "ReplayError" ? error.reason : "store_unavailable")),
    Effect.uninterruptible,
    Effect.withSpan("Replay.replay")
  )

const countOutcome = (outcome: string) => Metric.update(Metric.withAttributes(replays, { outcome }), 1)

const attemptReplay = Effect.fnUntraced(function* (claim: Claim) {
  const store = yield* DeadLetterStore
  const record = yield* claimRecord(claim)
  const now = withOffset(ofMillis(yield* Clock.currentTimeMillis))
  const begun = yield* store
    .begin(claim)
    .pipe(Effect.tapError(() => Effect.ignore(settle(claim, { _tag: "reverted" }))))
  if (!begun)
    return yield* failure(
      "in_progress",
      `Another replay of ${claim.dlqId} began meanwhile, so this replay published nothing. Check the state of the record.`
    )
  const queue = record.source_queue_name
  const outcome = yield* (yield* Broker).publish(publicationOf(record, now))
  if (outcome._tag !== "Confirmed") return yield* failUnconfirmed(claim, queue, outcome)
  const count = yield* settle(claim, { _tag: "replayed", at: now, queue }).pipe(
    Effect.mapError(
      (error) =>
        new ReplayError({
          reason: "unknown",
          message: `The broker confirmed the message of ${claim.dlqId} in ${queue}, but the record could not be updated (${error.message}). The record stays in state replay_unknown. Do not replay it again.`
        })
    )
  )
  return {
    dlq_id: claim.dlqId,
    target_queue_name: queue,
    state: "replayed",
    replayed_at: now,
    // `count` is missing if the record was deleted from the index meanwhile.
    replay_count: count ?? record.replay_count + 1,
    forced: claim.force
  } satisfies Replayed
})

const failure = (reason: ReplayError["reason"], message: string) => new ReplayError({ reason, message })

const claimRecord = Effect.fnUntraced(function* (claim: Claim) {
  const { dlqId } = claim
  const store = yield* DeadLetterStore
  const result = yield* store
    .claim(claim)
    .pipe(Effect.tapError(() => Effect.ignore(store.settle(claim, { _tag: "released" }))))
  switch (result._tag) {
    case "Claimed":
      return result.record
    case "Absent":
      return yield* failure(
        "absent",
        `There is no dead letter ${dlqId} in the index. If its message is still in the queue, POST /dlq/queues/index indexes it again.`
      )
    case "InProgress":
      return yield* failure(
        "in_progress",
        `Another replay of ${dlqId} is in progress. It ends at ${withOffset(ofMillis(result.until))} at the latest. Try again then.`
      )
    case "Begun":
      return yield* result.isAccountedFor
        ? failure("begun", `This job has already replayed ${dlqId}, so it does not replay it again.`)
        : failure(
            "unknown",
            `This job was interrupted during a replay of ${dlqId}. It is unknown whether the message was published. Check whether the task ran. A replay with force=true may publish the message a second time.`
          )
    case "Replayed":
      return yield* failure(
        "replayed",
        `${dlqId} was already replayed at ${result.at}. To replay it again, add ?force=true to the request, or "force":true to that of a job.`
      )
    case "Changed":
      return yield* failure(
        "changed",
        `${dlqId} is in state ${result.state}, but only records in state ${claim.state} are replayed.`
      )
    case "Replaced":
      return yield* failure("replaced", `${dlqId} was edited: replay ${result.by}, which has the edited message.`)
    case "Archived":
      return yield* failure(
        "archived",
        `${dlqId} was archived at ${result.at}. Take it out of the archive before you replay it.`
      )
    case "Unknown":
      return yield* failure(
        "replay_unknown",
        `A replay of ${dlqId} by ${result.by} began at ${result.at}. It is unknown whether the message was published. Check whether the task ran. A replay with force=true may publish the message a second time.`
      )
  }
})

/** Records the outcome of a replay. Retries while Redis is unavailable, because repeating the call is harmless. */
const settle = (claim: Claim, settlement: ReplaySettlement) =>
  Effect.flatMap(DeadLetterStore, (store) => store.settle(claim, settlement)).pipe(
    Effect.retry({
      schedule: Schedule.upTo(Schedule.exponential("100 millis"), { times: 4 }),
      while: ({ retryable }) => retryable
    })
  )

const failUnconfirmed = Effect.fnUntraced(function* (
  claim: Claim,
  queue: string,
  outcome: Exclude<Outcome, { readonly _tag: "Confirmed" }>
) {
  if (outcome._tag === "Unknown") {
    // This call releases the claim. Without it, the record would stay reserved until the claim expires.
    yield* Effect.ignore(settle(claim, { _tag: "unknown" }))
    return yield* failure(
      "unknown",
      `It is unknown whether ${claim.dlqId} arrived in ${queue} (${outcome.reason}): ${outcome.detail}. The state of the record is now replay_unknown. Check whether the task ran. A replay with force=true may publish the message a second time.`
    )
  }
  // If this call fails, the record stays `replay_unknown`. Such a record is replayed again only with `force`.
  yield* settle(claim, { _tag: "reverted" })
  if (outcome._tag === "Returned") {
    return yield* failure(
      "no_queue",
      `The queue ${queue} does not exist any more, so ${claim.dlqId} was not replayed. Start the worker that declares the queue, then replay again.`
    )
  }
  const isTemporary = outcome.reason === "unreachable" || outcome.reason === "closed" || outcome.reason === "blocked"
  return yield* failure(
    isTemporary ? "unavailable" : "refused",
    `The publish of ${claim.dlqId} to ${queue} was refused (${outcome.reason}): ${outcome.detail}. The record is unchanged and can be replayed again.`
  )
})

/**
 * Creates the message of a replay. It is published to the source queue and not to the retry queue. The broker deletes
 * unused retry queues, and the worker may have changed their delays. Publishes are mandatory, so `Confirmed` means that
 * the source queue has the message.
 */
const publicationOf = (record: DeadLetterRecord, at: string): Publication => {
  const { properties = {} } = record
  return {
    purpose: "retries",
    exchange: "",
    routingKey: record.source_queue_name,
    content: Buffer.from(record.raw_body_b64, "base64"),
    properties: {
      persistent: true,
      headers: headersOf(record, at),
      ...(record.content_type !== null && { contentType: record.content_type }),
      ...(record.correlation_id !== null && { correlationId: record.correlation_id }),
      ...(properties.priority !== undefined && { priority: properties.priority }),
      ...(properties.content_encoding !== undefined && { contentEncoding: properties.content_encoding }),
      ...(properties.reply_to !== undefined && { replyTo: properties.reply_to }),
      ...(properties.message_id !== undefined && { messageId: properties.message_id }),
      ...(properties.timestamp !== undefined && { timestamp: new Date(properties.timestamp) }),
      ...(properties.type !== undefined && { type: properties.type }),
      ...(properties.app_id !== undefined && { appId: properties.app_id })
    }
  }
}

/** Returns the headers of a replay. The attempt count restarts at 0. The last failure moves to `x-svc-original-…`. */
const headersOf = ({ dlq_id, headers }: DeadLetterRecord, at: string): Fields => {
  const {
    [RetryHeaders.failureReason]: reason,
    [RetryHeaders.exceptionType]: exceptionType,
    [RetryHeaders.deadLetteredAt]: _,
    ...rest
  } = headers
  const given: Record<string, unknown> = {
    ...rest,
    [RetryHeaders.retryAttempt]: 0,
    "x-svc-original-retry-attempt": headers[RetryHeaders.retryAttempt] ?? null,
    "x-svc-original-failure-reason": reason ?? null,
    "x-svc-original-exception-type": exceptionType ?? null,
    [RetryHeaders.replayedFromDlq]: true,
    [RetryHeaders.replayedLetter]: dlq_id,
    [RetryHeaders.replayedAt]: at
  }
  return RetryHeaders.withoutBrokerHeaders(Object.fromEntries(Object.entries(given).filter(isField)))
}

/** Returns whether AMQP can encode the value. Records of other programs may contain other values. */
const isField = (entry: [string, unknown]): entry is [string, Field] => isFieldValue(entry[1])

const isFieldValue = (value: unknown): value is Field =>
  value === null ||
  typeof value === "string" ||
  typeof value === "boolean" ||
  (typeof value === "number" && Number.isFinite(value)) ||
  (typeof value === "object" && Object.values(value).every(isFieldValue))
