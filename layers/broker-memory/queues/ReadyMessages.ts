import type { Message } from "./Message.ts"

export interface Entry {
  readonly message: Message
  /** The number of the message in the queue. In a stream, this is its offset. */
  readonly position: number
  readonly priority: number
  /** The earliest time of expiry. A message expires only at the head of its queue. `undefined` means never. */
  readonly expiresAt: number | undefined
  returnCount: number
}

/** A first-in, first-out queue. `insert` puts a message back at its position. */
class EntryQueue {
  readonly #entries: Array<Entry> = []
  #head = 0

  get length(): number {
    return this.#entries.length - this.#head
  }

  get first(): Entry | undefined {
    return this.#entries[this.#head]
  }

  push(entry: Entry): void {
    this.#entries.push(entry)
  }

  shift(): Entry | undefined {
    const entry = this.#entries[this.#head]
    if (entry === undefined) return undefined
    this.#head++
    // Removed entries are freed in blocks, because removing a single entry would move all others.
    if (this.#head > 1_024 && this.#head * 2 > this.#entries.length) {
      this.#entries.splice(0, this.#head)
      this.#head = 0
    }
    return entry
  }

  insert(entry: Entry): void {
    let [low, high] = [this.#head, this.#entries.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#entries[middle]!.position < entry.position) low = middle + 1
      else high = middle
    }
    this.#entries.splice(low, 0, entry)
  }
}

export interface ReadyMessages {
  readonly length: number
  readonly first: Entry | undefined
  readonly add: (entry: Entry) => void
  readonly shift: () => Entry | undefined
  /** Puts back a message that a consumer requeued. */
  readonly requeue: (entry: Entry) => void
  /** Puts back a message whose consumer has gone. */
  readonly recover: (entry: Entry) => void
}

/** Messages of higher priority come first. Returned messages go back to their position. */
export const classic = (priorities: number): ReadyMessages => {
  const queues = Array.from({ length: priorities + 1 }, () => new EntryQueue())
  const highest = () => queues.findLast((row) => row.length > 0)
  const putBack = (entry: Entry) => queues[entry.priority]!.insert(entry)
  let length = 0
  const counted = (add: (entry: Entry) => void) => (entry: Entry) => {
    length++
    add(entry)
  }
  return {
    get length() {
      return length
    },
    get first() {
      return highest()?.first
    },
    add: counted((entry) => queues[entry.priority]!.push(entry)),
    shift: () => {
      const entry = highest()?.shift()
      if (entry !== undefined) length--
      return entry
    },
    requeue: counted(putBack),
    recover: counted(putBack)
  }
}

/**
 * A quorum queue cannot insert into its log, so messages of a lost consumer come before all others. Requeued messages
 * go to the end, or with a delivery limit (`limited`) to the front.
 */
export const quorum = (limited: boolean): ReadyMessages => {
  const [recovered, row] = [new EntryQueue(), new EntryQueue()]
  return {
    get length() {
      return recovered.length + row.length
    },
    get first() {
      return recovered.first ?? row.first
    },
    add: (entry) => row.push(entry),
    shift: () => recovered.shift() ?? row.shift(),
    requeue: (entry) => (limited ? recovered : row).push(entry),
    recover: (entry) => recovered.push(entry)
  }
}
