import { assert, describe, it } from "@effect/vitest"
import { sentenceOf } from "../../../src/control/policies/RefusalSentences.ts"

const cents = 10_000_000

const of = (check: string, amounts?: { readonly wanted: number; readonly used: number; readonly limit: number }) =>
  sentenceOf({ statusCode: 402, errorCode: "budget_exceeded", check, amounts })

describe("the sentence of a limit that refused a request", () => {
  it.each([
    [
      "too little left of a budget",
      of("daily_budget_usd", { wanted: 4.13 * cents, used: cents, limit: 5 * cents }),
      "The request could cost up to $0.0413, and $0.04 was left of this key's budget of this day ($0.05).",
      "Ask for fewer output tokens (max_tokens), use a cheaper model, wait for 00:00 UTC, or ask whoever gave you the key for a higher limit."
    ],
    [
      "a budget that is used up",
      of("monthly_budget_usd", { wanted: 1, used: 5 * cents, limit: 5 * cents }),
      "This key's budget of this month ($0.05) was used up.",
      "Wait for the next month (UTC), or ask whoever gave you the key for a higher limit."
    ],
    [
      "more than the whole limit",
      of("tpm_limit", { wanted: 900, used: 0, limit: 100 }),
      "The request could use up to 900 tokens, which is more than the whole of this key's limit of tokens of this minute (100).",
      "Ask for fewer output tokens (max_tokens), or ask whoever gave you the key for a higher limit."
    ],
    [
      "requests",
      of("rpm_limit", { wanted: 1, used: 60, limit: 60 }),
      "This key's requests of this minute (60) were used up.",
      "Send it again in the next minute, or ask whoever gave you the key for a higher limit."
    ],
    [
      "a shared budget, of which nobody is told what the others left",
      of("shared_daily_budget_usd", { wanted: 3 * cents, used: 4 * cents, limit: 5 * cents }),
      "The request could cost up to $0.03, which is more than what was left of the shared budget of this day ($0.05).",
      "Ask for fewer output tokens (max_tokens), use a cheaper model, wait for 00:00 UTC, or ask whoever gave you the key for a higher limit."
    ],
    [
      "a record that has no amounts",
      of("daily_budget_usd"),
      "The request could cost more than what was left of this key's budget of this day.",
      "Ask for fewer output tokens (max_tokens), use a cheaper model, wait for 00:00 UTC, or ask whoever gave you the key for a higher limit."
    ]
  ])("%s", (_, refusal, sentence, what_to_do) => assert.deepStrictEqual(refusal, { sentence, what_to_do }))

  it("never makes what is needed and what is left look the same", () => {
    const refusal = of("daily_budget_usd", { wanted: cents + 2, used: 0, limit: cents + 1 })
    assert.include(refusal?.sentence, "$0.010001")
    assert.include(refusal?.sentence, "($0.01)")
  })
})

describe("the sentence of an upstream that failed", () => {
  it.each([
    ["a model", false, "The model provider could not be reached.", "The model provider failed with status 503."],
    ["a service", true, "The service could not be reached.", "The service failed with status 503."]
  ])("names what the request was for: %s", (_, isOfService, unreached, failed) => {
    const of = (statusCode: number, errorCode: string | null) =>
      sentenceOf({ statusCode, errorCode, check: null, isOfService })?.sentence
    assert.deepStrictEqual([of(502, "upstream_connection"), of(503, null)], [unreached, failed])
  })
})
