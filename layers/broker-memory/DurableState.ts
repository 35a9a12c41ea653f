import type { Binding, Exchange, Queue } from "../../src/services/Broker.ts"
import { bindingId } from "./Exchanges.ts"
import type { Change, HeldDeadLetter, StoredEntry, StoredOffset } from "./queues/Changes.ts"

export interface DurableQueue {
  readonly declared: Queue
  /** By position. A consumer may have returned a message to an earlier place, so the order is that of the arrivals. */
  readonly entries: Map<number, StoredEntry>
  readonly held: Map<number, HeldDeadLetter>
  /** The contents of a stream. */
  offsets: Array<StoredOffset>
}

/** The changes of one atomic step of the broker, which a crash loses as a whole or not at all. */
export type Step = ReadonlyArray<Change>

/** The checksum of a record shows that this program wrote it, so its kind is enough. */
export const isStep = (value: unknown): value is Step => Array.isArray(value) && value.every(Array.isArray)

/** The content of a journal, as the sum of its changes. The messages are those of the live queues, and not copies. */
export class DurableState {
  readonly exchanges = new Map<string, Exchange>()
  readonly queues = new Map<string, DurableQueue>()
  readonly bindings = new Map<string, Binding>()

  readonly apply = (step: Step): void => {
    for (const change of step) this.#apply(change)
  }

  #apply(change: Change): void {
    switch (change[0]) {
      case "exchange":
        this.exchanges.set(change[1].name, change[1])
        return
      case "exchange-deleted":
        this.exchanges.delete(change[1])
        this.#unbind(({ exchange }) => exchange === change[1])
        return
      case "queue":
        this.queues.set(change[1].name, { declared: change[1], entries: new Map(), held: new Map(), offsets: [] })
        return
      case "queue-deleted":
        this.queues.delete(change[1])
        this.#unbind(({ queue }) => queue === change[1])
        return
      case "bound":
        this.bindings.set(`${change[1].exchange}\n${bindingId(change[1])}`, change[1])
        return
      default: {
        const queue = this.queues.get(change[1])
        if (queue !== undefined) applyTo(queue, change)
      }
    }
  }

  /** Copies the state at once, as steps that build it. */
  capture(): ReadonlyArray<Step> {
    const topology: Step = [
      ...Array.from(this.exchanges.values(), (exchange) => ["exchange", exchange] as const),
      ...Array.from(this.queues.values(), ({ declared }) => ["queue", declared] as const),
      ...Array.from(this.bindings.values(), (binding) => ["bound", binding] as const)
    ]
    const messages = Array.from(this.queues).flatMap(
      ([name, { entries, held, offsets }]): ReadonlyArray<Change> => [
        ...Array.from(entries.values(), (entry) => ["added", name, entry] as const),
        ...Array.from(held.values(), (deadLetter) => ["held", name, deadLetter] as const),
        ...offsets.map((stored) => ["appended", name, stored] as const)
      ]
    )
    return [topology, ...messages.map((change) => [change])]
  }

  #unbind(matches: (binding: Binding) => boolean): void {
    for (const [id, binding] of this.bindings) if (matches(binding)) this.bindings.delete(id)
  }
}

type QueueChange = Exclude<
  Change,
  readonly ["exchange" | "exchange-deleted" | "queue" | "queue-deleted" | "bound", unknown]
>

const applyTo = (queue: DurableQueue, change: QueueChange): void => {
  const { entries } = queue
  switch (change[0]) {
    case "added":
      entries.set(change[2].position, change[2])
      return
    case "delivered":
      update(entries, change[2], { isDelivered: true })
      return
    case "returned":
      update(entries, change[2], { isDelivered: false, returnCount: change[3] })
      return
    case "removed":
      entries.delete(change[2])
      return
    case "appended":
      queue.offsets.push(change[2])
      return
    case "trimmed":
      queue.offsets = queue.offsets.filter(({ offset }) => offset >= change[2])
      return
    case "held":
      queue.held.set(change[2].id, change[2])
      return
    case "forwarded":
      queue.held.delete(change[2])
  }
}

const update = (entries: Map<number, StoredEntry>, position: number, changed: Partial<StoredEntry>): void => {
  const entry = entries.get(position)
  if (entry !== undefined) entries.set(position, { ...entry, ...changed })
}
