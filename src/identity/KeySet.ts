import { Option, Schema } from "effect"
import { type CompactVerifyGetKey, createLocalJWKSet, errors } from "jose"

export interface KeySet {
  readonly kids: ReadonlySet<string>
  /** Returns the key that fits the token's header. If several keys fit, it returns the first one. */
  readonly select: CompactVerifyGetKey
}

const members = {
  kid: Schema.String,
  alg: Schema.optionalKey(Schema.String),
  use: Schema.optionalKey(Schema.Literal("sig")),
  key_ops: Schema.optionalKey(Schema.Array(Schema.String))
}

/** Decoding drops all other members, including those of a private key. */
const PublicKey = Schema.Union([
  Schema.Struct({ ...members, kty: Schema.Literal("RSA"), n: Schema.String, e: Schema.String }),
  Schema.Struct({ ...members, kty: Schema.Literal("EC"), crv: Schema.String, x: Schema.String, y: Schema.String })
])
const decodeKey = Schema.decodeUnknownOption(PublicKey)

/** A key set may contain keys of other types or for other uses, which are skipped. */
const Document = Schema.fromJsonString(
  Schema.Struct({ keys: Schema.Array(Schema.Unknown).check(Schema.isMaxLength(100)) })
)
const decodeDocument = Schema.decodeUnknownOption(Document)

export const parse = (text: string): Option.Option<KeySet> =>
  Option.map(decodeDocument(text), (document) => {
    const keys = document.keys
      .flatMap((key) => Option.toArray(decodeKey(key)))
      .filter(({ key_ops }) => key_ops?.includes("verify") !== false)
      // WebCrypto does not import a public key whose operations also include "sign".
      .map(({ key_ops: _, ...key }) => key)
    const select = createLocalJWKSet({ keys })
    return { kids: new Set(keys.map(({ kid }) => kid)), select: (header) => select(header).catch(firstMatch) }
  })

const firstMatch = async (error: unknown) => {
  if (error instanceof errors.JWKSMultipleMatchingKeys) for await (const key of error) return key
  throw error
}
