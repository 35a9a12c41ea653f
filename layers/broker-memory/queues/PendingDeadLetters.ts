import type { HeldDeadLetter } from "./Changes.ts"
import type { DeathReason } from "./DeadLetters.ts"
import { type LiveQueue, type QueueHost, textArgument } from "./LiveQueue.ts"
import { type Message, memorySize } from "./Message.ts"
import { kindOf } from "./QueueArguments.ts"
import type { Timers } from "./Timers.ts"

/** The delay of a retry in milliseconds. RabbitMQ calls it `dead_letter_worker_publisher_confirm_timeout`. */
const retryAfterMs = 180_000

type Host = Pick<QueueHost, "now" | "addHeldBytes" | "record">

/** Publishes the dead letter. Returns whether all target queues have stored it. */
type Forward = () => boolean

interface PendingDeadLetter {
  readonly id: number
  readonly forward: Forward
  readonly bytes: number
}

/** RabbitMQ supports at-least-once dead-lettering only if all three conditions hold. */
const isAtLeastOnce = ({ declared }: LiveQueue): boolean =>
  kindOf(declared) === "quorum" &&
  textArgument(declared, "x-dead-letter-strategy") === "at-least-once" &&
  textArgument(declared, "x-overflow") === "reject-publish"

/** Retries dead letters if a target queue is missing or full. Message counts do not include them. */
export class PendingDeadLetters {
  readonly #host: Host
  readonly #timers: Timers
  readonly #atomically: (change: () => void) => void
  readonly #pending = new Map<LiveQueue, ReadonlyArray<PendingDeadLetter>>()
  #lastId = 0

  constructor(host: Host, timers: Timers, atomically: (change: () => void) => void) {
    this.#host = host
    this.#timers = timers
    this.#atomically = atomically
  }

  forward(message: Message, cause: DeathReason, queue: LiveQueue, forward: Forward): void {
    if (forward() || !isAtLeastOnce(queue)) return
    const id = this.#lastId + 1
    this.#host.record?.(["held", queue.declared.name, { id, cause, message }])
    this.restore({ id, message }, queue, forward)
  }

  /** Takes over a dead letter that an earlier process held. */
  restore({ id, message }: Pick<HeldDeadLetter, "id" | "message">, queue: LiveQueue, forward: Forward): void {
    this.#lastId = Math.max(this.#lastId, id)
    const bytes = memorySize(message)
    this.#host.addHeldBytes(bytes)
    const pending = this.#pending.get(queue) ?? []
    this.#pending.set(queue, [...pending, { id, forward, bytes }])
    if (pending.length === 0) this.#scheduleRetry(queue)
  }

  forget(queue: LiveQueue): void {
    for (const { bytes } of this.#pending.get(queue) ?? []) this.#host.addHeldBytes(-bytes)
    this.#pending.delete(queue)
  }

  #scheduleRetry(queue: LiveQueue): void {
    // Each owner has one timer. The queue already has another timer, so a new object is the owner.
    this.#timers.set({}, this.#host.now() + retryAfterMs, () => this.#atomically(() => this.#retry(queue)))
  }

  #retry(queue: LiveQueue): void {
    const remaining = (this.#pending.get(queue) ?? []).filter(({ bytes, forward, id }) => {
      const isForwarded = forward()
      if (isForwarded) {
        this.#host.addHeldBytes(-bytes)
        this.#host.record?.(["forwarded", queue.declared.name, id])
      }
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
