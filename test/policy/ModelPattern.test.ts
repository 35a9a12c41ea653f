import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import fc from "fast-check"
import { allow } from "../../src/policy/AllowList.ts"
import { KeyPolicyInput, KeyPolicyPatch } from "../../src/policy/KeyPolicy.ts"
import { allowsModel, intersection } from "../../src/policy/ModelPattern.ts"
import type { ModelPrice } from "../../src/policy/Price.ts"
import { PriceList } from "../../src/policy/PriceList.ts"

const price = (input: number): ModelPrice => ({ input, output: input, cachedInput: null, cacheWrite: null })
const name = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 4 })
const pattern = fc.tuple(name, fc.constantFrom("", "*")).map(([name, star]) => name + star)
const list = fc.array(pattern, { maxLength: 6 }).map(allow)

describe("model patterns", () => {
  it("a star at the end stands for any further characters, and for none", () => {
    const models = ["gpt-5", "gpt-5-mini", "gpt-4", "GPT-5", ""]
    const allowed = (values: ReadonlyArray<string>) => models.filter((model) => allowsModel(allow(values), model))
    assert.deepStrictEqual(allowed(["gpt-5*"]), ["gpt-5", "gpt-5-mini"])
    assert.deepStrictEqual(allowed(["gpt-5"]), ["gpt-5"])
    assert.deepStrictEqual(allowed(["gpt-4", "gpt-5-*"]), ["gpt-5-mini", "gpt-4"])
    assert.deepStrictEqual(allowed(["*"]), models)
    assert.deepStrictEqual(allowed([]), [])
  })

  it("what two lists share is what each of them allows", () => {
    fc.assert(
      fc.property(list, list, name, (a, b, model) => {
        const both = allowsModel(a, model) && allowsModel(b, model)
        assert.strictEqual(allowsModel(intersection(a, b), model), both)
        assert.strictEqual(allowsModel(intersection(b, a), model), both)
      })
    )
  })

  it("the longest pattern that matches gives the price, and the model's own name goes before all", () => {
    const prices = new PriceList([
      ["*", price(1)],
      ["claude-*", price(2)],
      ["claude-opus-*", price(3)],
      ["claude-opus-4", price(4)]
    ])
    const inputOf = (model: string) => prices.priceOf(model)?.input
    assert.deepStrictEqual(
      ["gpt-5", "claude-haiku", "claude-opus-4-8", "claude-opus-4", "claude-opus-"].map(inputOf),
      [1, 2, 3, 4, 3]
    )
    assert.strictEqual(new PriceList([["claude-*", price(2)]]).priceOf("gpt-5"), undefined)
  })

  it("a price list finds what a search through all of it finds", () => {
    fc.assert(
      fc.property(fc.uniqueArray(pattern, { maxLength: 8 }), name, (patterns, model) => {
        const found = patterns
          .filter((one) => allowsModel(allow([one]), model))
          .sort((a, b) => Number(b === model) - Number(a === model) || b.length - a.length)[0]
        const prices = new PriceList(patterns.map((one, index) => [one, price(index)]))
        assert.strictEqual(prices.priceOf(model)?.input, found === undefined ? undefined : patterns.indexOf(found))
      })
    )
  })

  it.effect.each(["gpt-*-mini", "**", "*gpt"])(
    "an operator cannot write %s, and a row that has it is still read",
    (model) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Schema.decodeUnknownEffect(KeyPolicyInput)({ allowed_models: [model] }))
        assert.include(error.message, 'one "*" at its end')
        yield* Schema.decodeUnknownEffect(KeyPolicyPatch)({ allowed_models: [model] })
      })
  )
})
