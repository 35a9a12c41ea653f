import type { Message } from "./Message.ts"

/** A message in a queue. */
export interface Entry {
  readonly message: Message
  /** Grows from message to message of one queue; in a stream it is the offset. */
  readonly position: number
  readonly priority: number
  /** When it expires once it is the first; `undefined`: never. */
  readonly expiresAt: number | undefined
  /** How often it came back. */
  returnCount: number
}

/** A queue that gives at its front, and takes at its back or, rarely, in between. */
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
    // What was given is let go of in large pieces, so that giving costs the same however long the queue is.
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

/** The messages that wait for a consumer, in the order in which they are given. */
export interface ReadyMessages {
  readonly length: number
  readonly first: Entry | undefined
  readonly add: (entry: Entry) => void
  readonly shift: () => Entry | undefined
  /** Sent back by a consumer. */
  readonly requeue: (entry: Entry) => void
  /** Left behind by a consumer that is gone. */
  readonly recover: (entry: Entry) => void
}

/** The highest priority first, and what comes back goes where it was. */
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
 * A quorum queue cannot put back into its log. What a lost consumer held is given before everything else; what a consumer
 * sends back becomes the last message, so that the log can be cut off, but where deliveries are `limited` it is given
 * before everything else, too.
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
