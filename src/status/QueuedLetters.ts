import { Clock, Effect, Option, Result, Schema, Semaphore } from "effect"
import type { ContractAliasConfig } from "../messaging/Aliases.ts"
import { type DeadLetterRecord, recordOf } from "../messaging/DeadLetter.ts"
import * as RetryHeaders from "../messaging/RetryHeaders.ts"
import { isCanonical } from "../messaging/Timestamp.ts"
import { Broker, type BrokerError, type Delivery } from "../services/Broker.ts"
import { DeadLetterStore } from "./DeadLetterStore.ts"

/**
 * Work on the messages of a dead-letter queue themselves, and not on their records. Each message in turn is taken from the
 * queue without being consumed, and what is not removed goes back to its place at the end, also after a crash. Meanwhile
 * others do not see what was looked at, and a quorum queue counts it as a delivery.
 */
const walked = {
  queue_name: Schema.String,
  /** Messages that were looked at: all that were ready when it began, unless it is truncated. */
  messages: Schema.Int,
  /** Of those, how many no worker of this library has dead-lettered: they are left as they are. */
  foreign: Schema.Int,
  /** More were ready than one walk looks at (100,000, or five minutes' work): those at the end of the queue. */
  truncated: Schema.Boolean
}

export const Indexed = Schema.Struct({
  ...walked,
  /** Had no record, and have one now. */
  indexed: Schema.Int,
  /** Had one before. */
  known: Schema.Int
})
export type Indexed = typeof Indexed.Type

export const Removed = Schema.Struct({
  ...walked,
  /** Were replayed, and are gone from the queue. */
  removed: Schema.Int,
  /** Wait to be replayed, or have no record: they stay. */
  kept: Schema.Int
})
export type Removed = typeof Removed.Type

/** `busy`: another walk is under way in this process. */
export class LettersNotWalked extends Schema.TaggedError<LettersNotWalked>()("LettersNotWalked", {
  reason: Schema.Literals(["no_queue", "unavailable", "busy"]),
  message: Schema.String
}) {}

/** As many as the index has room for by default. */
const mostMessages = 100_000
const withinMs = 300_000

/** One walk is under way at a time. */
export const make = Effect.map(Semaphore.make(1), (turn) => {
  /** `visit` answers whether the message leaves the queue. */
  const walk = <E, R>(
    queue: string,
    aliases: ContractAliasConfig,
    visit: (letter: DeadLetterRecord) => Effect.Effect<boolean, E, R>
  ) =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const found = yield* Effect.mapError(broker.inspect(queue), unreadable(queue))
      if (Option.isNone(found)) return yield* failure("no_queue", `There is no queue ${queue}.`)
      const ready = found.value.messages
      const endsAt = (yield* Clock.currentTimeMillis) + withinMs
      const channel = yield* Effect.mapError(broker.channel({ prefetch: 1 }), unreadable(queue))
      const take = Effect.mapError(channel.get(queue), unreadable(queue))
      let [messages, foreign] = [0, 0]
      while (messages < Math.min(ready, mostMessages) && (yield* Clock.currentTimeMillis) < endsAt) {
        const next = yield* take
        if (Option.isNone(next)) return { queue_name: queue, messages, foreign, truncated: false }
        messages++
        const letter = letterOf(queue, next.value, aliases)
        if (letter === undefined) foreign++
        else if (yield* visit(letter)) next.value.settle("ack")
      }
      return { queue_name: queue, messages, foreign, truncated: messages < ready }
    }).pipe(
      Effect.scoped,
      turn.withPermitsIfAvailable(1),
      Effect.flatMap(
        Option.match({
          onNone: () => failure("busy", "Another dead-letter queue is being read: try again when that is done."),
          onSome: Effect.succeed
        })
      )
    )

  return {
    /** Gives a record to each message of the queue that has none, as after a loss of Redis. Twice is once. */
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

    /** Takes those out of the queue whose records say that they were replayed. Records stay. */
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

const failure = (reason: LettersNotWalked["reason"], message: string) => new LettersNotWalked({ reason, message })

const unreadable =
  (queue: string) =>
  ({ message }: BrokerError) =>
    failure("unavailable", `The queue ${queue} cannot be read now: ${message}`)

/** The record that the worker made, or would have made, of its dead letter: its headers hold all but what was thrown. */
const letterOf = (
  queue: string,
  { content, properties }: Delivery,
  aliases: ContractAliasConfig
): DeadLetterRecord | undefined => {
  const { headers = {} } = properties
  const at = headers[RetryHeaders.deadLetteredAt]
  const reason = headers[RetryHeaders.failureReason]
  const sourceQueue = headers[RetryHeaders.sourceQueue]
  const exceptionType = headers[RetryHeaders.exceptionType]
  if (typeof at !== "string" || !isCanonical(at) || typeof reason !== "string" || typeof sourceQueue !== "string") {
    return undefined
  }
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
