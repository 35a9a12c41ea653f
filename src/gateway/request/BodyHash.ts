import { createHash, type Hash, hash } from "node:crypto"
import { Redacted } from "effect"
import type { BodyHashKey } from "../../state/BodyHashKey.ts"

/**
 * The fingerprint of one body: SHA-256 over the key and the body, of which 128 bits are kept; from half of a digest
 * nobody can go on to that of a longer body. Equal bodies have equal fingerprints. This construction costs half of an
 * HMAC for the bodies of usual requests (0.6 µs for 500 bytes, where an HMAC takes 1.6 µs).
 */
export class BodyHash {
  readonly #key: Buffer
  /** A body that comes in one small piece is hashed in one call, which costs less than an incremental hash. */
  #only: Uint8Array | undefined
  #hash: Hash | undefined
  #whole = false

  constructor(key: BodyHashKey) {
    this.#key = Redacted.value(key)
  }

  update(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    if (this.#hash !== undefined) this.#hash.update(bytes)
    else if (this.#only === undefined && bytes.length <= smallBodyBytes) this.#only = bytes
    else {
      this.#hash = createHash("sha256").update(this.#key)
      if (this.#only !== undefined) this.#hash.update(this.#only)
      this.#only = undefined
      this.#hash.update(bytes)
    }
  }

  /** All of the body was seen. Without it there is no fingerprint: it would be that of another body. */
  complete(): void {
    this.#whole = true
  }

  /** Call it at most once. `undefined` for a body that is empty or was not seen whole. */
  digest(): string | undefined {
    if (!this.#whole) return undefined
    if (this.#hash !== undefined) return truncatedDigest(this.#hash.digest("base64url"))
    if (this.#only === undefined) return undefined
    if (keyInBuffer !== this.#key) {
      keyedBuffer.set(this.#key)
      keyInBuffer = this.#key
    }
    keyedBuffer.set(this.#only, this.#key.length)
    return truncatedDigest(hash("sha256", keyedBuffer.subarray(0, this.#key.length + this.#only.length), "base64url"))
  }
}

/** Copying a longer one costs more than it spares. */
const smallBodyBytes = 4096

/** The key and a small body are put together here, for the one call that hashes them. */
const keyedBuffer = Buffer.allocUnsafeSlow(smallBodyBytes + 256)
/** The key that stands there already. */
let keyInBuffer: Buffer | undefined

/** 128 bits in base64url. */
const truncatedDigest = (digest: string): string => digest.slice(0, 22)
