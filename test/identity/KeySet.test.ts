import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Option } from "effect"
import { compactVerify, exportJWK, type JWK } from "jose"
import * as KeySet from "../../src/identity/KeySet.ts"
import * as Issuer from "../gateway/Issuer.ts"

const parse = (keys: ReadonlyArray<unknown>) => Option.getOrThrow(KeySet.parse(JSON.stringify({ keys })))

const verifies = (keys: ReadonlyArray<unknown>, signer: Issuer.SigningKey) =>
  Effect.gen(function* () {
    const token = yield* Issuer.sign(signer, {})
    const verified = Effect.tryPromise(() => compactVerify(token, parse(keys).select, { algorithms: [signer.alg] }))
    return Exit.isSuccess(yield* Effect.exit(verified))
  })

const without = ({ alg: _, use: __, ...jwk }: JWK): JWK => jwk

describe("KeySet", () => {
  it.effect("skips what is no signing key, and knows no id of it", () =>
    Effect.gen(function* () {
      const signer = yield* Issuer.signingKey("k")
      const { jwk } = signer
      const others = [
        null,
        "key",
        { kid: "no-type" },
        { ...jwk, kid: 1 },
        { ...jwk, kid: "encrypts", use: "enc" },
        { ...jwk, kid: "no-modulus", n: undefined },
        { kid: "symmetric", kty: "oct", k: "c2VjcmV0" },
        { kid: "edwards", kty: "OKP", crv: "Ed25519", x: "AAAA" }
      ]
      assert.deepStrictEqual([...parse([...others, jwk]).kids], ["k"])
      assert.isTrue(yield* verifies([...others, jwk], signer))
    })
  )

  it.effect("verifies with a key that states no more than it must, or more than it should", () =>
    Effect.gen(function* () {
      const signer = yield* Issuer.signingKey("k")
      const { jwk, secret } = signer
      const whole = yield* Effect.promise(() => exportJWK(secret))
      for (const key of [
        without(jwk),
        { ...jwk, key_ops: ["verify"] },
        { ...jwk, key_ops: ["sign", "verify", "wrapKey"] },
        { ...jwk, ext: "yes", crv: null, x5c: 1 },
        { ...whole, kid: "k" }
      ]) {
        assert.isTrue(yield* verifies([key], signer), JSON.stringify(key))
      }
      for (const key of [
        { ...jwk, alg: "RS512" },
        { ...jwk, key_ops: ["sign"] },
        { ...jwk, key_ops: [] },
        { ...jwk, n: "?" }
      ]) {
        assert.isFalse(yield* verifies([key], signer), JSON.stringify(key))
      }
    })
  )

  it.effect("takes, of keys with one id, the first that fits the algorithm", () =>
    Effect.gen(function* () {
      const signer = yield* Issuer.signingKey("k")
      const stranger = yield* Issuer.signingKey("k")
      const elliptic = yield* Issuer.signingKey("k", "ES256")
      const otherCurve = yield* Issuer.signingKey("k", "ES384")
      const mixed = [otherCurve, elliptic, signer].map(({ jwk }) => without(jwk))
      for (const key of [signer, elliptic, otherCurve]) assert.isTrue(yield* verifies(mixed, key), key.alg)
      assert.isTrue(yield* verifies([{ ...signer.jwk, use: "enc" }, signer.jwk, without(signer.jwk)], signer))
      assert.isTrue(yield* verifies([signer.jwk, stranger.jwk], signer))
      assert.isFalse(yield* verifies([stranger.jwk, signer.jwk], signer))
    })
  )

  it("is bounded, and is no set without a list of keys", () => {
    const many = (count: number) => JSON.stringify({ keys: Array.from({ length: count }, () => ({})) })
    assert.isTrue(Option.isSome(KeySet.parse(many(100))))
    for (const text of [many(101), "", "[]", "{}", '{"keys":{}}', "<html>"]) {
      assert.isTrue(Option.isNone(KeySet.parse(text)), text)
    }
  })
})
