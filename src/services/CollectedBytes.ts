/** Chunks below this are copied together. Every `Buffer` costs some hundred bytes, whatever it holds. */
const smallChunk = 4_096
const largestBlock = 262_144

/**
 * Bytes that arrive in chunks and are wanted whole. They cost about as much memory as they are, however small the
 * chunks: small ones are copied into blocks that grow, and so is a view that keeps a much larger buffer alive.
 */
export class CollectedBytes {
  /** The only chunk so far: most bodies have one, which is then never copied. */
  #only: Buffer | undefined
  readonly #pieces: Array<Buffer> = []
  /** Copied bytes go here; those before `#sealed` are in `#pieces` already. */
  #block: Buffer = empty
  #sealed = 0
  #used = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  add(chunk: Buffer): void {
    if (chunk.length === 0) return
    if (this.#length === 0) this.#only = chunk
    else {
      const first = this.#only
      this.#only = undefined
      if (first !== undefined) this.#append(first)
      this.#append(chunk)
    }
    this.#length += chunk.length
  }

  /** Everything that was added, in one piece. */
  toBuffer(): Buffer {
    if (this.#only === undefined && this.#length > 0) this.#join()
    return this.#only ?? empty
  }

  /** The same; nothing of it is held any longer. */
  take(): Buffer {
    const whole = this.toBuffer()
    this.clear()
    return whole
  }

  clear(): void {
    this.#only = undefined
    this.#pieces.length = 0
    this.#block = empty
    this.#sealed = 0
    this.#used = 0
    this.#length = 0
  }

  #append(chunk: Buffer): void {
    if (chunk.length >= smallChunk && chunk.length * 2 >= chunk.buffer.byteLength) {
      this.#seal()
      this.#pieces.push(chunk)
      return
    }
    for (let from = 0; from < chunk.length; ) {
      if (this.#used === this.#block.length) this.#nextBlock()
      const copied = chunk.copy(this.#block, this.#used, from)
      this.#used += copied
      from += copied
    }
  }

  #nextBlock(): void {
    this.#seal()
    // not from the pool, which would be kept alive as a whole
    this.#block = Buffer.allocUnsafeSlow(Math.min(largestBlock, Math.max(smallChunk, this.#block.length * 2)))
    this.#sealed = 0
    this.#used = 0
  }

  #seal(): void {
    if (this.#used > this.#sealed) this.#pieces.push(this.#block.subarray(this.#sealed, this.#used))
    this.#sealed = this.#used
  }

  #join(): void {
    this.#seal()
    const whole = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces, this.#length)
    this.clear()
    this.#only = whole
    this.#length = whole.length
  }
}

const empty = Buffer.alloc(0)
