import type { Field } from "../../../src/services/Broker.ts"
import type { Entry } from "./ReadyMessages.ts"

export interface Consumer {
  /** A higher one is served first. */
  readonly priority: number
  readonly prefetch: number
  readonly streamOffset: Field | undefined
  /** How many deliveries it has not settled. */
  unsettled: number
  readonly deliver: (entry: Entry) => void
  /** The queue is gone. */
  readonly cancelled: () => void
}

export const hasRoom = (consumer: Consumer): boolean => consumer.unsettled < consumer.prefetch

/** Those who take turns. Who is passed over for lack of room queues up again, as the last, when it has room. */
export class Consumers {
  readonly #singleActive: boolean
  readonly #parksAtOnce: boolean
  /** In order of arrival. */
  readonly #all: Array<Consumer> = []
  #turns: Array<Consumer> = []
  readonly #parked = new Set<Consumer>()
  #active: Consumer | undefined

  /** `parksAtOnce`: a quorum queue sees that a consumer is full when it fills it, a classic one when it next looks. */
  constructor(options: { readonly singleActive: boolean; readonly parksAtOnce: boolean }) {
    this.#singleActive = options.singleActive
    this.#parksAtOnce = options.parksAtOnce
  }

  get size(): number {
    return this.#all.length
  }

  get all(): ReadonlyArray<Consumer> {
    return this.#all
  }

  add(consumer: Consumer): void {
    this.#all.push(consumer)
    this.#turns.push(consumer)
    this.#active ??= consumer
  }

  /** Says whether it was there. */
  remove(consumer: Consumer): boolean {
    const index = this.#all.indexOf(consumer)
    if (index === -1) return false
    this.#all.splice(index, 1)
    this.#turns = this.#turns.filter((other) => other !== consumer)
    this.#parked.delete(consumer)
    // Priorities decide who follows on a classic queue only.
    if (this.#active === consumer) this.#active = this.#parksAtOnce ? this.#all[0] : this.#highest(this.#all)
    return true
  }

  /** Whose turn it is; it has had its turn then. */
  next(): Consumer | undefined {
    if (this.#singleActive) return this.#active !== undefined && hasRoom(this.#active) ? this.#active : undefined
    for (;;) {
      const consumer = this.#highest(this.#turns)
      if (consumer === undefined) return undefined
      this.#turns.splice(this.#turns.indexOf(consumer), 1)
      if (hasRoom(consumer)) {
        if (this.#parksAtOnce && consumer.unsettled + 1 === consumer.prefetch) this.#parked.add(consumer)
        else this.#turns.push(consumer)
        return consumer
      }
      this.#parked.add(consumer)
    }
  }

  settled(consumer: Consumer): void {
    consumer.unsettled--
    if (this.#parked.delete(consumer)) this.#turns.push(consumer)
  }

  #highest(consumers: ReadonlyArray<Consumer>): Consumer | undefined {
    return consumers.reduce<Consumer | undefined>(
      (best, consumer) => (best === undefined || consumer.priority > best.priority ? consumer : best),
      undefined
    )
  }
}
