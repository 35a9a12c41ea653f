import { createCipheriv, createDecipheriv, hash, randomBytes } from "node:crypto"
import { Context, Effect, Layer, Option, Redacted, Schema } from "effect"

/** A sealed secret that cannot be read: sealed under another key, bound to another row, or changed. */
export class UnreadableSecret extends Schema.TaggedError<UnreadableSecret>()("UnreadableSecret", {
  context: Schema.String,
  reason: Schema.Literals(["no_key", "other_key", "damaged"])
}) {}

/**
 * Upstream credentials at rest. With `GATEWAY_ENCRYPTION_KEY` they are sealed by AES-256-GCM, bound to the row that
 * holds them (`context`, such as `provider_configs/<id>`) so that a sealed value moved to another row cannot be
 * opened. Without a key they are stored as they are, and what was stored so stays readable when a key is set later.
 */
export class Vault extends Context.Service<
  Vault,
  {
    readonly seal: (secret: Redacted.Redacted, context: string) => string
    readonly open: (sealed: string, context: string) => Effect.Effect<Redacted.Redacted, UnreadableSecret>
  }
>()("svc/gateway/Vault") {
  static readonly layer = (key: Option.Option<Redacted.Redacted<Uint8Array>>): Layer.Layer<Vault> =>
    Layer.succeed(Vault, Option.isSome(key) ? sealing(Redacted.value(key.value)) : clear)
}

const clearPrefix = "clear."
const sealedPrefix = "v1"

const clear: Vault["Service"] = {
  seal: (secret) => clearPrefix + Redacted.value(secret),
  open: (sealed, context) =>
    sealed.startsWith(clearPrefix)
      ? Effect.succeed(Redacted.make(sealed.slice(clearPrefix.length)))
      : Effect.fail(new UnreadableSecret({ context, reason: "no_key" }))
}

/** Form: `v1.<key id>.<nonce>.<ciphertext and tag>`; the key id says which key sealed it, and nothing about the key. */
const sealing = (key: Uint8Array): Vault["Service"] => {
  const keyId = hash("sha256", key, "hex").slice(0, 8)
  return {
    seal: (secret, context) => {
      const nonce = randomBytes(12)
      const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(context))
      const box = Buffer.concat([cipher.update(Redacted.value(secret), "utf8"), cipher.final(), cipher.getAuthTag()])
      return [sealedPrefix, keyId, nonce.toString("base64url"), box.toString("base64url")].join(".")
    },
    open: (sealed, context) =>
      Effect.suspend(() => {
        if (sealed.startsWith(clearPrefix)) return clear.open(sealed, context)
        const [version, id, nonce = "", box = ""] = sealed.split(".")
        if (version === sealedPrefix && id !== keyId) {
          return Effect.fail(new UnreadableSecret({ context, reason: "other_key" }))
        }
        return Effect.try({
          try: () => {
            const bytes = Buffer.from(box, "base64url")
            const decipher = createDecipheriv("aes-256-gcm", key, Buffer.from(nonce, "base64url"))
              .setAAD(Buffer.from(context))
              .setAuthTag(bytes.subarray(-16))
            return Redacted.make(decipher.update(bytes.subarray(0, -16), undefined, "utf8") + decipher.final("utf8"))
          },
          catch: () => new UnreadableSecret({ context, reason: "damaged" })
        })
      })
  }
}
