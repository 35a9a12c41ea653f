import { type Host, type LiveQueue, textOf } from "./Host.ts"
import { type Message, weight } from "./Message.ts"
import { kindOf } from "./QueueArguments.ts"
import type { Timers } from "./Timers.ts"

/** Milliseconds until RabbitMQ tries again; its `dead_letter_worker_publisher_confirm_timeout`. */
const againAfter = 180_000

/** Offers a message to the queues that it is for; answers whether it is where it belongs. */
type Forward = () => boolean

interface Held {
  readonly forward: Forward
  readonly bytes: number
}

/** Whether what dies in it leaves when another queue has it. RabbitMQ takes the strategy alone, and does not follow it. */
const isAtLeastOnce = ({ declared }: LiveQueue): boolean =>
  kindOf(declared) === "quorum" &&
  textOf(declared, "x-dead-letter-strategy") === "at-least-once" &&
  textOf(declared, "x-overflow") === "reject-publish"

/**
 * What died in queues that dead-letter at least once, and that no queue has taken: there is none for it, or it is full.
 * It belongs to the queue in which it died, and is counted nowhere.
 */
export class HeldBack {
  readonly #host: Pick<Host, "now" | "holds">
  readonly #timers: Timers
  readonly #step: (change: () => void) => void
  readonly #held = new Map<LiveQueue, ReadonlyArray<Held>>()

  constructor(host: Pick<Host, "now" | "holds">, timers: Timers, step: (change: () => void) => void) {
    this.#host = host
    this.#timers = timers
    this.#step = step
  }

  /** Forwards; and where that fails, does it again until it does not. */
  forward(message: Message, queue: LiveQueue, forward: Forward): void {
    if (forward() || !isAtLeastOnce(queue)) return
    const bytes = weight(message)
    this.#host.holds(bytes)
    const held = this.#held.get(queue) ?? []
    this.#held.set(queue, [...held, { forward, bytes }])
    if (held.length === 0) this.#tryLater(queue)
  }

  forget(queue: LiveQueue): void {
    for (const { bytes } of this.#held.get(queue) ?? []) this.#host.holds(-bytes)
    this.#held.delete(queue)
  }

  #tryLater(queue: LiveQueue): void {
    // an owner of its own: the queue has its alarm for other things
    this.#timers.set({}, this.#host.now() + againAfter, () => this.#step(() => this.#tryAgain(queue)))
  }

  #tryAgain(queue: LiveQueue): void {
    const left = (this.#held.get(queue) ?? []).filter(({ bytes, forward }) => {
      const isThere = forward()
      if (isThere) this.#host.holds(-bytes)
      return !isThere
    })
    if (left.length === 0) {
      this.#held.delete(queue)
      return
    }
    this.#held.set(queue, left)
    this.#tryLater(queue)
  }
}
