import { createHash, hash, randomBytes, timingSafeEqual } from "node:crypto"
import { crc32 } from "node:zlib"
import { Redacted } from "effect"

/** The prefix of a secret selects the table that the gateway searches. The prefix grants no permission. */
export const keyPrefix = "rk_live_"
export const operatorTokenPrefix = "op_live_"

const displayLength = 16

/** The minimum length of a secret that an operator chooses. At least half of such a secret is never displayed. */
export const minChosenLength = 2 * displayLength

/** Returns the prefix and 256 random bits in hex. A gateway key also ends with a checksum. */
export const mint = (prefix: typeof keyPrefix | typeof operatorTokenPrefix): Redacted.Redacted => {
  const secret = prefix + randomBytes(32).toString("hex")
  return Redacted.make(prefix === keyPrefix ? secret + checksum(secret) : secret)
}

const checksum = (text: string): string => crc32(text).toString(16).padStart(8, "0")

const checksummed = /^rk_live_[0-9a-f]{72}$/

/** Returns true if the checksum of a gateway key is wrong. Keys of older versions have no checksum. */
export const isMistyped = (raw: string): boolean =>
  checksummed.test(raw) && checksum(raw.slice(0, -8)) !== raw.slice(-8)

export const displayPrefix = (secret: Redacted.Redacted): string => Redacted.value(secret).slice(0, displayLength)

/** A slow password hash would add no security, because `mint` uses 256 random bits. */
export const digest = (secret: Redacted.Redacted): Uint8Array =>
  createHash("sha256").update(Redacted.value(secret)).digest()

/** Returns the same hash as `digest`, in hex. It avoids intermediate objects because it runs for every request. */
export const digestHex = (secret: string): string => hash("sha256", secret, "hex")

/** Compares in constant time, so that an attacker learns nothing from the duration. */
export const equal = (given: Redacted.Redacted, expected: Redacted.Redacted): boolean =>
  timingSafeEqual(digest(given), digest(expected))

export const isWellFormed = (prefix: typeof keyPrefix | typeof operatorTokenPrefix, value: string): boolean =>
  value.startsWith(prefix) && value.length > displayLength && value.length <= 256

export const isStrongEnough = (prefix: typeof operatorTokenPrefix, value: string): boolean =>
  isWellFormed(prefix, value) && value.length >= minChosenLength
