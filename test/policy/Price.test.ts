import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { cost, highestPrice, type ModelPrice, type PricedTokens, toDollars, toNanos } from "../../src/policy/Price.ts"

describe("Price", () => {
  it.each<[what: string, tokens: Partial<PricedTokens>, nanos: number]>([
    ["a million of input", { input: 1_000_000 }, 2_500_000_000],
    ["a million of output", { output: 1_000_000 }, 10_000_000_000],
    ["cached input at its own price", { input: 1_000_000, cachedInput: 1_000_000 }, 1_250_000_000],
    ["cache-writing input at its own price", { input: 1_000_000, cacheWrite: 1_000_000 }, 3_125_000_000],
    [
      "a mixture",
      { input: 1000, cachedInput: 600, cacheWrite: 100, output: 10 },
      750_000 + 750_000 + 312_500 + 100_000
    ],
    ["one token", { input: 1 }, 2500],
    ["nothing", {}, 0]
  ])("%s", (_, tokens, nanos) => {
    assert.strictEqual(cost(price, { ...none, ...tokens }), nanos)
  })

  it("input from or into a cache costs what input costs, unless it has a price of its own", () => {
    const plain: ModelPrice = { ...price, cachedInput: null, cacheWrite: null }
    const tokens = { input: 1000, cachedInput: 400, cacheWrite: 300, output: 0 }
    assert.strictEqual(cost(plain, tokens), cost(plain, { ...none, input: 1000 }))
    assert.strictEqual(cost({ ...plain, cachedInput: 0 }, tokens), cost(plain, { ...none, input: 600 }))
  })

  it("a fraction of a nano-dollar is a whole one", () => {
    assert.strictEqual(cost({ input: 1, output: 0, cachedInput: null, cacheWrite: null }, { ...none, input: 1 }), 1)
  })

  it("never says more than a budget can hold, however many tokens are reported", () => {
    assert.strictEqual(cost(price, { ...none, input: 1e12, output: 1e12 }), 9_000_000_000_000_000)
  })

  it("is whole, grows with each kind of token, and adds up to within a nano-dollar", () => {
    fc.assert(
      fc.property(prices, usage, usage, (price, one, other) => {
        const sum = {
          input: one.input + other.input,
          output: one.output + other.output,
          cachedInput: one.cachedInput + other.cachedInput,
          cacheWrite: one.cacheWrite + other.cacheWrite
        }
        const [a, b, both] = [cost(price, one), cost(price, other), cost(price, sum)]
        assert.isTrue(Number.isSafeInteger(both) && both >= 0)
        assert.isAtLeast(both, Math.max(a, b))
        assert.isAtMost(both, a + b)
        assert.isAtLeast(both, a + b - 1)
      }),
      { numRuns: 300 }
    )
  })

  it("the dearest of several is never below any of them, and never above what their dearest parts make", () => {
    fc.assert(
      fc.property(fc.array(prices, { minLength: 1, maxLength: 4 }), usage, (several, tokens) => {
        const most = highestPrice(several)
        assert.exists(most)
        for (const one of several) assert.isAtLeast(cost(most, tokens), cost(one, tokens))
        assert.isTrue(several.some(({ output }) => output === most.output))
      }),
      { numRuns: 200 }
    )
    assert.isUndefined(highestPrice([]))
  })

  it("is exact in dollars to the nano-dollar, up to four millions", () => {
    fc.assert(
      fc.property(fc.nat(4_000_000), fc.nat(999_999_999), (dollars, nanos) => {
        const whole = dollars * 1_000_000_000 + nanos
        assert.strictEqual(toNanos(toDollars(whole)), whole)
      }),
      { numRuns: 300 }
    )
  })
})

const price: ModelPrice = {
  input: 2_500_000_000,
  output: 10_000_000_000,
  cachedInput: 1_250_000_000,
  cacheWrite: 3_125_000_000
}
const none: PricedTokens = { input: 0, output: 0, cachedInput: 0, cacheWrite: 0 }

const perMillion = fc.nat(100_000_000_000)
const prices: fc.Arbitrary<ModelPrice> = fc.record({
  input: perMillion,
  output: perMillion,
  cachedInput: fc.option(perMillion),
  cacheWrite: fc.option(perMillion)
})
const usage: fc.Arbitrary<PricedTokens> = fc
  .record({ plain: fc.nat(20_000), output: fc.nat(20_000), cachedInput: fc.nat(20_000), cacheWrite: fc.nat(20_000) })
  .map(({ plain, ...rest }) => ({ ...rest, input: plain + rest.cachedInput + rest.cacheWrite }))
