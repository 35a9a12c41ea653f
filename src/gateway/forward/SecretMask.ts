import { Redacted } from "effect"
import type { RawHeaders } from "../../http/Headers.ts"

/** What is shorter is no secret, and might be a word of the answer. */
const minSecretLength = 8
const empty = Buffer.alloc(0)
const star = 0x2a
const backslash = 0x5c
const percent = 0x25
const unicodeEscape = 0x75

/** Backslashes before one character: JSON that stands in a string of JSON doubles them. */
const maxBackslashes = 4

/** Of a spelling that the bytes end within. */
const incomplete = -1
const mismatch = -2

/**
 * Puts asterisks in the place of a secret in bytes that pass. An upstream that repeats its request in an error would
 * show the client the credential that the gateway sent, as it is or in the escapes of JSON and of URLs. The length
 * stays, and with it the answer's `content-length`.
 */
export class SecretMask {
  readonly #secret: Buffer
  /** The end of what came, where it may be the beginning of the secret. */
  #held: Buffer = empty

  constructor(secret: Redacted.Redacted) {
    this.#secret = Buffer.from(Redacted.value(secret))
  }

  /** Only redirections and refusals repeat requests; other answers pass untouched and cost nothing. */
  static readonly forStatus = (status: number, secret: Redacted.Redacted): SecretMask | undefined =>
    status >= 300 && Redacted.value(secret).length >= minSecretLength ? new SecretMask(secret) : undefined

  push(chunk: Buffer): Buffer {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const { held, masked } = this.#masked(bytes)
    this.#held = masked.subarray(held)
    return masked.subarray(0, held)
  }

  /** What was held back; call it once, at the end. */
  flush(): Buffer {
    return this.#held
  }

  /** The same headers without the secret in their values. */
  headers(headers: RawHeaders): Array<string> {
    return headers.map((text, index) =>
      index % 2 === 0 ? text : this.#masked(Buffer.from(text, "latin1")).masked.toString("latin1")
    )
  }

  /** `held`: where the bytes begin that may be the beginning of the secret. */
  #masked(bytes: Buffer): { readonly masked: Buffer; readonly held: number } {
    let masked = bytes
    const first = this.#secret[0]
    for (let at = 0; at < bytes.length; ) {
      const byte = bytes[at]
      const end = byte === first || byte === backslash || byte === percent ? this.#endOf(bytes, at) : mismatch
      if (end === incomplete) return { masked, held: at }
      if (end === mismatch) at++
      else {
        if (masked === bytes) masked = Buffer.from(bytes)
        masked.fill(star, at, end)
        at = end
      }
    }
    return { masked, held: bytes.length }
  }

  /** Just behind the secret that begins at `from`. */
  #endOf(bytes: Buffer, from: number): number {
    let at = from
    for (let index = 0; index < this.#secret.length && at >= 0; index++)
      at = matchCharacter(bytes, at, this.#secret[index]!)
    return at
  }
}

/** Just behind `character` at `from`, as it is or in an escape. */
const matchCharacter = (bytes: Buffer, from: number, character: number): number => {
  if (from >= bytes.length) return incomplete
  if (bytes[from] === character) return from + 1
  if (bytes[from] === percent) return matchHexEscape(bytes, from + 1, 2, character)
  let at = from
  while (bytes[at] === backslash && at - from < maxBackslashes) at++
  if (at === from) return mismatch
  if (at >= bytes.length) return incomplete
  if (bytes[at] === character) return at + 1
  return bytes[at] === unicodeEscape ? matchHexEscape(bytes, at + 1, 4, character) : mismatch
}

/** Just behind the hexadecimal digits that stand for `character`. */
const matchHexEscape = (bytes: Buffer, from: number, digits: number, character: number): number => {
  if (from + digits > bytes.length) return incomplete
  return Number(`0x${bytes.toString("latin1", from, from + digits)}`) === character ? from + digits : mismatch
}
