import type { Field } from "../../../src/services/Broker.ts"
import type { Entry } from "./ReadyMessages.ts"

export interface Consumer {
  readonly priority: number
  readonly prefetch: number
  readonly streamOffset: Field | undefined
  unsettled: number
  readonly deliver: (entry: Entry) => void
  readonly onCancelled: () => void
}

export const hasCapacity = (consumer: Consumer): boolean => consumer.unsettled < consumer.prefetch

/**
 * The consumers of a queue, in round-robin order. A consumer without capacity is parked, and returns to the end of the
 * rotation when it has capacity again.
 */
export class Consumers {
  readonly #singleActive: boolean
  readonly #parksWhenFilled: boolean
  readonly #all: Array<Consumer> = []
  #rotation: Array<Consumer> = []
  readonly #parked = new Set<Consumer>()
  #active: Consumer | undefined

  /** Quorum queues park a consumer when a delivery fills it; classic queues when they next consider it. */
  constructor(options: { readonly singleActive: boolean; readonly parksWhenFilled: boolean }) {
    this.#singleActive = options.singleActive
    this.#parksWhenFilled = options.parksWhenFilled
  }

  get size(): number {
    return this.#all.length
  }

  get all(): ReadonlyArray<Consumer> {
    return this.#all
  }

  add(consumer: Consumer): void {
    this.#all.push(consumer)
    this.#rotation.push(consumer)
    this.#active ??= consumer
  }

  remove(consumer: Consumer): boolean {
    const index = this.#all.indexOf(consumer)
    if (index === -1) return false
    this.#all.splice(index, 1)
    this.#rotation = this.#rotation.filter((other) => other !== consumer)
    this.#parked.delete(consumer)
    // Only on classic queues does priority decide the next active consumer.
    if (this.#active === consumer) this.#active = this.#parksWhenFilled ? this.#all[0] : this.#highest(this.#all)
    return true
  }

  /** Returns the next consumer and moves it to the end of the rotation. */
  next(): Consumer | undefined {
    if (this.#singleActive) return this.#active !== undefined && hasCapacity(this.#active) ? this.#active : undefined
    for (;;) {
      const consumer = this.#highest(this.#rotation)
      if (consumer === undefined) return undefined
      this.#rotation.splice(this.#rotation.indexOf(consumer), 1)
      if (hasCapacity(consumer)) {
        if (this.#parksWhenFilled && consumer.unsettled + 1 === consumer.prefetch) this.#parked.add(consumer)
        else this.#rotation.push(consumer)
        return consumer
      }
      this.#parked.add(consumer)
    }
  }

  onSettled(consumer: Consumer): void {
    consumer.unsettled--
    if (this.#parked.delete(consumer)) this.#rotation.push(consumer)
  }

  #highest(consumers: ReadonlyArray<Consumer>): Consumer | undefined {
    return consumers.reduce<Consumer | undefined>(
      (best, consumer) => (best === undefined || consumer.priority > best.priority ? consumer : best),
      undefined
    )
  }
}
