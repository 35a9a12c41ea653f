import { Clock, Effect, Option, Result, Schema, Semaphore } from "effect"
import { Timestamp } from "../../messaging/envelope/Timestamp.ts"
import { type DeadLetterRecord, recordOf } from "../../messaging/failure/DeadLetter.ts"
import * as RetryHeaders from "../../messaging/retry/RetryHeaders.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import { Broker, type BrokerError, type Channel, type Delivery, type Field } from "../../services/Broker.ts"
import { DeadLetterStore } from "./DeadLetterStore.ts"

/**
 * A walk reads the messages of a dead-letter queue themselves, and not their records. It takes each message in turn without
 * acknowledging it. When it ends, also by a crash, the broker puts every message that it did not remove back in its place.
 * Until then nobody else can take them. Messages that a quorum queue had to put back before go to its end: see `renew`.
 */
const walkCounts = {
  queue_name: Schema.String,
  /** How many messages the walk has looked at: all that were ready when it began, unless it is truncated. */
  messages: Schema.Int,
  /** How many of them were dead-lettered by something else than a worker of this library: they stay as they are. */
  foreign: Schema.Int,
  /** Fewer than were ready: one walk ends after 100,000 messages or four minutes, or somebody else took some meanwhile. */
  truncated: Schema.Boolean
}

export const Indexed = Schema.Struct({
  ...walkCounts,
  /** How many had no record, and have one now. */
  indexed: Schema.Int,
  /** How many had a record before. */
  known: Schema.Int
})
export type Indexed = typeof Indexed.Type

export const Removed = Schema.Struct({
  ...walkCounts,
  /** How many were replayed, and are gone from the queue. */
  removed: Schema.Int,
  /** How many stay, as they wait to be replayed or have no record. */
  kept: Schema.Int
})
export type Removed = typeof Removed.Type

/** `busy`: another walk is under way in this process. */
export class QueueWalkFailed extends Schema.TaggedError<QueueWalkFailed>()("LettersNotWalked", {
  reason: Schema.Literals(["no_queue", "unavailable", "busy"]),
  message: Schema.String
}) {}

/** As many as the index has room for by default. */
const maxMessages = 100_000
/** Clients such as `fetch` give up after five minutes without an answer. */
const walkTimeoutMs = 240_000

/** One walk is under way at a time. */
export const make = Effect.map(Semaphore.make(1), (walkPermit) => {
  /** `visit` returns whether the message leaves the queue. */
  const walk = <E, R>(
    queue: string,
    aliases: ContractAliasConfig,
    visit: (letter: DeadLetterRecord) => Effect.Effect<boolean, E, R>
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
      while (messages < Math.min(ready, maxMessages) && (yield* Clock.currentTimeMillis) < endsAt) {
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
          onNone: () => failure("busy", "Another dead-letter queue is being read: try again when that is done."),
          onSome: Effect.succeed
        })
      )
    )

  return {
    /** Gives a record to each message of the queue that has none, as after a loss of Redis. It is idempotent. */
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

    /** Removes each message from the queue whose record says that it was replayed. The records stay. */
    removeReplayed: Effect.fn("QueuedLetters.removeReplayed")(function* (queue: string, aliases: ContractAliasConfig) {
      const store = yield* DeadLetterStore
      let [removed, kept] = [0, 0]
      const walked = yield* walk(queue, aliases, ({ dlq_id }) =>
        Effect.map(store.get(dlq_id), (record) => {
          const isDone = record?.state === "replayed"
          if (isDone) removed++
          else kept++
          return isDone
        })
      )
      return { ...walked, removed, kept } satisfies Removed
    })
  }
})

const failure = (reason: QueueWalkFailed["reason"], message: string) => new QueueWalkFailed({ reason, message })

const toUnavailable =
  (queue: string) =>
  ({ message }: BrokerError) =>
    failure("unavailable", `The queue ${queue} cannot be read now: ${message}`)

/**
 * A quorum queue counts how often it had to put a message back, and drops the message above its delivery limit, which is 20
 * on RabbitMQ 4 unless somebody sets another. A message that was put back before is published to the end of the queue, where
 * its count begins anew, and then acknowledged. A crash in between leaves it there twice, with one `dlq_id`.
 */
const requeueAtEnd = (channel: Channel, { content, properties, queue, settle }: Delivery) =>
  Effect.gen(function* () {
    // by `CC` the broker would copy the message to other queues, and it refuses the user id of another user
    const { userId: _, headers: { [deliveryCountHeader]: times, CC: __, ...headers } = {}, ...described } = properties
    if (RetryHeaders.count(times) === 0) return
    const outcome = yield* channel.publish({
      exchange: "",
      routingKey: queue,
      content,
      properties: { ...described, headers }
    })
    if (outcome._tag !== "Confirmed") {
      const why = outcome._tag === "Returned" ? "no queue took it" : outcome.reason
      return yield* failure(
        "unavailable",
        `A message of ${queue} could not be put at its end (${why}). The queue counts each time that it is read, and may drop messages above its delivery limit: find out why before you try again.`
      )
    }
    settle("ack")
  }).pipe(Effect.uninterruptible)

/** A header that quorum queues write. */
const deliveryCountHeader = "x-delivery-count"

/**
 * The record that the worker made of its dead letter, or would have made: the headers of the message hold everything but the
 * exception's message and stack. `undefined` where no worker of this library wrote those headers.
 */
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

/** As workers write times, to the letter: the `dlq_id` is made of the text. */
const isExactTimestamp = (at: Field | undefined): at is Timestamp =>
  typeof at === "string" && Option.contains(readTimestamp(at), at)

const readTimestamp = Schema.decodeUnknownOption(Timestamp)
