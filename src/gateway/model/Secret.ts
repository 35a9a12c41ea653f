import { createHash, hash, randomBytes, timingSafeEqual } from "node:crypto"
import { Redacted } from "effect"

/** Prefixes route a secret to where it is looked up; they never grant anything. */
export const keyPrefix = "rk_live_"
export const operatorTokenPrefix = "op_live_"

/** How much of a secret may be shown again: enough to tell two apart. */
export const shownLength = 16

/** 256 random bits, in hex: `rk_live_…` or `op_live_…`. */
export const mint = (prefix: typeof keyPrefix | typeof operatorTokenPrefix): Redacted.Redacted =>
  Redacted.make(prefix + randomBytes(32).toString("hex"))

export const shown = (secret: Redacted.Redacted): string => Redacted.value(secret).slice(0, shownLength)

/** SHA-256. What `mint` makes has 256 random bits, so a slow password hash would add cost and no safety. */
export const digest = (secret: Redacted.Redacted): Uint8Array =>
  createHash("sha256").update(Redacted.value(secret)).digest()

/** `digest`, in hex, without the intermediate objects: once for each request. */
export const digestHex = (secret: string): string => hash("sha256", secret, "hex")

/** In time that depends on the length of `expected` alone. */
export const equal = (given: Redacted.Redacted, expected: Redacted.Redacted): boolean =>
  timingSafeEqual(digest(given), digest(expected))

/** `rk_live_` or `op_live_` and more than 16 characters in all (reference §3, §6.1). */
export const wellFormed = (prefix: typeof keyPrefix | typeof operatorTokenPrefix, value: string): boolean =>
  value.startsWith(prefix) && value.length > shownLength && value.length <= 256
