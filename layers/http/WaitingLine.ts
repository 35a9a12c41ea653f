import * as Share from "../../src/services/Share.ts"

export interface Waiting {
  /** For whom; `undefined` is this program itself. */
  readonly caller: string | undefined
}

/** Those who wait for a connection to one origin. Callers take turns, so that nobody waits for a caller's whole queue. */
export class WaitingLine<A extends Waiting> {
  readonly #most: number
  /** By caller, in the order in which they have their turns; `undefined` is this program itself. */
  readonly #queues = new Map<string | undefined, Set<A>>()
  #size = 0

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#size
  }

  /** Callers each have a share of the places. */
  join(taker: A): "waiting" | "full" {
    const { caller } = taker
    const queue = this.#queues.get(caller) ?? new Set()
    const most = caller === undefined ? this.#most : Share.beside(this.#most, this.#size - queue.size)
    if (this.#size >= this.#most || queue.size >= most) return "full"
    queue.add(taker)
    this.#queues.set(caller, queue)
    this.#size++
    return "waiting"
  }

  leave(taker: A): void {
    const queue = this.#queues.get(taker.caller)
    if (queue?.delete(taker) !== true) return
    this.#size--
    if (queue.size === 0) this.#queues.delete(taker.caller)
  }

  /** Takes the next out of the line whose caller `mayHold` another connection. */
  next(mayHold: (caller: string | undefined) => boolean): A | undefined {
    for (const [caller, queue] of this.#queues) {
      if (!mayHold(caller)) continue
      for (const taker of queue) {
        this.leave(taker)
        if (queue.size > 0) {
          // behind the others
          this.#queues.delete(caller)
          this.#queues.set(caller, queue)
        }
        return taker
      }
    }
    return undefined
  }
}
