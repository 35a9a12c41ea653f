import { IncomingMessage } from "node:http"
import { CollectedBytes } from "../../src/services/CollectedBytes.ts"

const smallChunkBytes = 1_024
const flushBytes = 16_384
/** Counts towards Node's read limit for each pending chunk, beside its bytes: parsing has a cost of its own. */
const chunkOverheadBytes = 64
/** Milliseconds for which small chunks wait for more while a reader is waiting. */
const coalesceMs = 20

/**
 * A body may have this many chunks of less than `tinyChunkBytes` bytes on average. Parsing a chunk takes about a
 * microsecond whatever its size: a 64 KiB read of one-byte chunks takes 10 ms.
 */
export const maxTinyChunks = 8_192
export const tinyChunkBytes = 64
/** The connection emits this event when a body exceeds the limit. The rest of the body is discarded. */
export const tinyChunksEvent = "tinyChunks"

/**
 * A request whose body takes about as much memory as it has bytes. Node allocates a `Buffer` of some hundred bytes for
 * each chunk and counts only its content towards the limit at which it stops reading: an unread body in one-byte chunks
 * takes 30 MB for 64 KB, and a reader that keeps the chunks holds 400 MB per MB. Small chunks are therefore merged
 * before they enter the stream. The first small chunk passes at once, because most bodies are one chunk.
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

  /** Bodies with a content-length are exempt: Node splits those, not the client. */
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
    // For the first chunk, reading the clock would cost more than the rest of this method.
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
    // Without waiting bytes nothing else triggers the flush; otherwise the next read does.
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
