import { assert, describe, it } from "@effect/vitest"
import * as TokenUsage from "../../../src/gateway/usage/TokenUsage.ts"
import type { Family } from "../../../src/policy/routes/CanonicalRoute.ts"

describe("TokenUsage", () => {
  describe("brings what providers report to one meaning", () => {
    it.each(fixtures())("%s", (_, family, answer, expected) => {
      assert.deepStrictEqual(TokenUsage.read(family, answer), { usage: expected })
    })
  })

  it("a report of zero is a report, and nothing reported is none", () => {
    const zero = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
    assert.deepStrictEqual(TokenUsage.read("a", { usage: zero }), { usage: { input: 0, output: 0, total: 0 } })
    assert.deepStrictEqual(TokenUsage.read("b", { usage: { input_tokens: 0 } }), { usage: { input: 0 } })
    for (const silent of [{}, { usage: null }, { usage: [] }, { usage: "3" }, [], null, "text", 3]) {
      assert.isUndefined(TokenUsage.read("a", silent))
    }
  })

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, "5", null, {}, true])("%j is no count of tokens", (count) => {
    assert.deepStrictEqual(TokenUsage.normalise("a", { prompt_tokens: count, completion_tokens: 2 }), { output: 2 })
  })

  it("counts are whole, and no report makes a counter overflow", () => {
    assert.deepStrictEqual(TokenUsage.normalise("a", { prompt_tokens: 1.6, completion_tokens: 1e300 }), {
      input: 2,
      output: 1e12
    })
  })

  describe("takes the upstream's own cost from the first of six places that has one", () => {
    it.each([
      ["estimated_cost", 0.01],
      ["response_cost", 0.02],
      ["usage.estimated_cost", 0.03],
      ["usage.total_cost", 0.04],
      ["usage.cost", 0.05],
      ["_hidden_params.response_cost", 0.06]
    ])("%s", (place, cost) => {
      assert.strictEqual(TokenUsage.read("a", answerWithCostsFrom(cost))?.costUsd, cost, place)
    })

    it("a zero only where no other place has more", () => {
      assert.strictEqual(TokenUsage.read("a", { usage: { cost: 0 } })?.costUsd, 0)
      assert.strictEqual(TokenUsage.read("a", { estimated_cost: 0, usage: { cost: 0.02 } })?.costUsd, 0.02)
    })

    it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, "0.5", null])(
      "%j is no cost; the next place is asked",
      (cost) => {
        assert.strictEqual(TokenUsage.read("a", { estimated_cost: cost, response_cost: 0.02 })?.costUsd, 0.02)
      }
    )

    it("no report makes a budget overflow", () => {
      assert.strictEqual(TokenUsage.read("a", { response_cost: 1e300 })?.costUsd, 9_000_000)
    })
  })

  it("later reports of a stream replace earlier ones, field by field", () => {
    const start = { usage: { input: 25, output: 1, cachedInput: 5 }, costUsd: 0.1 }
    const delta = { usage: { output: 15 } }
    const merged = TokenUsage.merge(TokenUsage.merge(undefined, start), delta)
    assert.deepStrictEqual(merged, { usage: { input: 25, output: 15, cachedInput: 5 }, costUsd: 0.1 })
  })

  it("a later report takes back no input, as one that repeats it without what came from the cache", () => {
    const start = TokenUsage.read("b", {
      message: { usage: { input_tokens: 10, cache_read_input_tokens: 52_000, output_tokens: 1 } }
    })
    const delta = TokenUsage.read("b", { usage: { input_tokens: 10, output_tokens: 15 } })
    assert.deepStrictEqual(start && delta && TokenUsage.merge(start, delta).usage, {
      input: 52_010,
      output: 15,
      cachedInput: 52_000
    })
  })
})

/** An answer with a cost in the place of `first`, and in every one behind it. */
const answerWithCostsFrom = (first: number) => ({
  ...(first <= 0.01 && { estimated_cost: 0.01 }),
  ...(first <= 0.02 && { response_cost: 0.02 }),
  usage: {
    ...(first <= 0.03 && { estimated_cost: 0.03 }),
    ...(first <= 0.04 && { total_cost: 0.04 }),
    ...(first <= 0.05 && { cost: 0.05 })
  },
  _hidden_params: { response_cost: 0.06 }
})

function fixtures(): ReadonlyArray<[what: string, family: Family, answer: unknown, expected: TokenUsage.TokenUsage]> {
  const chat = {
    prompt_tokens: 2006,
    completion_tokens: 300,
    total_tokens: 2306,
    prompt_tokens_details: { cached_tokens: 1920, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 128, accepted_prediction_tokens: 0 }
  }
  const response = {
    input_tokens: 36,
    input_tokens_details: { cached_tokens: 12 },
    output_tokens: 87,
    output_tokens_details: { reasoning_tokens: 64 },
    total_tokens: 123
  }
  const message = {
    input_tokens: 50,
    cache_creation_input_tokens: 248,
    cache_read_input_tokens: 100_000,
    output_tokens: 503,
    service_tier: "standard"
  }
  const ofChat = { input: 2006, output: 300, total: 2306, cachedInput: 1920, reasoning: 128 }
  const ofResponse = { input: 36, output: 87, total: 123, cachedInput: 12, reasoning: 64 }
  const ofMessage = { input: 100_298, output: 503, cachedInput: 100_000, cacheWrite: 248 }
  return [
    ["chat completion", "a", { id: "chatcmpl-1", choices: [{}], usage: chat }, ofChat],
    ["last chunk of a chat stream", "a", { object: "chat.completion.chunk", choices: [], usage: chat }, ofChat],
    ["response", "a", { object: "response", output: [], usage: response }, ofResponse],
    ["response.completed event", "a", { type: "response.completed", response: { usage: response } }, ofResponse],
    [
      "reasoning that only the total counts",
      "a",
      { usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 5110 } },
      { input: 100, output: 5010, total: 5110 }
    ],
    ["embeddings", "a", { object: "list", usage: { prompt_tokens: 8, total_tokens: 8 } }, { input: 8, total: 8 }],
    ["message", "b", { type: "message", usage: message }, ofMessage],
    [
      "message_start event",
      "b",
      { type: "message_start", message: { usage: { ...message, output_tokens: 1 } } },
      { ...ofMessage, output: 1 }
    ],
    ["message_delta event", "b", { type: "message_delta", delta: {}, usage: { output_tokens: 15 } }, { output: 15 }],
    ["message without a cache", "b", { usage: { input_tokens: 10, output_tokens: 2 } }, { input: 10, output: 2 }],
    [
      "message with an empty cache",
      "b",
      { usage: { input_tokens: 10, output_tokens: 2, cache_read_input_tokens: 0, cache_creation_input_tokens: null } },
      { input: 10, output: 2, cachedInput: 0 }
    ]
  ]
}
