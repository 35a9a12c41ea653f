import { Redacted } from "effect"

/** What is shorter is no secret, and might be a word of the answer. */
const shortest = 8
const empty = Buffer.alloc(0)
const star = 0x2a

/**
 * Puts asterisks in the place of a secret in bytes that pass. An upstream that repeats its request in an error would
 * show the client the credential that the gateway sent. The length stays, and with it the answer's `content-length`.
 */
export class SecretMask {
  readonly #secret: Buffer
  /** The end of what came, where it may be the beginning of the secret. */
  #held: Buffer = empty

  constructor(secret: Redacted.Redacted) {
    this.#secret = Buffer.from(Redacted.value(secret))
  }

  /** Only refusals repeat requests; other answers pass untouched and cost nothing. */
  static readonly forStatus = (status: number, secret: Redacted.Redacted): SecretMask | undefined =>
    status >= 400 && Redacted.value(secret).length >= shortest ? new SecretMask(secret) : undefined

  push(chunk: Buffer): Buffer {
    const bytes = this.#masked(this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]))
    const kept = this.#beginning(bytes)
    this.#held = bytes.subarray(bytes.length - kept)
    return bytes.subarray(0, bytes.length - kept)
  }

  /** What was held back; call it once, at the end. */
  flush(): Buffer {
    return this.#held
  }

  #masked(bytes: Buffer): Buffer {
    let found = bytes.indexOf(this.#secret)
    if (found === -1) return bytes
    const out = Buffer.from(bytes)
    const { length } = this.#secret
    for (; found !== -1; found = out.indexOf(this.#secret, found + length)) out.fill(star, found, found + length)
    return out
  }

  /** How many bytes at the end are the beginning of the secret. */
  #beginning(bytes: Buffer): number {
    for (let length = Math.min(bytes.length, this.#secret.length - 1); length > 0; length--) {
      if (bytes.compare(this.#secret, 0, length, bytes.length - length) === 0) return length
    }
    return 0
  }
}
