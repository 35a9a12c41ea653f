import * as FairShare from "../../services/FairShare.ts"

export interface QueuedLookUp {
  readonly address: string
  readonly deadline: number
}

/** A bounded queue. Each client address may use only its fair share of the capacity. */
export class LookUpQueue<A extends QueuedLookUp> {
  readonly #capacity: number
  readonly #queue: Array<A> = []
  readonly #countByAddress = new Map<string, number>()

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  hasRoomFor(address: string): boolean {
    const count = this.#countByAddress.get(address) ?? 0
    const share = FairShare.allowance(this.#capacity, this.#queue.length - count)
    return this.#queue.length < this.#capacity && count < share
  }

  add(lookUp: A): void {
    const { address } = lookUp
    this.#queue.push(lookUp)
    this.#countByAddress.set(address, (this.#countByAddress.get(address) ?? 0) + 1)
  }

  takeExpired(now: number): ReadonlyArray<A> {
    const first = this.#queue.findIndex(({ deadline }) => deadline > now)
    return this.take(first === -1 ? this.#queue.length : first)
  }

  take(count: number): ReadonlyArray<A> {
    const taken = this.#queue.splice(0, count)
    for (const { address } of taken) this.#release(address)
    return taken
  }

  #release(address: string): void {
    const left = (this.#countByAddress.get(address) ?? 0) - 1
    if (left <= 0) this.#countByAddress.delete(address)
    else this.#countByAddress.set(address, left)
  }
}
