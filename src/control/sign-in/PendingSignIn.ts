import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { DateTime, Duration, Option, Redacted, Schema } from "effect"

/** People need some time at the identity provider: a password, a second factor. */
export const lifetime = Duration.minutes(10)

/** A sign-in that a browser has begun. The browser keeps it in a cookie, signed, so that no process needs to. */
export interface PendingSignIn {
  readonly state: string
  readonly returnTo: string
  readonly expiresAt: DateTime.Utc
}

export type SigningKey = Redacted.Redacted<Buffer>

const Stored = Schema.fromJsonString(
  Schema.Struct({ state: Schema.String, returnTo: Schema.String, expiresAt: Schema.DateTimeUtcFromMillis })
)
const decode = Schema.decodeUnknownOption(Stored)
const encode = Schema.encodeSync(Stored)

export const begin = (returnTo: string, now: DateTime.Utc): PendingSignIn => ({
  state: randomBytes(32).toString("base64url"),
  returnTo,
  expiresAt: DateTime.addDuration(now, lifetime)
})

export const toCookie = (key: SigningKey, pending: PendingSignIn): string => {
  const text = Buffer.from(encode(pending)).toString("base64url")
  return `${text}.${mac(key, "cookie", text)}`
}

/** Returns `none` unless this installation has signed the cookie. It may have expired. */
export const fromCookie = (key: SigningKey, cookie: string): Option.Option<PendingSignIn> => {
  const dot = cookie.length - macLength - 1
  const text = cookie.slice(0, Math.max(dot, 0))
  const given = Buffer.from(cookie.slice(dot + 1))
  const expected = Buffer.from(mac(key, "cookie", text))
  if (cookie[dot] !== "." || given.length !== expected.length || !timingSafeEqual(given, expected)) return Option.none()
  return decode(Buffer.from(text, "base64url").toString("utf8"))
}

/** The id token repeats the nonce, so that it belongs to this sign-in. */
export const nonceOf = (key: SigningKey, { state }: PendingSignIn): string => mac(key, "nonce", state)

/** A thief of the code cannot exchange it without the verifier (PKCE), which no browser ever sees. */
export const verifierOf = (key: SigningKey, { state }: PendingSignIn): string => mac(key, "verifier", state)

export const challengeOf = (verifier: string): string => createHash("sha256").update(verifier).digest("base64url")

const macLength = 43

const mac = (key: SigningKey, purpose: "cookie" | "nonce" | "verifier", text: string): string =>
  createHmac("sha256", Redacted.value(key)).update(`${purpose} ${text}`).digest("base64url")
