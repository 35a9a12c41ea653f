import { IncomingMessage } from "node:http"
import { CollectedBytes } from "../../src/services/CollectedBytes.ts"

const smallChunkBytes = 1_024
const flushBytes = 16_384
/** Each chunk counts as its bytes plus this overhead towards the limit at which Node stops reading. */
const chunkOverheadBytes = 64
/** Small chunks are delayed by up to this time in milliseconds, so that several can be merged. */
const coalesceMs = 20

/**
 * The maximum number of chunks in a body if they have less than `tinyChunkBytes` bytes on average. Parsing a chunk
 * takes about 1 µs, whatever its size. A read of 64 KiB in chunks of one byte takes 10 ms.
 */
export const maxTinyChunks = 8_192
export const tinyChunkBytes = 64
/** Emitted on the connection when a body exceeds the limit. The rest of the body is discarded. */
export const tinyChunksEvent = "tinyChunks"

/**
 * Merges small chunks of a request body to save memory. Node allocates some hundred bytes for each chunk, but its
 * backpressure counts only the content. 64 KB in chunks of one byte would take 30 MB. The first small chunk is not
 * delayed, because most bodies have only one chunk.
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

  /** The limit does not apply to a body with a content-length, because Node splits such a body itself. */
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
    // The clock is not read for the first chunk, because reading it costs more than the rest of this method.
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
    // If bytes are waiting to be read, the next read also flushes the merged chunks. Otherwise a timer flushes them.
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
