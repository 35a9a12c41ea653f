import { assert, describe, it } from "@effect/vitest"
import * as Billing from "../../src/gateway/Billing.ts"
import * as Estimate from "../../src/gateway/model/Estimate.ts"
import * as Facts from "../../src/gateway/model/Facts.ts"
import type { ModelPrice } from "../../src/gateway/model/Price.ts"
import type { Reported, TokenUsage } from "../../src/gateway/TokenUsage.ts"

describe("Billing reserves", () => {
  it.each<[what: string, facts: Partial<Facts.Facts>, tokens: number, nanos: number]>([
    ["input and the output that is asked for", {}, 150, 100 * 1000 + 50 * 2000],
    [
      "1024 tokens of output where none is asked for, in money only",
      { maxOutputTokens: undefined },
      100,
      100 * 1000 + 1024 * 2000
    ],
    [
      "as much for each request of a batch",
      { maxOutputTokens: undefined, requests: 3 },
      100,
      100 * 1000 + 3 * 1024 * 2000
    ]
  ])("%s, at the model's price", (_, more, tokens, nanos) => {
    assert.deepStrictEqual(Estimate.wanted("answer", { ...facts, ...more }, price), {
      inputTokens: 100,
      tokens,
      nanos,
      nanosGuessed: false
    })
  })

  it("one cent for each request whose price nobody knows, and says that it is a guess", () => {
    const unknown = Estimate.wanted("estimate", { ...facts, requests: 3 }, undefined)
    assert.deepStrictEqual(unknown, { inputTokens: 100, tokens: 150, nanos: 30_000_000, nanosGuessed: true })
  })

  it("nothing for what costs nothing", () => {
    const nothing = { inputTokens: 0, tokens: 0, nanos: 0, nanosGuessed: false }
    assert.deepStrictEqual(Estimate.wanted("free", facts, price), nothing)
    assert.deepStrictEqual(Estimate.wanted("free", facts, undefined), nothing)
  })
})

describe("Billing settles", () => {
  const reserved = Estimate.wanted("answer", facts, price)
  const settle = (
    outcome: Billing.Outcome,
    at: ModelPrice | undefined = price,
    accounting: Estimate.Accounting = "answer"
  ) => Billing.bill(accounting, facts, at, reserved, outcome)

  it("what the upstream reports, at the model's price", () => {
    const usage = { input: 80, output: 20, total: 100, cachedInput: 30, reasoning: 5 }
    assert.deepStrictEqual(settle(answered({ usage })), {
      usageSource: "reported",
      usage,
      costNanos: 80 * 1000 + 20 * 2000,
      costSource: "price_table",
      settled: { tokens: 100, nanos: 120_000 }
    })
  })

  it("the upstream's own cost before any price", () => {
    const bill = settle(answered({ usage: { input: 80, output: 20 }, costUsd: 0.5 }))
    assert.deepInclude(bill, { costNanos: 500_000_000, costSource: "upstream_passthrough" })
    assert.deepStrictEqual(bill.settled, { tokens: 100, nanos: 500_000_000 })
  })

  it("one cent where neither upstream nor operator know a price", () => {
    const bill = Billing.bill("answer", facts, undefined, reserved, answered({ usage: { input: 80, output: 20 } }))
    assert.deepInclude(bill, { costNanos: 10_000_000, costSource: "route_default", usageSource: "reported" })
  })

  it("a report of zero as zero", () => {
    const bill = settle(answered({ usage: { input: 0, output: 0, total: 0 } }))
    assert.deepInclude(bill, { usageSource: "reported", costNanos: 0 })
    assert.deepStrictEqual(bill.settled, { tokens: 0, nanos: 0 })
  })

  it("an estimate when a whole answer reports nothing", () => {
    const bill = settle(answered(undefined, { guessedOutput: 40 }))
    assert.deepStrictEqual(bill.usage, { input: 100, output: 40, total: 140 })
    assert.deepInclude(bill, { usageSource: "estimated", costNanos: 100 * 1000 + 40 * 2000 })
  })

  describe("an answer that was cut", () => {
    it.each<[what: string, usage: TokenUsage | undefined, guessed: number, input: number, output: number]>([
      ["what it had reported, and what has passed since", { input: 70, output: 1 }, 12, 70, 12],
      ["what it had reported when that is more", { input: 70, output: 30 }, 12, 70, 30],
      ["an estimate where it had reported nothing", undefined, 12, 100, 12]
    ])("%s", (_, usage, guessedOutput, input, output) => {
      const bill = settle(answered(usage && { usage }, { guessedOutput, whole: false }))
      assert.deepInclude(bill, { usageSource: "estimated", costNanos: input * 1000 + output * 2000 })
      assert.deepStrictEqual(bill.usage, { input, output, total: input + output })
    })
  })

  it("the input, when the client left before an answer began", () => {
    const bill = settle({ _tag: "Abandoned" })
    assert.deepInclude(bill, { usageSource: "estimated", costNanos: 100_000 })
    assert.deepStrictEqual(bill.usage, { input: 100, output: 0, total: 100 })
  })

  it("nothing for what was refused or failed, and for what is free", () => {
    assert.deepStrictEqual(settle({ _tag: "Nothing" }), Billing.nothing)
    assert.deepStrictEqual(settle(answered({ usage: { input: 9 } }), price, "free"), Billing.nothing)
    assert.deepStrictEqual(Billing.nothing, {
      usageSource: "status_only",
      usage: {},
      costNanos: null,
      costSource: "none",
      settled: { tokens: 0, nanos: 0 }
    })
  })

  it("in direct mode the status alone: estimated tokens stand on the meters, the money is given back", () => {
    const bill = settle(answered({ usage: { input: 9, output: 9 }, costUsd: 1 }), price, "status")
    assert.deepStrictEqual(bill, { ...Billing.nothing, settled: { tokens: reserved.tokens, nanos: 0 } })
  })

  it("a message batch by its reservation: it is answered before it is run", () => {
    const bill = settle(answered(undefined), price, "estimate")
    assert.deepInclude(bill, { usageSource: "estimated", costNanos: reserved.nanos, costSource: "price_table" })
    assert.deepStrictEqual(bill.usage, { input: 100, total: 150 })
    assert.deepStrictEqual([bill.settled.tokens, bill.settled.nanos], [reserved.tokens, reserved.nanos])
  })
})

const facts: Facts.Facts = { ...Facts.none, models: ["large"], inputTokens: 100, maxOutputTokens: 50 }

/** A thousand nano-dollars for a token of input, two thousand for one of output. */
const price: ModelPrice = { input: 1_000_000_000, output: 2_000_000_000, cachedInput: null, cacheWrite: null }

const answered = (reported: Reported | undefined, { guessedOutput = 0, whole = true } = {}): Billing.Outcome => ({
  _tag: "Answered",
  seen: { reported, guessedOutput },
  whole
})
