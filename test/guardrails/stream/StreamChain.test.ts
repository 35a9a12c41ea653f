import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { SelectedGuardrail } from "../../../src/guardrails/Selection.ts"
import { StreamChain } from "../../../src/guardrails/StreamChain.ts"
import type { Reply, StreamCall } from "../../../src/guardrails/StreamJudge.ts"
import { maxEventLength } from "../../../src/guardrails/stream/SseEvents.ts"
import { piiStep, streamStep } from "./StreamSteps.ts"

const allow: Reply = Result.succeed({ action: "allow", reason: null, metadata: {} })

/** A chain whose HTTP guardrails allow everything at once. */
const chainOf = (...steps: ReadonlyArray<SelectedGuardrail>) => {
  const sent: Array<Buffer> = []
  const calls: Array<string> = []
  const ends: Array<string> = []
  const call: StreamCall = (step, _, done) => {
    calls.push(step.definition.name)
    done(allow)
    return () => {}
  }
  const chain = new StreamChain(
    steps,
    { route: "chat", known: new Map(), now: () => 0, call },
    {
      push: (bytes) => sent.push(bytes),
      end: () => ends.push("end"),
      stop: ({ code }) => ends.push(code),
      ready: () => {}
    }
  )
  return { chain, calls, ends, sent: () => Buffer.concat(sent).toString() }
}

const said = (content: string, rest: object = {}) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, ...rest }] })}\n\n`

describe("an event that is too large", () => {
  const start = `${said("One sentence. ")}: `
  const large = "\u00e9".repeat(maxEventLength + 1)
  const bytes = Buffer.from(start + large)
  /** Cuts the first event from the rest, and a character in two. */
  const cuts = [0, 10, bytes.length - 1, bytes.length]

  it.each([
    ["pii-redact", [piiStep("fail_open")]],
    ["a guardrail on the whole stream", [streamStep("buffer", 64, "fail_open")]],
    ["a guardrail on windows", [streamStep("window", 64, "fail_open")]],
    ["pii-redact after another guardrail", [streamStep("buffer", 64, "fail_open"), piiStep("fail_open")]],
    ["windows after another guardrail", [streamStep("buffer", 64, "fail_open"), streamStep("window", 64, "fail_open")]]
  ] as const)("passes unread with the events before it: %s, fail_open", (_, steps) => {
    const { chain, ends, sent } = chainOf(...steps)
    cuts.forEach((cut, index) => {
      if (index > 0) chain.push(bytes.subarray(cuts[index - 1], cut))
    })
    chain.end()
    assert.isTrue(sent() === start + large)
    assert.deepStrictEqual(ends, ["end"])
    assert.deepInclude(chain.report().failures[0], { action: "warn", reason: "event_too_large" })
  })

  it.each([
    ["pii-redact", piiStep("fail_closed")],
    ["a guardrail on the whole stream", streamStep("buffer", 64, "fail_closed")],
    ["a guardrail on windows", streamStep("window", 64, "fail_closed")]
  ] as const)("ends the stream: %s, fail_closed", (_, step) => {
    const { chain, ends, sent } = chainOf(step)
    chain.push(bytes)
    chain.end()
    assert.isTrue(said("One sentence. ").startsWith(sent()))
    assert.deepStrictEqual(ends, ["guardrail_unavailable"])
  })
})

describe("a chain", () => {
  it("makes no call after a later guardrail has stopped the stream", () => {
    const { calls, chain, ends, sent } = chainOf(streamStep("window", 64, "fail_open"), piiStep("fail_closed"))
    const scored = said("a".repeat(64), { logprobs: { content: [{ token: "a" }] } })
    chain.push(Buffer.from(scored + said("b".repeat(70))))
    assert.deepStrictEqual([calls, ends, sent()], [["guard"], ["guardrail_blocked"], ""])
  })
})
