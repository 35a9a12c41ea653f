import { IncomingMessage } from "node:http"
import { CollectedBytes } from "../../src/services/CollectedBytes.ts"

const smallChunk = 1_024
/** Bytes that are gathered before they are handed on. */
const enough = 16_384
/** What a small chunk counts as, beside its bytes, where Node is told to read no more: parsing it is work. */
const perChunk = 64
/** Small chunks that a reader waits for are held back for so long. */
const gatherMs = 20

/**
 * So many chunks may be smaller than `tinyChunk` bytes on average. Parsing one takes about a microsecond, whatever it
 * holds: a 64 KiB read of one-byte chunks takes 10 ms.
 */
export const mostTinyChunks = 8_192
export const tinyChunk = 64
/** What the connection emits when a body goes beyond that. Nothing more of the body is taken. */
export const tinyChunks = "tinyChunks"

/**
 * A request whose body costs about as much memory as it has bytes. Node makes a `Buffer` of some hundred bytes for each
 * chunk of the client's, and counts only its content towards the bound at which it stops reading: a body in one-byte
 * chunks that nobody reads takes 30 MB of memory for 64 KB, and a reader that keeps the chunks has 400 MB of them for
 * each MB. Small chunks are therefore copied together before they enter the stream. A first small chunk goes on at
 * once: most bodies are one.
 */
export class GatheringMessage extends IncomingMessage {
  #gathered: CollectedBytes | undefined
  #handingOn: NodeJS.Timeout | undefined
  #chunks = 0
  #lastSmallAt = Number.NEGATIVE_INFINITY

  #pieces = 0
  #pieceBytes = 0
  #refused = false

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (this.#refused) return false
    if (chunk !== null && this.#isTiny(chunk)) {
      this.#refused = true
      this.socket.emit(tinyChunks)
      return false
    }
    if (chunk !== null && chunk.length < smallChunk && this.#isOneOfMany()) return this.#gather(chunk)
    this.#handOn()
    return super.push(chunk, encoding)
  }

  override read(size?: number): unknown {
    if (size !== 0) this.#handOn()
    return super.read(size)
  }

  /** Pieces of a body with a length are not its client's doing. */
  #isTiny({ length }: Buffer): boolean {
    this.#pieces++
    this.#pieceBytes += length
    return (
      this.#pieces > mostTinyChunks &&
      this.#pieceBytes < this.#pieces * tinyChunk &&
      this.headers["content-length"] === undefined
    )
  }

  /** Other bytes wait to be read, or came a moment ago. */
  #isOneOfMany(): boolean {
    if (this.readableLength > 0 || this.#gathered !== undefined) return true
    // nothing came before it, and reading the clock for each request would cost more than the rest of this
    if (this.#pieces === 1) return false
    const now = performance.now()
    const many = now - this.#lastSmallAt < gatherMs
    this.#lastSmallAt = now
    return many
  }

  #gather(chunk: Buffer): boolean {
    this.#gathered ??= new CollectedBytes()
    this.#gathered.add(chunk)
    const { length } = this.#gathered
    // behind what waits to be read, these bytes are handed on when somebody reads it
    if (this.readableLength === 0) {
      if (length >= enough) this.#handOn()
      else this.#handingOn ??= setTimeout(() => this.#handOn(), gatherMs)
    }
    this.#chunks++
    return this.readableLength + length + this.#chunks * perChunk < this.readableHighWaterMark
  }

  #handOn(): void {
    const gathered = this.#gathered
    if (gathered === undefined) return
    this.#gathered = undefined
    this.#chunks = 0
    clearTimeout(this.#handingOn)
    this.#handingOn = undefined
    if (!this.destroyed) super.push(gathered.take())
  }
}
