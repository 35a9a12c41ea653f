import { Effect, Option } from "effect"
import { Broker, type BrokerError } from "../../services/Broker.ts"
import { DeadLetterStore, type IndexedQueue } from "./DeadLetterStore.ts"

interface QueueComparison extends IndexedQueue {
  /** `null` if the broker did not respond. */
  readonly exists: boolean | null
  /** The number of ready messages. `null` if the queue does not exist or the broker did not respond. */
  readonly message_count: number | null
  readonly verdict: "agrees" | "not_indexed" | "taken_out" | "no_queue" | "no_answer"
  readonly explanation: string
}

const inspectConcurrency = 16

export const isBrokerUnavailable = ({ reason }: BrokerError): boolean =>
  reason === "unreachable" || reason === "lost" || reason === "timeout" || reason === "closed"

const nothingIndexed = {
  indexed_count: 0,
  open_count: 0,
  unknown_count: 0,
  replayed_count: 0,
  replaced_count: 0,
  archived_count: 0,
  last_indexed_at: null
}

export const indexed = Effect.gen(function* () {
  const store = yield* DeadLetterStore
  return yield* compareAll(yield* store.queues)
}).pipe(Effect.withSpan("DeadLetterQueues.indexed"))

/** Returns the indexed queues and those in `names`. Leaves out a queue that has no records and does not exist. */
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

/** If the broker is unavailable, the first failure ends all inspections. Otherwise each would wait for its timeout. */
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

const compare = (queue: IndexedQueue, messages: number | null | undefined): QueueComparison =>
  messages === undefined
    ? {
        ...queue,
        exists: null,
        message_count: null,
        verdict: "no_answer",
        explanation: "The broker did not respond, so only the counts of the index are known. Try again in a moment."
      }
    : { ...queue, exists: messages !== null, message_count: messages, ...verdictOf(queue, messages) }

/** Compares the number of messages with the number of records. A replayed record may still have its message. */
const verdictOf = (
  { archived_count, indexed_count, open_count, replaced_count, replayed_count }: IndexedQueue,
  messages: number | null
): Pick<QueueComparison, "verdict" | "explanation"> => {
  if (messages === null) {
    return {
      verdict: "no_queue",
      explanation: `The broker has no such queue. The ${indexed_count} records can still be replayed, because each record contains its message.`
    }
  }
  if (messages > indexed_count + archived_count) {
    return {
      verdict: "not_indexed",
      explanation: `The queue has ${messages - indexed_count} more messages than the index has records. Either the index deleted their records, or a worker without an index dead-lettered the messages. POST /dlq/queues/index adds the missing records.`
    }
  }
  if (messages < indexed_count - replayed_count - replaced_count) {
    return {
      verdict: "taken_out",
      explanation: `The queue has ${indexed_count - messages} fewer messages than the index has records. The messages were consumed or purged, or a consumer has not acknowledged them yet. ${open_count} records were not replayed. They can still be replayed, because each record contains its message.`
    }
  }
  return {
    verdict: "agrees",
    explanation: `${messages === indexed_count ? "The queue has as many messages as records." : "Each record that was not replayed has its message in the queue."} ${open_count} records were not replayed. A replay leaves the dead letter in the queue. POST /dlq/queues/remove-replayed removes the messages of replayed records.`
  }
}
