import { createHash, hash, randomBytes, timingSafeEqual } from "node:crypto"
import { crc32 } from "node:zlib"
import { Redacted } from "effect"

/** Prefixes route a secret to where it is looked up; they never grant anything. */
export const keyPrefix = "rk_live_"
export const operatorTokenPrefix = "op_live_"

/** How much of a secret may be shown again: enough to tell two apart. */
export const displayLength = 16

/** A secret that an operator chose has at least so many characters: half of them stay hidden where it is shown. */
export const minChosenLength = 2 * displayLength

/** 256 random bits, in hex, after `rk_live_` or `op_live_`; a gateway key ends in their checksum. */
export const mint = (prefix: typeof keyPrefix | typeof operatorTokenPrefix): Redacted.Redacted => {
  const secret = prefix + randomBytes(32).toString("hex")
  return Redacted.make(prefix === keyPrefix ? secret + checksum(secret) : secret)
}

/** CRC-32, in 8 hex digits. */
const checksum = (text: string): string => crc32(text).toString(16).padStart(8, "0")

const checksummed = /^rk_live_[0-9a-f]{72}$/

/**
 * Whether no gateway key can be `raw`: it has the form of one and another checksum, as a mistyped key has. Keys of
 * earlier versions have 64 hex digits and no checksum, so theirs cannot be told.
 */
export const isMistyped = (raw: string): boolean =>
  checksummed.test(raw) && checksum(raw.slice(0, -8)) !== raw.slice(-8)

export const displayPrefix = (secret: Redacted.Redacted): string => Redacted.value(secret).slice(0, displayLength)

/** SHA-256. What `mint` makes has 256 random bits, so a slow password hash would add cost and no safety. */
export const digest = (secret: Redacted.Redacted): Uint8Array =>
  createHash("sha256").update(Redacted.value(secret)).digest()

/** `digest`, in hex, without the intermediate objects: once for each request. */
export const digestHex = (secret: string): string => hash("sha256", secret, "hex")

/** In time that depends on the length of `expected` alone. */
export const equal = (given: Redacted.Redacted, expected: Redacted.Redacted): boolean =>
  timingSafeEqual(digest(given), digest(expected))

/** `rk_live_` or `op_live_` and more than 16 characters in all. */
export const isWellFormed = (prefix: typeof keyPrefix | typeof operatorTokenPrefix, value: string): boolean =>
  value.startsWith(prefix) && value.length > displayLength && value.length <= 256

export const isStrongEnough = (prefix: typeof operatorTokenPrefix, value: string): boolean =>
  isWellFormed(prefix, value) && value.length >= minChosenLength
