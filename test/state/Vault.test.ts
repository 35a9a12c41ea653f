import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer, Logger, Option, Redacted } from "effect"
import fc from "fast-check"
import * as SealedCredential from "../../src/state/SealedCredential.ts"
import { Vault } from "../../src/state/Vault.ts"

const keyOf = (fill: number) => Vault.layer(Option.some(Redacted.make<Uint8Array>(Buffer.alloc(32, fill))))
const withKey = keyOf(1)
const withOtherKey = keyOf(2)
const withoutKey = Vault.layer(Option.none())

const row = "provider_configs/1"
const secret = Redacted.make("sk-canary")

const seal = (layer: Layer.Layer<Vault>) =>
  Effect.provide(
    Effect.map(Vault, ({ seal }) => seal(secret, row)),
    layer
  )
const open = (sealed: string, layer: Layer.Layer<Vault>, context = row) =>
  Effect.provide(
    Effect.flatMap(Vault, ({ open }) => open(sealed, context)),
    layer
  )

describe("Vault", () => {
  it.effect("what it seals it opens, and shows nothing of it meanwhile", () =>
    Effect.gen(function* () {
      const sealed = yield* seal(withKey)
      assert.notInclude(sealed, "canary")
      assert.strictEqual(Redacted.value(yield* open(sealed, withKey)), "sk-canary")
      assert.notStrictEqual(yield* seal(withKey), sealed)
    })
  )

  it.effect("a sealed secret opens under its key and in its row alone", () =>
    Effect.gen(function* () {
      const sealed = yield* seal(withKey)
      assert.strictEqual((yield* Effect.flip(open(sealed, withOtherKey))).reason, "other_key")
      assert.strictEqual((yield* Effect.flip(open(sealed, withoutKey))).reason, "no_key")
      assert.strictEqual((yield* Effect.flip(open(sealed, withKey, "provider_configs/2"))).reason, "damaged")
    })
  )

  it.effect("with the key before, it opens what that sealed, and seals under its own", () =>
    Effect.gen(function* () {
      const keys = [1, 2].map((fill) => Option.some(Redacted.make<Uint8Array>(Buffer.alloc(32, fill))))
      const withBoth = Vault.layer(keys[1] ?? Option.none(), keys[0])
      assert.strictEqual(Redacted.value(yield* open(yield* seal(withKey), withBoth)), "sk-canary")
      const sealed = yield* seal(withBoth)
      assert.strictEqual(Redacted.value(yield* open(sealed, withOtherKey)), "sk-canary")
      assert.strictEqual((yield* Effect.flip(open(sealed, withKey))).reason, "other_key")
      const current = Effect.map(Vault, ({ isCurrent }) => isCurrent)
      const isCurrent = yield* Effect.provide(current, withBoth)
      assert.deepStrictEqual([sealed, yield* seal(withKey), yield* seal(withoutKey)].map(isCurrent), [
        true,
        false,
        false
      ])
    })
  )

  it.effect("what was stored without a key stays readable when there is one", () =>
    Effect.gen(function* () {
      const clear = yield* seal(withoutKey)
      assert.strictEqual(Redacted.value(yield* open(clear, withKey)), "sk-canary")
    })
  )

  it.effect("a sealed secret with one byte changed does not open", () =>
    Effect.gen(function* () {
      const sealed = yield* seal(withKey)
      const promise = Effect.runPromiseWith(yield* Effect.context<never>())
      const [, , nonce = "", box = ""] = sealed.split(".")
      const bytes = Buffer.from(box, "base64url")
      const changed = fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, by) => {
        const other = Buffer.from(bytes)
        other[at] = (other[at] ?? 0) ^ by
        const text = [...sealed.split(".").slice(0, 2), nonce, other.toString("base64url")].join(".")
        assert.strictEqual((await promise(Effect.flip(open(text, withKey)))).reason, "damaged")
      })
      yield* Effect.promise(() => fc.assert(changed))
    })
  )
})

describe("StoredCredential", () => {
  it.effect("one that cannot be opened is logged with its row and what to look at", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))])
      const sealed = yield* seal(withKey)
      yield* Effect.provide(SealedCredential.open(sealed, row), [withoutKey, logger])
      yield* Effect.provide(SealedCredential.open(sealed, row), [withOtherKey, logger])
      assert.lengthOf(lines, 2)
      assert.include(lines[0], `${row} is sealed, but GATEWAY_ENCRYPTION_KEY is not set`)
      assert.include(lines[1], `${row} is sealed under neither`)
    })
  )

  it.effect("a row without one has none, a row with one that cannot be opened has an unreadable one", () =>
    Effect.gen(function* () {
      const sealed = yield* seal(withKey)
      const tagOf = (value: string | null, layer: Layer.Layer<Vault>) =>
        Effect.map(Effect.provide(SealedCredential.open(value, row), layer), ({ _tag }) => _tag)
      assert.deepStrictEqual(
        [yield* tagOf(null, withKey), yield* tagOf(sealed, withKey), yield* tagOf(sealed, withOtherKey)],
        ["Missing", "Present", "Unreadable"]
      )
    })
  )
})
