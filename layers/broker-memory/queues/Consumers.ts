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
 * Selects consumers of a queue in round-robin order. A consumer that has reached its prefetch is parked. It takes part
 * again when it settles a delivery.
 */
export class Consumers {
  readonly #singleActive: boolean
  readonly #parksWhenFilled: boolean
  readonly #all: Array<Consumer> = []
  #rotation: Array<Consumer> = []
  readonly #parked = new Set<Consumer>()
  #active: Consumer | undefined

  /** Quorum queues (`parksWhenFilled`) park a consumer at its prefetch. Classic queues park it at its next turn. */
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
    // Quorum queues continue with the oldest consumer, classic queues with the consumer of the highest priority.
    if (this.#active === consumer) this.#active = this.#parksWhenFilled ? this.#all[0] : this.#highest(this.#all)
    return true
  }

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
