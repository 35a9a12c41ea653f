import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { SelectedGuardrail } from "../../../src/guardrails/Selection.ts"
import { StreamChain } from "../../../src/guardrails/StreamChain.ts"
import { piiStep, streamStep } from "./StreamSteps.ts"

const said = (content: string, logprobs?: unknown) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, logprobs }] })}\n\n`
const role = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] })}\n\n`
const done = "data: [DONE]\n\n"

/** Runs a guardrail on events that arrive ten milliseconds apart, with calls of 100 milliseconds. */
const delayOf = (step: SelectedGuardrail, ...events: ReadonlyArray<string>) => {
  let nowMs = 0
  const chain = new StreamChain(
    [step],
    {
      route: "chat",
      known: new Map(),
      now: () => nowMs,
      call: (_, __, done) => {
        nowMs += 100
        done(Result.succeed({ action: "allow", reason: null, metadata: {} }))
        return () => {}
      }
    },
    { push: () => {}, end: () => {}, stop: () => {}, ready: () => {} }
  )
  for (const event of events) {
    chain.push(Buffer.from(event))
    nowMs += 10
  }
  chain.end()
  return chain.report().executions[0]?.metadata["first_text_delay_ms"]
}

describe("the delay of a stream's first text", () => {
  it.each<[string, number | undefined, SelectedGuardrail, ReadonlyArray<string>]>([
    ["pii-redact, nothing held", 0, piiStep("fail_closed"), [role, said("Nothing is held. "), said("jane"), done]],
    ["pii-redact, a value in three pieces", 20, piiStep("fail_closed"), [role, said("jane"), said("@b.co"), said(" ")]],
    ["pii-redact, held to the end", 10, piiStep("fail_closed"), [said("jane"), done]],
    ["pii-redact, dry_run", 0, piiStep("dry_run"), [said("jane"), done]],
    ["pii-redact, blocked", undefined, piiStep("fail_closed"), [said("a ", { content: [{ token: "a" }] }), done]],
    ["no text", undefined, piiStep("fail_closed"), [role, done]],
    ["a guardrail on the whole stream", 130, streamStep("buffer"), [role, said("a"), said("b"), done]],
    ["a guardrail on windows", 110, streamStep("window"), [role, said("a"), said("b".repeat(63)), said("c"), done]]
  ])("is recorded: %s", (_, delay, step, events) => assert.strictEqual(delayOf(step, ...events), delay))
})
