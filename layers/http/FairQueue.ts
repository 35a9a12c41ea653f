import * as FairShare from "../../src/services/FairShare.ts"

export interface Waiter {
  readonly caller: string | undefined
}

/**
 * A queue in which callers take turns. A caller with many waiters delays every other caller by only one waiter. If the
 * capacity is finite, each caller has a share of it.
 */
export class FairQueue<A extends Waiter> {
  readonly #capacity: number
  /** The waiters of each caller. The first caller has the next turn. `undefined` is this program itself. */
  readonly #queues = new Map<string | undefined, Set<A>>()
  #size = 0

  constructor(capacity: number = Number.POSITIVE_INFINITY) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#size
  }

  add(waiter: A): "waiting" | "full" {
    const { caller } = waiter
    const queue = this.#queues.get(caller) ?? new Set()
    const callerCapacity =
      caller === undefined || this.#capacity === Number.POSITIVE_INFINITY
        ? this.#capacity
        : FairShare.allowance(this.#capacity, this.#size - queue.size)
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

  next(mayTakeAnother: (caller: string | undefined) => boolean = always): A | undefined {
    for (const [caller, queue] of this.#queues) {
      if (!mayTakeAnother(caller)) continue
      for (const waiter of queue) {
        this.remove(waiter)
        if (queue.size > 0) {
          this.#queues.delete(caller)
          this.#queues.set(caller, queue)
        }
        return waiter
      }
    }
    return undefined
  }
}

const always = () => true
