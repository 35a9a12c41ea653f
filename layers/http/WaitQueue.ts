import * as FairShare from "../../src/services/FairShare.ts"

export interface Waiter {
  /** For whom; `undefined` is this program itself. */
  readonly caller: string | undefined
}

/** Those who wait for a connection to one origin. Callers take turns, so that nobody waits for a caller's whole queue. */
export class WaitQueue<A extends Waiter> {
  readonly #capacity: number
  /** By caller, in the order in which they have their turns; `undefined` is this program itself. */
  readonly #queues = new Map<string | undefined, Set<A>>()
  #size = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#size
  }

  /** Callers each have a share of the places. */
  add(waiter: A): "waiting" | "full" {
    const { caller } = waiter
    const queue = this.#queues.get(caller) ?? new Set()
    const callerCapacity =
      caller === undefined ? this.#capacity : FairShare.allowance(this.#capacity, this.#size - queue.size)
    if (this.#size >= this.#capacity || queue.size >= callerCapacity) return "full"
    queue.add(waiter)
    this.#queues.set(caller, queue)
    this.#size++
    return "waiting"
  }

  remove(waiter: A): void {
    const queue = this.#queues.get(waiter.caller)
    if (queue?.delete(waiter) !== true) return
    this.#size--
    if (queue.size === 0) this.#queues.delete(waiter.caller)
  }

  /** Takes the next out of the line whose caller `mayHold` another connection. */
  next(mayTakeAnother: (caller: string | undefined) => boolean): A | undefined {
    for (const [caller, queue] of this.#queues) {
      if (!mayTakeAnother(caller)) continue
      for (const waiter of queue) {
        this.remove(waiter)
        if (queue.size > 0) {
          // behind the others
          this.#queues.delete(caller)
          this.#queues.set(caller, queue)
        }
        return waiter
      }
    }
    return undefined
  }
}
