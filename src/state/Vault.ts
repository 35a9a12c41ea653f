import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from "node:crypto"
import { Context, Effect, Layer, Option, Redacted, Schema } from "effect"

/** The error for a stored secret that cannot be decrypted. `reason` names the cause. */
export class UnreadableSecret extends Schema.TaggedError<UnreadableSecret>()("UnreadableSecret", {
  context: Schema.String,
  reason: Schema.Literals(["no_key", "other_key", "damaged"])
}) {
  override get message() {
    return `${this.context} ${explanations[this.reason]}`
  }
}

/** Each cause needs a different repair. If only the encryption key is missing, storing the secret again is wrong. */
const explanations = {
  no_key: "is sealed, but GATEWAY_ENCRYPTION_KEY is not set",
  other_key: "is sealed under neither GATEWAY_ENCRYPTION_KEY nor GATEWAY_PREVIOUS_ENCRYPTION_KEY",
  damaged: "cannot be opened: it was changed, or moved from another row"
} as const

type EncryptionKey = Option.Option<Redacted.Redacted<Uint8Array>>

/**
 * Encrypts upstream credentials with AES-256-GCM under `GATEWAY_ENCRYPTION_KEY`. `context` (such as
 * `provider_configs/<id>`) binds a credential to its row. Without a key, credentials are stored as plain text. They
 * stay readable after a key is set. `GATEWAY_PREVIOUS_ENCRYPTION_KEY` only decrypts.
 */
export class Vault extends Context.Service<
  Vault,
  {
    readonly seal: (secret: Redacted.Redacted, context: string) => string
    readonly open: (sealed: string, context: string) => Effect.Effect<Redacted.Redacted, UnreadableSecret>
    readonly isCurrent: (sealed: string) => boolean
    /** Derives a 32-byte key. Without an encryption key, only the secrecy of the salt protects the derived key. */
    readonly derive: (salt: Uint8Array, purpose: string) => Redacted.Redacted<Buffer>
  }
>()("svc/gateway/Vault") {
  static readonly layer = (key: EncryptionKey, previous: EncryptionKey = Option.none()): Layer.Layer<Vault> =>
    Layer.succeed(Vault, make(Option.map(key, sealingKeyOf), Option.map(previous, sealingKeyOf)))
}

const plaintextPrefix = "clear."
const sealedPrefix = "v1"

/** An encrypted value has the form `v1.<key ID>.<nonce>.<ciphertext and tag>`. */
interface SealingKey {
  readonly id: string
  readonly key: Redacted.Redacted<Uint8Array>
}

export const keyId = (key: Redacted.Redacted<Uint8Array>): string =>
  hash("sha256", Redacted.value(key), "hex").slice(0, 8)

const sealingKeyOf = (key: Redacted.Redacted<Uint8Array>): SealingKey => ({
  id: keyId(key),
  key
})

const make = (key: Option.Option<SealingKey>, previous: Option.Option<SealingKey>): Vault["Service"] => {
  const sealingKeys = [...Option.toArray(key), ...Option.toArray(previous)]
  const currentPrefix = Option.match(key, {
    onNone: () => plaintextPrefix,
    onSome: ({ id }) => `${sealedPrefix}.${id}.`
  })
  return {
    seal: (secret, context) =>
      Option.match(key, {
        onNone: () => plaintextPrefix + Redacted.value(secret),
        onSome: ({ key }) => currentPrefix + sealUnder(key, secret, context)
      }),
    open: (sealed, context) =>
      Effect.suspend(() => {
        if (sealed.startsWith(plaintextPrefix))
          return Effect.succeed(Redacted.make(sealed.slice(plaintextPrefix.length)))
        const unreadable = (reason: UnreadableSecret["reason"]) =>
          Effect.fail(new UnreadableSecret({ context, reason }))
        if (sealingKeys.length === 0) return unreadable("no_key")
        const [version, id, ...box] = sealed.split(".")
        if (version !== sealedPrefix) return unreadable("damaged")
        const sealingKey = sealingKeys.find((one) => one.id === id)
        if (sealingKey === undefined) return unreadable("other_key")
        return Option.match(openUnder(sealingKey.key, box.join("."), context), {
          onNone: () => unreadable("damaged"),
          onSome: Effect.succeed
        })
      }),
    isCurrent: (sealed) => sealed.startsWith(currentPrefix),
    derive: (salt, purpose) => {
      const material = Option.match(key, { onNone: () => new Uint8Array(0), onSome: ({ key }) => Redacted.value(key) })
      return Redacted.make(Buffer.from(hkdfSync("sha256", material, salt, purpose, 32)))
    }
  }
}

/** Returns `<nonce>.<ciphertext and tag>`, which opens under the same key and in the same context alone. */
export const sealUnder = (key: Redacted.Redacted<Uint8Array>, secret: Redacted.Redacted, context: string): string => {
  const nonce = randomBytes(12)
  const cipher = createCipheriv("aes-256-gcm", Redacted.value(key), nonce).setAAD(Buffer.from(context))
  const ciphertext = Buffer.concat([cipher.update(Redacted.value(secret), "utf8"), cipher.final(), cipher.getAuthTag()])
  return [nonce.toString("base64url"), ciphertext.toString("base64url")].join(".")
}

/** A shorter tag would be easier to forge. */
const tagLength = { authTagLength: 16 } as const

/** Returns `none` if the key or the context is another one, or if the text was changed. */
export const openUnder = (
  key: Redacted.Redacted<Uint8Array>,
  sealed: string,
  context: string
): Option.Option<Redacted.Redacted> => {
  const [nonce = "", encoded = ""] = sealed.split(".")
  const box = Buffer.from(encoded, "base64url")
  return Option.liftThrowable(() => {
    const decipher = createDecipheriv("aes-256-gcm", Redacted.value(key), Buffer.from(nonce, "base64url"), tagLength)
      .setAAD(Buffer.from(context))
      .setAuthTag(box.subarray(-16))
    return Redacted.make(decipher.update(box.subarray(0, -16), undefined, "utf8") + decipher.final("utf8"))
  })()
}
