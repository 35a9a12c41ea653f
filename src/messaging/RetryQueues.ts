import { Result } from "effect"
import type { Declarations, Queue } from "../services/Broker.ts"
import { isShort, maxShortBytes } from "./Envelope.ts"
import { SettingsError } from "./Errors.ts"
import type { RetryPolicy } from "./RetryPolicy.ts"

/**
 * The queues in which failed messages of one worker queue wait, and the one in which they end. All are durable, reached
 * through the default exchange and bound to nothing.
 *
 * A retry queue carries its delay in its name: a queue cannot be declared again with other arguments, so another delay
 * is another queue. Queues of former delays delete themselves: the broker drops a queue that nobody declared for
 * `x-expires`, **with the messages in it**, as publishing and waiting are no use in its eyes. Hence the expiry is the
 * delay and `spareMs` on top, and whoever publishes retries declares the queues again every `redeclareEveryMs`: a
 * message then has always left its queue before the queue can go. Changing these two changes arguments of queues that
 * are there; change the name with them.
 */
export interface RetryQueues {
  readonly sourceQueue: string
  readonly deadLetterQueue: string
  readonly retryQueueOf: (delayMs: number) => string
  readonly declarations: Declarations
}

/** A day: a worker would have to be stopped, but connected, for 23 hours between a declaration and a publish. */
export const spareMs = 86_400_000

/** An hour. */
export const redeclareEveryMs = 3_600_000

export const of = (sourceQueue: string, policy: RetryPolicy): Result.Result<RetryQueues, SettingsError> => {
  const retryQueueOf = (delayMs: number) => `${sourceQueue}${policy.retryQueueSuffix}.${delayMs}ms`
  const deadLetterQueue = `${sourceQueue}${policy.deadLetterQueueSuffix}`
  const queues: ReadonlyArray<Queue> = [
    ...policy.delays.map((delayMs) => ({
      name: retryQueueOf(delayMs),
      arguments: {
        // the type is named, as a virtual host may have another default
        "x-queue-type": "classic",
        "x-message-ttl": delayMs,
        "x-expires": delayMs + spareMs,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": sourceQueue
      }
    })),
    { name: deadLetterQueue }
  ]
  const tooLong = queues.find(({ name }) => !isShort(name))
  if (sourceQueue.trim() === "" || tooLong !== undefined) {
    const problem = tooLong
      ? `leads to ${tooLong.name}, which has more than ${maxShortBytes} bytes: give the queue a shorter name`
      : "must not be blank"
    return Result.fail(SettingsError.of("RetryQueues", [{ field: "source_queue", problem }]))
  }
  return Result.succeed({
    sourceQueue,
    deadLetterQueue,
    retryQueueOf,
    declarations: { exchanges: [], queues, bindings: [] }
  })
}
