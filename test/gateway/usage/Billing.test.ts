import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as Billing from "../../../src/gateway/usage/Billing.ts"
import type { ReportedUsage, TokenUsage } from "../../../src/gateway/usage/TokenUsage.ts"
import type { ObservedUsage } from "../../../src/gateway/usage/UsageTap.ts"
import * as Estimate from "../../../src/policy/Estimate.ts"
import * as Facts from "../../../src/policy/facts/Facts.ts"
import { type KeyPolicy, neutral } from "../../../src/policy/KeyPolicy.ts"
import { limited } from "../../../src/policy/Limit.ts"
import { cost, type ModelPrice } from "../../../src/policy/Price.ts"

describe("Estimate reserves", () => {
  it.each<[what: string, facts: Partial<Facts.Facts>, perResponse: number, tokens: number]>([
    ["input and the output that is asked for", {}, 0, 150],
    ["as much as is supposed for an answer that is left open", open(1), 4096, 100 + 4096],
    ["as much for each answer", open(3), 20, 100 + 60],
    ["what some requests of a batch bound, and the others leave open", { ...open(2), boundedOutput: 7 }, 10, 127],
    [
      "a bound that the route does not know, where it is more than is supposed",
      { ...open(1), largestOutput: 900, totalOutput: 900 },
      5,
      1000
    ],
    ["no output where a route has none", { boundedOutput: 0, largestOutput: 50, totalOutput: 50 }, 0, 100]
  ])("%s, at the model's price", (_, more, each, tokens) => {
    const reserved = Estimate.estimateUsage("answer", { ...facts, ...more }, price, {
      perResponse: each,
      isSentUpstream: true
    })
    assert.deepInclude(reserved, { tokens, nanos: 100 * 1000 + (tokens - 100) * 2000, nanosEstimated: false })
    assert.deepInclude(reserved, { output: tokens - 100, maxOutput: tokens - 100 })
  })

  it("as certain the input, what is bounded, and one token for each answer that is left open", () => {
    const reserved = Estimate.estimateUsage("answer", { ...facts, ...open(3) }, price, {
      perResponse: 20,
      isSentUpstream: false
    })
    assert.deepInclude(reserved, { inputTokens: 103, tokens: 160, maxOutput: 3 * 128_000 })
  })

  it("one cent for each request whose price nobody knows, and says that it is a guess", () => {
    const unknown = Estimate.estimateUsage("estimate", { ...facts, requests: 3 }, undefined, nothingOpen)
    assert.deepInclude(unknown, { inputTokens: 150, tokens: 150, nanos: 30_000_000, nanosEstimated: true })
  })

  it("nothing for what costs nothing", () => {
    const nothing = { inputTokens: 0, tokens: 0, nanos: 0, nanosEstimated: false, output: 0, maxOutput: 0 }
    assert.deepStrictEqual(Estimate.estimateUsage("free", facts, price, nothingOpen), nothing)
    assert.deepStrictEqual(Estimate.estimateUsage("free", facts, undefined, nothingOpen), nothing)
  })
})

const free: ModelPrice = { input: 0, output: 0, cachedInput: null, cacheWrite: null }

describe("Estimate supposes for an answer that is left open", () => {
  const suppose = (
    more: Partial<Facts.Facts>,
    policy: Partial<KeyPolicy>,
    limits: ReadonlyArray<Estimate.Ceiling> = [],
    at: ModelPrice | null = price
  ) => Estimate.outputPerOpenChoice({ ...facts, ...more }, at ?? undefined, { ...neutral, ...policy }, limits)

  it.each<[what: string, supposed: number, expected: number]>([
    ["nothing where none is", suppose({}, {}), 0],
    ["4096 tokens", suppose(open(1), {}), 4096],
    ["4096 tokens for each", suppose(open(3), {}), 4096],
    ["the policy's bound", suppose(open(1), { max_output_tokens_per_request: limited(50_000) }), 50_000],
    ["its part of the policy's bound", suppose(open(3), { max_output_tokens_per_request: limited(40) }), 13],
    ["what fits a limit of tokens beside the input", suppose(open(1), {}, [{ unit: "tokens", limit: 1000 }]), 900],
    ["its part of it", suppose({ ...open(2), boundedOutput: 100 }, {}, [{ unit: "tokens", limit: 1000 }]), 400],
    [
      "what fits the least of several",
      suppose(open(1), {}, [
        { unit: "tokens", limit: 1000 },
        { unit: "nanos", limit: 300_000 }
      ]),
      100
    ],
    ["what fits the cost of one request", suppose(open(1), { max_cost_per_request: limited(0.001) }), 450],
    [
      "no less for a budget that nobody can count against",
      suppose(open(1), {}, [{ unit: "nanos", limit: 1 }], null),
      4096
    ],
    ["no less for a limit of requests", suppose(open(1), {}, [{ unit: "requests", limit: 1 }]), 4096],
    ["one token where nothing fits", suppose(open(1), {}, [{ unit: "tokens", limit: 10 }]), 1],
    [
      "no less for a model that costs nothing, where no money is left",
      suppose(open(1), { max_cost_per_request: limited(0) }, [{ unit: "nanos", limit: 0 }], free),
      4096
    ]
  ])("%s", (_, supposed, expected) => {
    assert.strictEqual(supposed, expected)
  })

  it("never more than a budget holds, and nearly all of it", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10 ** 12 }),
        fc.nat(10 ** 12),
        fc.nat(10 ** 6),
        (perMillion, limit, input) => {
          const at = { ...price, input: perMillion, output: perMillion }
          const room = Estimate.outputTokensThatFit({ ...facts, inputTokens: input }, at, { unit: "nanos", limit })
          const costs = (output: number) => cost(at, { input, output, cachedInput: 0, cacheWrite: 0 })
          if (room < 0) return assert.isAbove(costs(0), limit)
          assert.isAtMost(costs(room), limit)
          assert.isAtLeast(costs(room + 2 * Math.ceil(2_000_000 / perMillion)), limit)
        }
      )
    )
  })
})

