import { IncomingMessage } from "node:http"
import { CollectedBytes } from "../../src/services/CollectedBytes.ts"

const smallChunkBytes = 1_024
const flushBytes = 16_384
/** Counts for each chunk in addition to its bytes towards the limit at which Node stops reading. */
const chunkOverheadBytes = 64
/** While somebody waits for data, small chunks are delayed by this time in milliseconds, so that more can join. */
const coalesceMs = 20

/**
 * The limit of chunks if they have less than `tinyChunkBytes` bytes on average. Parsing a chunk takes about a
 * microsecond whatever its size, so a read of 64 KiB in chunks of one byte takes 10 ms.
 */
export const maxTinyChunks = 8_192
export const tinyChunkBytes = 64
/** Emitted on the connection when a body exceeds the limit. The rest of the body is discarded. */
export const tinyChunksEvent = "tinyChunks"

/**
 * Merges small chunks of a request body. Node allocates a `Buffer` of some hundred bytes for each chunk, but counts
 * only its content towards the limit at which it stops reading: 64 KB in chunks of one byte take 30 MB. The first small
 * chunk is passed on at once, because most bodies have only one.
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

  /** With a content-length the limit does not apply: Node splits such a body, not the client. */
  #exceedsTinyChunks({ length }: Buffer): boolean {
    this.#chunkCount++
    this.#chunkBytes += length
    return (
      this.#chunkCount > maxTinyChunks &&
      this.#chunkBytes < this.#chunkCount * tinyChunkBytes &&
      this.headers["content-length"] === undefined
    )
  }

  #followsOtherBytes(): boolean {
    if (this.readableLength > 0 || this.#pending !== undefined) return true
    // Most bodies have only one chunk, and reading the clock would cost more than the rest of this method.
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
    // If bytes are waiting to be read, the next read also flushes these. Otherwise the timer does.
    if (this.readableLength === 0) {
      if (length >= flushBytes) this.#flush()
      else this.#flushTimer ??= setTimeout(() => this.#flush(), coalesceMs)
    }
    this.#pendingChunks++
    return this.readableLength + length + this.#pendingChunks * chunkOverheadBytes < this.readableHighWaterMark
  }

  #flush(): void {
    const pending = this.#pending
    if (pending === undefined) return
    this.#pending = undefined
    this.#pendingChunks = 0
    clearTimeout(this.#flushTimer)
    this.#flushTimer = undefined
    if (!this.destroyed) super.push(pending.take())
  }
}
