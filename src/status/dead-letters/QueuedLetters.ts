import { Clock, Effect, Option, Result, Schema, Semaphore } from "effect"
import { Timestamp } from "../../messaging/envelope/Timestamp.ts"
import { type DeadLetterRecord, recordOf } from "../../messaging/failure/DeadLetter.ts"
import * as RetryHeaders from "../../messaging/retry/RetryHeaders.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import { Broker, type BrokerError, type Channel, type Delivery, type Field } from "../../services/Broker.ts"
import { DeadLetterStore } from "./DeadLetterStore.ts"

/**
 * The result of a walk over a dead-letter queue. A walk receives the messages without acknowledging them, so no other
 * consumer receives them meanwhile. When the walk ends or crashes, the broker puts the messages back in their
 * positions. The walk acknowledges only the messages that it removes or moves to the end (see `requeueAtEnd`).
 */
const walkCounts = {
  queue_name: Schema.String,
  /** The number of examined messages. Unless `truncated`, these are all messages that were ready at the start. */
  messages: Schema.Int,
  /** The number of messages that were not dead-lettered by a worker of this library. */
  foreign: Schema.Int,
  /** True if the walk ended early: after 100,000 messages or four minutes, or because a consumer took messages. */
  truncated: Schema.Boolean
}

export const Indexed = Schema.Struct({
  ...walkCounts,
  /** The number of messages that had no record and now have one. */
  indexed: Schema.Int,
  known: Schema.Int
})
export type Indexed = typeof Indexed.Type

export const Removed = Schema.Struct({
  ...walkCounts,
  removed: Schema.Int,
  /** The number of messages that stay, because they were not replayed or have no record. */
  kept: Schema.Int
})
export type Removed = typeof Removed.Type

/** A dead-letter queue could not be read. `busy`: this process is reading a dead-letter queue already. */
export class QueueWalkFailed extends Schema.TaggedError<QueueWalkFailed>()("QueueWalkFailed", {
  reason: Schema.Literals(["no_queue", "unavailable", "busy"]),
  message: Schema.String
}) {}

const maxMessages = 100_000
/** A long queue is walked less often, because a walk keeps its messages away from others. */
const [restPerMessageMs, longestRestMs] = [3, 600_000]
/** Shorter than five minutes, the time after which HTTP clients such as `fetch` give up. */
const walkTimeoutMs = 240_000

export const make = Effect.map(Semaphore.make(1), (walkPermit) => {
  /** Calls `visit` for each message. If `visit` returns true, the message is removed from the queue. */
  const walk = <E, R>(
    queue: string,
    aliases: ContractAliasConfig,
    visit: (letter: DeadLetterRecord) => Effect.Effect<boolean, E, R>,
    goesOn: () => boolean = () => true
  ) =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const found = yield* Effect.mapError(broker.inspect(queue), toUnavailable(queue))
      if (Option.isNone(found)) return yield* failure("no_queue", `There is no queue ${queue}.`)
      const ready = found.value.messages
      const endsAt = (yield* Clock.currentTimeMillis) + walkTimeoutMs
      const channel = yield* Effect.mapError(broker.channel({ prefetch: 1 }), toUnavailable(queue))
      const take = Effect.mapError(channel.get(queue), toUnavailable(queue))
      let [messages, foreign] = [0, 0]
      while (messages < Math.min(ready, maxMessages) && (yield* Clock.currentTimeMillis) < endsAt && goesOn()) {
        const next = yield* take
        if (Option.isNone(next)) break
        messages++
        const letter = recordFromMessage(queue, next.value, aliases)
        if (letter === undefined) foreign++
        const isDone = letter !== undefined && (yield* visit(letter))
        if (isDone) next.value.settle("ack")
        else yield* requeueAtEnd(channel, next.value)
      }
      return { queue_name: queue, messages, foreign, truncated: messages < ready }
    }).pipe(
      Effect.scoped,
      walkPermit.withPermitsIfAvailable(1),
      Effect.flatMap(
        Option.match({
          onNone: () => failure("busy", "This process is already reading a dead-letter queue. Try again later."),
          onSome: Effect.succeed
        })
      )
    )

  return {
    /** Indexes the messages of a queue that have no record, for example after Redis has lost data. Idempotent. */
    index: Effect.fn("QueuedLetters.index")(function* (queue: string, aliases: ContractAliasConfig) {
      const store = yield* DeadLetterStore
      let [indexed, known] = [0, 0]
      const walked = yield* walk(queue, aliases, (letter) =>
        Effect.map(store.record(letter), (isNew) => {
          if (isNew) indexed++
          else known++
          return false
        })
      )
      return { ...walked, indexed, known } satisfies Indexed
    }),

    /** Removes the messages whose records were replayed, edited or archived. The records stay in the index. */
    removeReplayed: Effect.fn("QueuedLetters.removeReplayed")(function* (queue: string, aliases: ContractAliasConfig) {
      const store = yield* DeadLetterStore
      let [removed, kept] = [0, 0]
      const walked = yield* walk(queue, aliases, ({ dlq_id }) =>
        Effect.map(store.get(dlq_id), (record) => {
          const isDone = record?.state === "replayed" || record?.state === "replaced" || record?.state === "archived"
          if (isDone) removed++
          else kept++
          return isDone
        })
      )
      return { ...walked, removed, kept } satisfies Removed
    }),

    /** Removes the messages of records that were archived. A queue that does not exist has none. */
    removeArchived: Effect.fn("QueuedLetters.removeArchived")(function* (
      queue: string,
      aliases: ContractAliasConfig,
      retryInMs: number
    ) {
      const { archivedCopies } = yield* DeadLetterStore
      const archived = yield* archivedCopies.of(queue)
      const waiting = new Set(archived)
      const removed: Array<string> = []
      const visit = ({ dlq_id }: DeadLetterRecord) =>
        Effect.sync(() => {
          if (!waiting.delete(dlq_id)) return false
          removed.push(dlq_id)
          return true
        })
      const walked = yield* Effect.catchIf(
        walk(queue, aliases, visit, () => waiting.size > 0),
        ({ reason }) => reason === "no_queue",
        () => Effect.undefined
      )
      // The channel is closed, so the broker has the acknowledgements.
      yield* archivedCopies.settle(queue, {
        removed: walked === undefined ? archived : removed,
        // A walk that ended early says nothing about the messages that it did not reach.
        missed: walked === undefined || walked.truncated ? [] : [...waiting],
        retryInMs: walked === undefined || waiting.size === 0 ? 0 : retryInMs,
        restMs: Math.min((walked?.messages ?? 0) * restPerMessageMs, longestRestMs)
      })
    })
  }
})