describe("Billing settles", () => {
  const reserved = Estimate.estimateUsage("answer", facts, price, nothingOpen)
  const settle = (
    outcome: Billing.ExchangeOutcome,
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

  it.each<[what: string, seen: Partial<ObservedUsage>, more: Partial<Facts.Facts>, usage: TokenUsage]>([
    [
      "the reservation, when the answer shows nothing",
      { estimatedOutput: undefined },
      {},
      { input: 100, output: 50, total: 150 }
    ],
    ["no more than was allowed", { estimatedOutput: 9000 }, {}, { input: 100, output: 50, total: 150 }],
    [
      "no more than 128,000 tokens, when nothing was",
      { estimatedOutput: 1e9 },
      open(1),
      { input: 100, output: 128_000, total: 128_100 }
    ],
    [
      "a guess, when only the input is reported",
      { estimatedOutput: 7, reported: { usage: { input: 9, total: 9 } } },
      {},
      { input: 9, output: 7, total: 16 }
    ]
  ])("%s", (_, seen, more, usage) => {
    const asked = { ...facts, ...more }
    const held = Estimate.estimateUsage("answer", asked, price, { perResponse: 20, isSentUpstream: false })
    const outcome: Billing.ExchangeOutcome = {
      _tag: "Answered",
      observed: { reported: undefined, estimatedOutput: 0, ...seen },
      isComplete: true
    }
    assert.deepInclude(Billing.bill("answer", asked, price, held, outcome), { usageSource: "estimated", usage })
  })

  it("no output where a route has none, however long its answer is", () => {
    const embeddings = { ...facts, boundedOutput: 0 }
    const held = Estimate.estimateUsage("answer", embeddings, price, nothingOpen)
    const long = answered(undefined, { guessedOutput: 300_000 })
    assert.deepInclude(Billing.bill("answer", embeddings, price, held, long).usage, {
      input: 100,
      output: 0,
      total: 100
    })
    const reported = answered({ usage: { input: 9, total: 9 } })
    assert.deepInclude(Billing.bill("answer", embeddings, price, held, reported), {
      usageSource: "reported",
      costNanos: 9000
    })
  })

  it("a cost of zero as zero, where no operator's price says otherwise", () => {
    const free = answered({ usage: { input: 80, output: 20 }, costUsd: 0 })
    assert.deepInclude(Billing.bill("answer", facts, undefined, reserved, free), {
      costNanos: 0,
      costSource: "upstream_passthrough"
    })
    assert.deepInclude(settle(free), { costNanos: 120_000, costSource: "price_table" })
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
    assert.deepStrictEqual(settle({ _tag: "Nothing" }), Billing.unbilled)
    assert.deepStrictEqual(settle(answered({ usage: { input: 9 } }), price, "free"), Billing.unbilled)
    assert.deepStrictEqual(Billing.unbilled, {
      usageSource: "status_only",
      usage: {},
      costNanos: null,
      costSource: "none",
      settled: { tokens: 0, nanos: 0 }
    })
  })

  it("in direct mode the reservation, for tokens and for money: nobody reads the answer", () => {
    const bill = settle(answered({ usage: { input: 9, output: 9 }, costUsd: 1 }), price, "status")
    const { nanos, tokens } = reserved
    assert.deepInclude(bill, { usageSource: "status_only", usage: {}, costNanos: nanos, costSource: "estimate" })
    assert.deepInclude(bill.settled, { tokens, nanos })
    assert.deepStrictEqual(settle({ _tag: "Nothing" }, price, "status"), Billing.unbilled)
  })

  it("a message batch by its reservation: it is answered before it is run", () => {
    const bill = settle(answered(undefined), price, "estimate")
    assert.deepInclude(bill, { usageSource: "estimated", costNanos: reserved.nanos, costSource: "price_table" })
    assert.deepStrictEqual(bill.usage, { input: 100, total: 150 })
    assert.deepStrictEqual([bill.settled.tokens, bill.settled.nanos], [reserved.tokens, reserved.nanos])
  })
})

const facts: Facts.Facts = { ...Facts.noFacts, models: ["large"], inputTokens: 100, boundedOutput: 50 }

const open = (count: number) => ({ boundedOutput: 0, openChoices: count, choices: count })
const nothingOpen = { perResponse: 0, isSentUpstream: false }

/** A thousand nano-dollars for a token of input, two thousand for one of output. */
const price: ModelPrice = { input: 1_000_000_000, output: 2_000_000_000, cachedInput: null, cacheWrite: null }

const answered = (
  reported: ReportedUsage | undefined,
  { guessedOutput = 0, whole = true } = {}
): Billing.ExchangeOutcome => ({
  _tag: "Answered",
  observed: { reported, estimatedOutput: guessedOutput },
  isComplete: whole
})
