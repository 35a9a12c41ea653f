import { Effect, Option } from "effect"
import { Broker, type BrokerError } from "../../services/Broker.ts"
import { DeadLetterStore, type IndexedQueue } from "./DeadLetterStore.ts"

/** The index and the broker, of one dead-letter queue. */
export interface QueueComparison extends IndexedQueue {
  /** `null`: the broker did not answer. */
  readonly exists: boolean | null
  /** That are ready; `null` where there is no such queue, or no answer. */
  readonly message_count: number | null
  readonly verdict: "agrees" | "not_indexed" | "taken_out" | "no_queue" | "no_answer"
  readonly explanation: string
}

const inspectConcurrency = 16

/** No question to any queue would be answered now. */
export const isBrokerUnavailable = ({ reason }: BrokerError): boolean =>
  reason === "unreachable" || reason === "lost" || reason === "timeout" || reason === "closed"

const nothingIndexed = {
  indexed_count: 0,
  open_count: 0,
  unknown_count: 0,
  replayed_count: 0,
  last_indexed_at: null
}

/** The queues that are indexed, each by one question to the broker. */
export const indexed = Effect.gen(function* () {
  const store = yield* DeadLetterStore
  return yield* compareAll(yield* store.queues)
}).pipe(Effect.withSpan("DeadLetterQueues.indexed"))

/** With those that are named. What is neither indexed nor there is left out. */
export const withNamed = Effect.fn("DeadLetterQueues.withNamed")(function* (names: ReadonlyArray<string>) {
  const store = yield* DeadLetterStore
  const known = yield* store.queues
  const missing = [...new Set(names)].filter((name) => !known.some(({ queue_name }) => queue_name === name))
  const all = [...known, ...missing.map((queue_name) => ({ queue_name, ...nothingIndexed }))]
  const queues = yield* compareAll(all)
  return queues
    .filter(({ exists, indexed_count }) => exists !== false || indexed_count > 0)
    .toSorted((one, other) => (one.queue_name < other.queue_name ? -1 : 1))
})

/**
 * Asks the broker about each queue. The first question that finds no broker ends all of them: each would wait for as long,
 * and learn no more.
 */
const compareAll = Effect.fnUntraced(function* (queues: ReadonlyArray<IndexedQueue>) {
  const broker = yield* Broker
  const messageCounts = new Map<string, number | null>()
  const inspectQueue = Effect.fnUntraced(function* ({ queue_name }: IndexedQueue) {
    const inspected = yield* Effect.catch(broker.inspect(queue_name), (error) =>
      isBrokerUnavailable(error) ? Effect.fail(error) : Effect.undefined
    )
    if (inspected === undefined) return
    messageCounts.set(queue_name, Option.match(inspected, { onNone: () => null, onSome: ({ messages }) => messages }))
  })
  yield* Effect.ignore(Effect.forEach(queues, inspectQueue, { concurrency: inspectConcurrency, discard: true }))
  return queues.map((queue) => compare(queue, messageCounts.get(queue.queue_name)))
})

/** `messages`: `null` where the broker has no such queue, `undefined` where it did not answer. */
const compare = (queue: IndexedQueue, messages: number | null | undefined): QueueComparison =>
  messages === undefined
    ? {
        ...queue,
        exists: null,
        message_count: null,
        verdict: "no_answer",
        explanation: "The broker did not answer: only the index is known."
      }
    : { ...queue, exists: messages !== null, message_count: messages, ...verdictOf(queue, messages) }

/**
 * A replay leaves the message in its queue until the replayed ones are removed: there are as many messages as records, or
 * fewer by those that were replayed.
 */
export const verdictOf = (
  { indexed_count, open_count, replayed_count }: Pick<IndexedQueue, "indexed_count" | "open_count" | "replayed_count">,
  messages: number | null
): Pick<QueueComparison, "verdict" | "explanation"> => {
  if (messages === null) {
    return {
      verdict: "no_queue",
      explanation: `The broker has no such queue. What the ${indexed_count} records hold can be replayed nonetheless.`
    }
  }
  if (messages > indexed_count) {
    return {
      verdict: "not_indexed",
      explanation: `${messages - indexed_count} more messages than records: their records have left the index or were never written, or a worker without an index put them there. POST /dlq/queues/index indexes them again.`
    }
  }
  if (messages < indexed_count - replayed_count) {
    return {
      verdict: "taken_out",
      explanation: `${indexed_count - messages} fewer messages than records: somebody consumed or purged them, or a consumer holds them. ${open_count} records wait to be replayed, which needs no message in the queue.`
    }
  }
  return {
    verdict: "agrees",
    explanation: `${messages === indexed_count ? "As many messages as records." : "Each record that was not replayed has its message."} ${open_count} wait to be replayed; a replay leaves its message in the queue, until POST /dlq/queues/remove-replayed takes it out.`
  }
}
