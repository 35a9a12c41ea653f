import { IncomingMessage } from "node:http"
import { CollectedBytes } from "../../src/services/CollectedBytes.ts"

const smallChunkBytes = 1_024
/** Bytes that are gathered before they are handed on. */
const flushBytes = 16_384
/** What a small chunk counts as, beside its bytes, where Node is told to read no more: parsing it is work. */
const chunkOverheadBytes = 64
/** Small chunks that a reader waits for are held back for so long. */
const coalesceMs = 20

/**
 * So many chunks may be smaller than `tinyChunk` bytes on average. Parsing one takes about a microsecond, whatever it
 * holds: a 64 KiB read of one-byte chunks takes 10 ms.
 */
export const maxTinyChunks = 8_192
export const tinyChunkBytes = 64
/** What the connection emits when a body goes beyond that. Nothing more of the body is taken. */
export const tinyChunksEvent = "tinyChunks"

/**
 * A request whose body costs about as much memory as it has bytes. Node makes a `Buffer` of some hundred bytes for each
 * chunk of the client's, and counts only its content towards the bound at which it stops reading: a body in one-byte
 * chunks that nobody reads takes 30 MB of memory for 64 KB, and a reader that keeps the chunks has 400 MB of them for
 * each MB. Small chunks are therefore copied together before they enter the stream. A first small chunk goes on at
 * once: most bodies are one.
 */
export class CoalescingMessage extends IncomingMessage {
  #pending: CollectedBytes | undefined
  #flushTimer: NodeJS.Timeout | undefined
  #pendingChunks = 0
  #lastSmallAt = Number.NEGATIVE_INFINITY

  #chunkCount = 0
  #chunkBytes = 0
  #refused = false

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (this.#refused) return false
    if (chunk !== null && this.#exceedsTinyChunks(chunk)) {
      this.#refused = true
      this.socket.emit(tinyChunksEvent)
      return false
    }
    if (chunk !== null && chunk.length < smallChunkBytes && this.#followsOtherBytes()) return this.#coalesce(chunk)
    this.#flush()
    return super.push(chunk, encoding)
  }

  override read(size?: number): unknown {
    if (size !== 0) this.#flush()
    return super.read(size)
  }

  /** Pieces of a body with a length are not its client's doing. */
  #exceedsTinyChunks({ length }: Buffer): boolean {
    this.#chunkCount++
    this.#chunkBytes += length
    return (
      this.#chunkCount > maxTinyChunks &&
      this.#chunkBytes < this.#chunkCount * tinyChunkBytes &&
      this.headers["content-length"] === undefined
    )
  }

  /** Other bytes wait to be read, or came a moment ago. */
  #followsOtherBytes(): boolean {
    if (this.readableLength > 0 || this.#pending !== undefined) return true
    // nothing came before it, and reading the clock for each request would cost more than the rest of this
    if (this.#chunkCount === 1) return false
    const now = performance.now()
    const many = now - this.#lastSmallAt < coalesceMs
    this.#lastSmallAt = now
    return many
  }

  #coalesce(chunk: Buffer): boolean {
    this.#pending ??= new CollectedBytes()
    this.#pending.add(chunk)
    const { length } = this.#pending
    // behind what waits to be read, these bytes are handed on when somebody reads it
    if (this.readableLength === 0) {
      if (length >= flushBytes) this.#flush()
      else this.#flushTimer ??= setTimeout(() => this.#flush(), coalesceMs)
    }
    this.#pendingChunks++
    return this.readableLength + length + this.#pendingChunks * chunkOverheadBytes < this.readableHighWaterMark
  }

  #flush(): void {
    const gathered = this.#pending
    if (gathered === undefined) return
    this.#pending = undefined
    this.#pendingChunks = 0
    clearTimeout(this.#flushTimer)
    this.#flushTimer = undefined
    if (!this.destroyed) super.push(gathered.take())
  }
}
