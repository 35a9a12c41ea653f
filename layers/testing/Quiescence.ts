import { Duration, Effect, Option } from "effect"
import { TestClock } from "effect/testing"
import type { Broker, BrokerError, Queue } from "../../src/services/Broker.ts"
import { type History, maxOperations } from "./History.ts"
import { turns } from "./Turns.ts"
import type { Workers } from "./Workers.ts"

export interface Observed {
  readonly broker: Broker["Service"]
  readonly history: History
  readonly statusQueue: string
  readonly workers: Workers
  readonly deadline: Duration.Duration
}

const firstStepMs = 1_000
const longestStepMs = 60_000
/** Everything is settled if nothing happens for this long after the last message. */
const quietMs = 1_000

/**
 * Lets virtual time pass until the worker has nothing left to do. Returns what still waits at the deadline, or an empty
 * list.
 */
export const settle = Effect.fnUntraced(function* (
  observed: Observed
): Effect.fn.Return<ReadonlyArray<string>, BrokerError> {
  const { history } = observed
  const deadline = Duration.toMillis(observed.deadline)
  let passed = 0
  let step = firstStepMs
  let quietSince: number | undefined
  for (;;) {
    yield* turns(() => history.activity)
    if (observed.workers.failure() !== undefined) return []
    if (history.isExceeded) return [`the worker: it has performed ${maxOperations} operations and goes on`]
    const isLast = passed >= deadline
    const waiting = yield* whatWaits(observed, isLast)
    if (waiting.length === 0 && quietSince === history.activity) return []
    if (isLast) return waiting
    quietSince = waiting.length === 0 ? history.activity : undefined
    const next = Math.min(waiting.length === 0 ? quietMs : step, deadline - passed)
    step = Math.min(step * 2, longestStepMs)
    yield* TestClock.adjust(next)
    passed += next
  }
})

/** Looks into the queues only if it must, because that takes a round trip for each. */
const whatWaits = Effect.fnUntraced(function* (observed: Observed, isComplete: boolean) {
  const waiting: Array<string> = observed.workers
    .starting()
    .map(({ name }) => `${name}: its layer is still being built`)
  for (const worker of observed.workers.alive()) {
    for (const { label, number } of worker.inFlight) {
      waiting.push(`${label} (operation ${number}): ${worker.name} waits for its result`)
    }
    for (const { label, number } of worker.unsettled.values()) {
      waiting.push(`${label} (operation ${number}): ${worker.name} has not settled it`)
    }
  }
  if (waiting.length > 0 && !isComplete) return waiting
  for (const queue of observed.history.queues.values()) {
    if (!isInMotion(queue, observed)) continue
    const messages = Option.match(yield* observed.broker.inspect(queue.name), {
      onNone: () => 0,
      onSome: ({ messages }) => messages
    })
    if (messages > 0) waiting.push(`${messages} message${messages === 1 ? "" : "s"} in the queue ${queue.name}`)
  }
  return waiting
})

/** A queue that the worker consumes, or from which messages move on when their time to live ends. */
const isInMotion = ({ name, arguments: fields = {} }: Queue, { history, statusQueue }: Observed): boolean => {
  if (name === statusQueue || fields["x-queue-type"] === "stream") return false
  return history.consumedQueues.has(name) || ("x-message-ttl" in fields && "x-dead-letter-exchange" in fields)
}
