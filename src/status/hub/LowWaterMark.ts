import { hash } from "node:crypto"
import { Effect } from "effect"

/** A message of a stream, and where it stands there. */
export class StreamOffset {
  readonly offset: number
  #content: Uint8Array | undefined
  #digest = ""
  isDone = false

  constructor(offset: number, content: Uint8Array) {
    this.offset = offset
    this.#content = content
  }

  /** By which the message is known again. Asked for only of a few, and its content is let go by then. */
  get digest(): string {
    if (this.#content !== undefined) {
      this.#digest = digestOf(this.#content)
      this.#content = undefined
    }
    return this.#digest
  }
}

export const digestOf = (content: Uint8Array): string => hash("sha1", content, "hex")

/** Messages that may be done beyond one that is not; then those that come wait for it. */
const capacity = 10_000

/** How far a stream has been read without a gap: what is done beyond one that is not does not count yet. */
export class LowWaterMark {
  #pending: Array<StreamOffset> = []
  #head = 0
  #epoch = 0
  #reached: StreamOffset | undefined
  #waiting: Array<() => void> = []

  /** The last of which it is true that everything up to it is done. */
  get latest(): StreamOffset | undefined {
    return this.#reached
  }

  /** To be called for every delivery in its order; what it answers is called when the delivery is done. */
  track(epoch: number, offset: number, content: Uint8Array): () => void {
    if (epoch !== this.#epoch) {
      // those of the channel before come again
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
      // one that hangs must not hold the contents of all that come behind it
      else void entry.digest
    }
  }

  get isFull(): boolean {
    return this.#pending.length - this.#head > capacity
  }

  /** For what is delivered while it is full. */
  get whenNotFull(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (!this.isFull) return resume(Effect.void)
      this.#waiting.push(() => resume(Effect.void))
    })
  }

  #advance(): void {
    for (let next = this.#pending[this.#head]; next?.isDone; next = this.#pending[this.#head]) {
      this.#reached = next
      this.#head++
    }
    // now and then, as cutting off the front moves all the rest
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