export type QueuedLetters = Effect.Success<typeof make>

const failure = (reason: QueueWalkFailed["reason"], message: string) => new QueueWalkFailed({ reason, message })

const toUnavailable =
  (queue: string) =>
  ({ message }: BrokerError) =>
    failure("unavailable", `The queue ${queue} cannot be read now: ${message}`)

/**
 * Moves a message to the end of its queue if the broker has requeued it before. A quorum queue counts requeues, and
 * drops a message above its delivery limit (20 by default on RabbitMQ 4). The copy at the end has a new count. A crash
 * before the old message is acknowledged leaves both in the queue, with the same `dlq_id`.
 */
const requeueAtEnd = (channel: Channel, { content, properties, queue, settle }: Delivery) =>
  Effect.gen(function* () {
    // The broker rejects a `userId` of another user. A `CC` header would copy the message to more queues.
    const { userId: _, headers: { [deliveryCountHeader]: times, CC: __, ...headers } = {}, ...described } = properties
    if (RetryHeaders.count(times) === 0) return
    const outcome = yield* channel.publish({
      exchange: "",
      routingKey: queue,
      content,
      properties: { ...described, headers }
    })
    if (outcome._tag !== "Confirmed") {
      const why = outcome._tag === "Returned" ? "the queue does not exist any more" : outcome.reason
      return yield* failure(
        "unavailable",
        `A message of ${queue} could not be moved to the end of the queue (${why}). A quorum queue counts every read and may drop messages above its delivery limit: find the cause before you try again.`
      )
    }
    settle("ack")
  }).pipe(Effect.uninterruptible)

const deliveryCountHeader = "x-delivery-count"

/** Creates a record from the headers of a message. Returns `undefined` for a message of another program. */
const recordFromMessage = (
  queue: string,
  { content, properties }: Delivery,
  aliases: ContractAliasConfig
): DeadLetterRecord | undefined => {
  const { headers = {} } = properties
  const at = headers[RetryHeaders.deadLetteredAt]
  const reason = headers[RetryHeaders.failureReason]
  const sourceQueue = headers[RetryHeaders.sourceQueue]
  const exceptionType = headers[RetryHeaders.exceptionType]
  if (!isExactTimestamp(at) || typeof reason !== "string" || typeof sourceQueue !== "string") return undefined
  const read = aliases.read("task", content)
  const taskId = Result.isSuccess(read) ? read.success.ordinary["task_id"] : null
  return recordOf({
    delivery: { content, properties },
    queue,
    sourceQueue,
    retryQueue: null,
    taskId: typeof taskId === "string" ? taskId : null,
    reason,
    exceptionType: typeof exceptionType === "string" ? exceptionType : null,
    exceptionMessage: "",
    exceptionStack: "",
    attempt: RetryHeaders.attemptOf(headers),
    maxRetries: RetryHeaders.count(headers[RetryHeaders.maxRetries]),
    headers,
    at
  })
}

/** Accepts only the exact format that workers write, because the hash `dlq_id` includes this text. */
const isExactTimestamp = (at: Field | undefined): at is Timestamp =>
  typeof at === "string" && Option.contains(readTimestamp(at), at)

const readTimestamp = Schema.decodeUnknownOption(Timestamp)
