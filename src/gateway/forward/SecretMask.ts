import { Redacted } from "effect"
import type { RawHeaders } from "../../http/Headers.ts"

/** A shorter secret is not masked, because its text could occur in any response by chance. */
const minSecretLength = 8
const empty = Buffer.alloc(0)
const asterisk = 0x2a
const backslash = 0x5c
const percent = 0x25
const unicodeEscape = 0x75

/** The maximum number of backslashes before one character. JSON in a JSON string doubles its backslashes. */
const maxBackslashes = 4

/** The bytes end before it is clear whether the secret matches. */
const incomplete = -1
const mismatch = -2

/**
 * Replaces a secret in a byte stream with asterisks, even if JSON or URL escapes encode the secret. The length, and
 * therefore `content-length`, does not change.
 */
export class SecretMask {
  readonly #secret: Buffer
  #held: Buffer = empty

  constructor(secret: Redacted.Redacted) {
    this.#secret = Buffer.from(Redacted.value(secret))
  }

  /** Successful responses do not repeat the request, so they need no mask. */
  static readonly forStatus = (status: number, secret: Redacted.Redacted): SecretMask | undefined =>
    status >= 300 && Redacted.value(secret).length >= minSecretLength ? new SecretMask(secret) : undefined

  push(chunk: Buffer): Buffer {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const { held, masked } = this.#maskBytes(bytes)
    this.#held = masked.subarray(held)
    return masked.subarray(0, held)
  }

  /** Returns bytes that were held back as a possible start of the secret. Call it once, after the last `push`. */
  flush(): Buffer {
    return this.#held
  }

  headers(headers: RawHeaders): Array<string> {
    return headers.map((text, index) =>
      index % 2 === 0 ? text : this.#maskBytes(Buffer.from(text, "latin1")).masked.toString("latin1")
    )
  }

  #maskBytes(bytes: Buffer): { readonly masked: Buffer; readonly held: number } {
    let masked = bytes
    const first = this.#secret[0]
    for (let offset = 0; offset < bytes.length; ) {
      const byte = bytes[offset]
      const end = byte === first || byte === backslash || byte === percent ? this.#endOf(bytes, offset) : mismatch
      if (end === incomplete) return { masked, held: offset }
      if (end === mismatch) offset++
      else {
        if (masked === bytes) masked = Buffer.from(bytes)
        masked.fill(asterisk, offset, end)
        offset = end
      }
    }
    return { masked, held: bytes.length }
  }

  /** Returns the offset after the secret that begins at `from`, or `incomplete` or `mismatch`. */
  #endOf(bytes: Buffer, from: number): number {
    let offset = from
    for (let index = 0; index < this.#secret.length && offset >= 0; index++)
      offset = matchCharacter(bytes, offset, this.#secret[index]!)
    return offset
  }
}

const matchCharacter = (bytes: Buffer, from: number, character: number): number => {
  if (from >= bytes.length) return incomplete
  if (bytes[from] === character) return from + 1
  if (bytes[from] === percent) return matchHexEscape(bytes, from + 1, 2, character)
  let offset = from
  while (bytes[offset] === backslash && offset - from < maxBackslashes) offset++
  if (offset === from) return mismatch
  if (offset >= bytes.length) return incomplete
  if (bytes[offset] === character) return offset + 1
  return bytes[offset] === unicodeEscape ? matchHexEscape(bytes, offset + 1, 4, character) : mismatch
}

const matchHexEscape = (bytes: Buffer, from: number, digits: number, character: number): number => {
  if (from + digits > bytes.length) return incomplete
  return Number(`0x${bytes.toString("latin1", from, from + digits)}`) === character ? from + digits : mismatch
}
