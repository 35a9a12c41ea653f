import { Option, Schema } from "effect"
import { type CryptoKey, importJWK } from "jose"
import type { Algorithm } from "../../policy/AuthSettings.ts"

const use = {
  kid: Schema.String,
  alg: Schema.optionalKey(Schema.String),
  use: Schema.optionalKey(Schema.Literal("sig")),
  key_ops: Schema.optionalKey(Schema.Array(Schema.String))
}

const PublicKey = Schema.Union([
  Schema.Struct({ ...use, kty: Schema.Literal("RSA"), n: Schema.String, e: Schema.String }),
  Schema.Struct({
    ...use,
    kty: Schema.Literal("EC"),
    crv: Schema.Literals(["P-256", "P-384", "P-521"]),
    x: Schema.String,
    y: Schema.String
  })
])
type PublicKey = typeof PublicKey.Type

/** A set may contain keys of other types and uses, which are skipped. */
const Document = Schema.fromJsonString(
  Schema.Struct({ keys: Schema.Array(Schema.Unknown).check(Schema.isMaxLength(100)) })
)
const decodeDocument = Schema.decodeUnknownOption(Document)
const decodeKey = Schema.decodeUnknownOption(PublicKey)

export interface KeySet {
  readonly has: (kid: string) => boolean
  /** Returns the imported key; `undefined` when no key has this id and fits the algorithm. */
  readonly find: (kid: string, alg: Algorithm) => Promise<CryptoKey> | undefined
}

const curveOf: Partial<Record<Algorithm, string>> = { ES256: "P-256", ES384: "P-384", ES512: "P-521" }

const canVerify = (key: PublicKey, alg: Algorithm): boolean =>
  (key.alg === undefined || key.alg === alg) &&
  (key.key_ops === undefined || key.key_ops.includes("verify")) &&
  (key.kty === "RSA" ? alg.startsWith("RS") : key.crv === curveOf[alg])

export const parse = (text: string): KeySet | undefined => {
  const document = decodeDocument(text)
  if (Option.isNone(document)) return undefined
  const keys = document.value.keys.flatMap((key) => Option.toArray(decodeKey(key)))
  const kids = new Set(keys.map(({ kid }) => kid))
  const imported = new Map<string, Promise<CryptoKey>>()
  return {
    has: (kid) => kids.has(kid),
    find: (kid, alg) => {
      const known = imported.get(`${alg} ${kid}`)
      if (known !== undefined) return known
      const key = keys.find((key) => key.kid === kid && canVerify(key, alg))
      if (key === undefined) return undefined
      const { key_ops: _, ...jwk } = key
      const ready = importJWK(jwk, alg)
      imported.set(`${alg} ${kid}`, ready)
      return ready
    }
  }
}
