import { type LiveQueue, type QueueHost, textArgument } from "./LiveQueue.ts"
import { type Message, memorySize } from "./Message.ts"
import { kindOf } from "./QueueArguments.ts"
import type { Timers } from "./Timers.ts"

/** Milliseconds; RabbitMQ's `dead_letter_worker_publisher_confirm_timeout`. */
const retryAfterMs = 180_000

/** Offers a message to its target queues. Returns whether all of them have it. */
type Forward = () => boolean

interface PendingDeadLetter {
  readonly forward: Forward
  readonly bytes: number
}

/**
 * True when dead letters stay in the queue until their targets have them. RabbitMQ ignores the strategy unless all
 * three conditions hold.
 */
const isAtLeastOnce = ({ declared }: LiveQueue): boolean =>
  kindOf(declared) === "quorum" &&
  textArgument(declared, "x-dead-letter-strategy") === "at-least-once" &&
  textArgument(declared, "x-overflow") === "reject-publish"

/**
 * Dead letters of at-least-once queues that their targets have not taken: no target exists, or one is full. They belong
 * to the queue in which they died, and no count includes them.
 */
export class PendingDeadLetters {
  readonly #host: Pick<QueueHost, "now" | "holds">
  readonly #timers: Timers
  readonly #atomically: (change: () => void) => void
  readonly #pending = new Map<LiveQueue, ReadonlyArray<PendingDeadLetter>>()

  constructor(host: Pick<QueueHost, "now" | "holds">, timers: Timers, atomically: (change: () => void) => void) {
    this.#host = host
    this.#timers = timers
    this.#atomically = atomically
  }

  /** Forwards the message, and retries until that succeeds. */
  forward(message: Message, queue: LiveQueue, forward: Forward): void {
    if (forward() || !isAtLeastOnce(queue)) return
    const bytes = memorySize(message)
    this.#host.holds(bytes)
    const pending = this.#pending.get(queue) ?? []
    this.#pending.set(queue, [...pending, { forward, bytes }])
    if (pending.length === 0) this.#scheduleRetry(queue)
  }

  forget(queue: LiveQueue): void {
    for (const { bytes } of this.#pending.get(queue) ?? []) this.#host.holds(-bytes)
    this.#pending.delete(queue)
  }

  #scheduleRetry(queue: LiveQueue): void {
    // A new timer owner, because the queue's own timer has other uses.
    this.#timers.set({}, this.#host.now() + retryAfterMs, () => this.#atomically(() => this.#retry(queue)))
  }

  #retry(queue: LiveQueue): void {
    const remaining = (this.#pending.get(queue) ?? []).filter(({ bytes, forward }) => {
      const isForwarded = forward()
      if (isForwarded) this.#host.holds(-bytes)
      return !isForwarded
    })
    if (remaining.length === 0) {
      this.#pending.delete(queue)
      return
    }
    this.#pending.set(queue, remaining)
    this.#scheduleRetry(queue)
  }
}
