/** Chunks below this size share a block, because every `Buffer` costs about a hundred bytes besides its content. */
const smallChunk = 4_096
const largestBlock = 262_144

/**
 * Collects the chunks of a body in little more memory than the body's size. Small chunks are copied into growing
 * blocks. Views that keep a much larger buffer in memory are copied too.
 */
export class CollectedBytes {
  /** The only chunk so far. Most bodies have one chunk, which is never copied. */
  #singleChunk: Buffer | undefined
  readonly #chunks: Array<Buffer> = []
  /** The block that chunks are copied into. Its bytes before `#sealedEnd` are already part of `#chunks`. */
  #block: Buffer = empty
  #sealedEnd = 0
  #blockEnd = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  add(chunk: Buffer): void {
    if (chunk.length === 0) return
    if (this.#length === 0) this.#singleChunk = chunk
    else {
      const first = this.#singleChunk
      this.#singleChunk = undefined
      if (first !== undefined) this.#append(first)
      this.#append(chunk)
    }
    this.#length += chunk.length
  }

  /** Returns all added bytes in one buffer. */
  toBuffer(): Buffer {
    if (this.#singleChunk === undefined && this.#length > 0) this.#join()
    return this.#singleChunk ?? empty
  }

  /** Like `toBuffer`, but also clears this collection. */
  take(): Buffer {
    const whole = this.toBuffer()
    this.clear()
    return whole
  }

  clear(): void {
    this.#singleChunk = undefined
    this.#chunks.length = 0
    this.#block = empty
    this.#sealedEnd = 0
    this.#blockEnd = 0
    this.#length = 0
  }

  #append(chunk: Buffer): void {
    if (chunk.length >= smallChunk && chunk.length * 2 >= chunk.buffer.byteLength) {
      this.#seal()
      this.#chunks.push(chunk)
      return
    }
    for (let from = 0; from < chunk.length; ) {
      if (this.#blockEnd === this.#block.length) this.#nextBlock()
      const copied = chunk.copy(this.#block, this.#blockEnd, from)
      this.#blockEnd += copied
      from += copied
    }
  }

  #nextBlock(): void {
    this.#seal()
    // The block is not part of Node's buffer pool, because a slice of the pool would keep the whole pool in memory.
    this.#block = Buffer.allocUnsafeSlow(Math.min(largestBlock, Math.max(smallChunk, this.#block.length * 2)))
    this.#sealedEnd = 0
    this.#blockEnd = 0
  }

  #seal(): void {
    if (this.#blockEnd > this.#sealedEnd) this.#chunks.push(this.#block.subarray(this.#sealedEnd, this.#blockEnd))
    this.#sealedEnd = this.#blockEnd
  }

  #join(): void {
    this.#seal()
    const whole = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks, this.#length)
    this.clear()
    this.#singleChunk = whole
    this.#length = whole.length
  }
}

const empty = Buffer.alloc(0)
