import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as TokenUsage from "../../../src/gateway/usage/TokenUsage.ts"
import * as TrailingUsage from "../../../src/gateway/usage/TrailingUsage.ts"

const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 }
const reported = { usage: { input: 7, output: 5, total: 12 } }

const ofWhole = (text: string) => TrailingUsage.readWhole("a", Buffer.from(text))

/** Objects in which members of these names stand anywhere, more often than by chance. */
const answers = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<unknown>(1, null, true, "usage", 'a "usage": {"total_tokens": 1}', "}", "\\", "é", usage),
    fc.array(tie("value"), { maxLength: 3 }),
    tie("object")
  ),
  object: fc.dictionary(
    fc.constantFrom("usage", "response", "message", "choices", "estimated_cost", "cost", "_hidden_params", "metadata"),
    tie("value"),
    { maxKeys: 4 }
  )
})).object

describe("LateUsage of a whole answer", () => {
  it("is what a parser of all of it finds, wherever it can be told", () => {
    let told = 0
    fc.assert(
      fc.property(answers, fc.boolean(), fc.constantFrom(undefined, 1, "\t"), (answer, reports, space) => {
        const text = JSON.stringify(reports ? { ...answer, usage } : answer, undefined, space)
        const found = ofWhole(text)
        if (found === undefined) return
        told++
        assert.deepStrictEqual(found, TokenUsage.read("a", JSON.parse(text)))
      }),
      { numRuns: 2_000 }
    )
    assert.isAbove(told, 100)
  })

  it.each([
    ["as the last member", JSON.stringify({ choices: [{ message: { content: 'a "usage" {' } }], usage })],
    ["before others", JSON.stringify({ usage, service_tier: "default", metadata: { a: ["}"] } }, undefined, 2)],
    [
      "after one of that name that is no outermost member",
      JSON.stringify({ tools: [{ usage: { total_tokens: 9 } }], usage })
    ],
    ["with bytes beyond ASCII", JSON.stringify({ content: "größer", usage })]
  ])("is told of a usage %s", (_, text) => {
    assert.deepStrictEqual(ofWhole(text), reported)
  })

  it.each([
    ["that is no outermost member", JSON.stringify({ response: { usage } })],
    ["before one that is no outermost member", JSON.stringify({ usage, metadata: { usage: { total_tokens: 1 } } })],
    ["of an answer that is cut", JSON.stringify({ choices: [], usage }).slice(0, -1)],
    ["before another text", `${JSON.stringify({ usage })}{}`],
    ["beside a cost", JSON.stringify({ response_cost: 1, usage })],
    ["where a name may be escaped", String.raw`{"usage":{"total_tokens":1},"us\u0061ge":{"total_tokens":2}}`],
    ["that is no object", JSON.stringify({ usage: null })],
    ["of which there is none", "{}"]
  ])("is not told of a usage %s", (_, text) => {
    assert.isUndefined(ofWhole(text))
  })
})
