import { type LiveQueue, type QueueHost, textArgument } from "./LiveQueue.ts"
import { type Message, memorySize } from "./Message.ts"
import { kindOf } from "./QueueArguments.ts"
import type { Timers } from "./Timers.ts"

/** Milliseconds until RabbitMQ tries again; its `dead_letter_worker_publisher_confirm_timeout`. */
const retryAfterMs = 180_000

/** Offers a message to the queues that it is for; answers whether it is where it belongs. */
type Forward = () => boolean

interface PendingDeadLetter {
  readonly forward: Forward
  readonly bytes: number
}

/** Whether what dies in it leaves when another queue has it. RabbitMQ takes the strategy alone, and does not follow it. */
const isAtLeastOnce = ({ declared }: LiveQueue): boolean =>
  kindOf(declared) === "quorum" &&
  textArgument(declared, "x-dead-letter-strategy") === "at-least-once" &&
  textArgument(declared, "x-overflow") === "reject-publish"

/**
 * What died in queues that dead-letter at least once, and that no queue has taken: there is none for it, or it is full.
 * It belongs to the queue in which it died, and is counted nowhere.
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

  /** Forwards; and where that fails, does it again until it does not. */
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
    // an owner of its own: the queue has its alarm for other things
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
