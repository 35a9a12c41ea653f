import { hash } from "node:crypto"
import { Effect } from "effect"

export class StreamOffset {
  readonly offset: number
  #content: Uint8Array | undefined
  #digest = ""
  isDone = false

  constructor(offset: number, content: Uint8Array) {
    this.offset = offset
    this.#content = content
  }

  /** Identifies the message. Computed lazily, which also releases the content. */
  get digest(): string {
    if (this.#content !== undefined) {
      this.#digest = digestOf(this.#content)
      this.#content = undefined
    }
    return this.#digest
  }
}

export const digestOf = (content: Uint8Array): string => hash("sha1", content, "hex")

/** Maximum number of messages tracked from the first unfinished one on; later ones wait for it. */
const capacity = 10_000

/** The highest offset of a stream up to which every message is done. Messages done after a gap do not count yet. */
export class LowWaterMark {
  #pending: Array<StreamOffset> = []
  #head = 0
  #epoch = 0
  #latest: StreamOffset | undefined
  #waiting: Array<() => void> = []

  get latest(): StreamOffset | undefined {
    return this.#latest
  }

  /** Registers a delivery, in order. The caller calls the returned function when the message is done. */
  track(epoch: number, offset: number, content: Uint8Array): () => void {
    if (epoch !== this.#epoch) {
      // the broker redelivers the messages of the previous channel
      this.#epoch = epoch
      this.#pending = []
      this.#head = 0
      this.#wake()
    }
    const entry = new StreamOffset(offset, content)
    this.#pending.push(entry)
    return () => {
      entry.isDone = true
      if (this.#pending[this.#head] === entry) this.#advance()
      // releases the content: one stuck message must not retain the contents of all later ones
      else void entry.digest
    }
  }

  get isFull(): boolean {
    return this.#pending.length - this.#head > capacity
  }

  get whenNotFull(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (!this.isFull) return resume(Effect.void)
      this.#waiting.push(() => resume(Effect.void))
    })
  }

  #advance(): void {
    for (let next = this.#pending[this.#head]; next?.isDone; next = this.#pending[this.#head]) {
      this.#latest = next
      this.#head++
    }
    // amortizes the cost of `splice`, which moves the rest
    if (this.#head > 1_024 || this.#head === this.#pending.length) {
      this.#pending.splice(0, this.#head)
      this.#head = 0
    }
    if (this.#waiting.length > 0 && !this.isFull) this.#wake()
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }
}
