import { createHash, type Hash, hash } from "node:crypto"
import { Redacted } from "effect"
import type { BodyHashKey } from "../../state/BodyHashKey.ts"

/**
 * A keyed fingerprint of one body: the first 128 bits of SHA-256 over the key and the body. The truncation prevents
 * length extension attacks. For 500 bytes this takes 0.6 µs. An HMAC would take 1.6 µs.
 */
export class BodyHash {
  readonly #key: Buffer
  /** A body that arrives as one small chunk is hashed in one call, which is cheaper than an incremental hash. */
  #singleChunk: Uint8Array | undefined
  #hash: Hash | undefined
  #isComplete = false

  constructor(key: BodyHashKey) {
    this.#key = Redacted.value(key)
  }

  update(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    if (this.#hash !== undefined) this.#hash.update(bytes)
    else if (this.#singleChunk === undefined && bytes.length <= smallBodyBytes) this.#singleChunk = bytes
    else {
      this.#hash = createHash("sha256").update(this.#key)
      if (this.#singleChunk !== undefined) this.#hash.update(this.#singleChunk)
      this.#singleChunk = undefined
      this.#hash.update(bytes)
    }
  }

  complete(): void {
    this.#isComplete = true
  }

  /** Returns `undefined` for an empty or incomplete body. Call it at most once. */
  digest(): string | undefined {
    if (!this.#isComplete) return undefined
    if (this.#hash !== undefined) return truncatedDigest(this.#hash.digest("base64url"))
    if (this.#singleChunk === undefined) return undefined
    if (keyInBuffer !== this.#key) {
      keyedBuffer.set(this.#key)
      keyInBuffer = this.#key
    }
    keyedBuffer.set(this.#singleChunk, this.#key.length)
    return truncatedDigest(
      hash("sha256", keyedBuffer.subarray(0, this.#key.length + this.#singleChunk.length), "base64url")
    )
  }
}

/** A larger body is hashed incrementally, because copying it costs more than a single call saves. */
const smallBodyBytes = 4096

const keyedBuffer = Buffer.allocUnsafeSlow(smallBodyBytes + 256)
let keyInBuffer: Buffer | undefined

const truncatedDigest = (digest: string): string => digest.slice(0, 22)
