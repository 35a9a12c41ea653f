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

  /** The SHA-1 hash of the message. The first call releases the content of the message from memory. */
  get digest(): string {
    if (this.#content !== undefined) {
      this.#digest = digestOf(this.#content)
      this.#content = undefined
    }
    return this.#digest
  }
}

export const digestOf = (content: Uint8Array): string => hash("sha1", content, "hex")

/** The maximum number of tracked messages that follow an unfinished message. Further messages must wait. */
const capacity = 10_000

/** Tracks the highest offset of a stream up to which every message is done. */
export class LowWaterMark {
  #pending: Array<StreamOffset> = []
  #head = 0
  #epoch = 0
  #latest: StreamOffset | undefined
  #waiting: Array<() => void> = []

  get latest(): StreamOffset | undefined {
    return this.#latest
  }

  /** Registers a delivery. Must be called in the order of offsets. The returned function marks the message as done. */
  track(epoch: number, offset: number, content: Uint8Array): () => void {
    if (epoch !== this.#epoch) {
      // On a new channel, the broker delivers all unfinished messages again. The old entries are obsolete then.
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
      // The digest releases the message content. Otherwise an unfinished message would keep later messages in memory.
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
    // `splice` moves all remaining entries, so it does not run for every message.
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
