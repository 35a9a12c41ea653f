import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { Selection } from "../../../src/guardrails/Selection.ts"
import { StreamChain } from "../../../src/guardrails/StreamChain.ts"
import type { Reply, StreamCall } from "../../../src/guardrails/StreamJudge.ts"
import { type TextRoute, textRoutes } from "../../../src/guardrails/text/Place.ts"
import { Random } from "../redact/RandomTexts.ts"
import { piiStep, streamStep } from "./StreamSteps.ts"

const names = [
  ...["type", "index", "output_index", "content_index", "sequence_number", "delta", "choices", "content", "text"],
  ...["message", "item", "part", "content_block", "thinking", "signature", "tool_calls", "function", "arguments"],
  ...["finish_reason", "refusal", "role", "id", "error", "response", "partial_json", "logprobs", "__proto__"]
] as const
const texts = [
  ...["jane@exam", "ple.com", "jane@example.com", "555-12", "3-4567", "[EMA", "IL_1]", "[EMAIL_1]", "word", ""],
  ...["\u0000held0", "\\", '{"a":"jane@', "\ud83d", "https://x.test/", "123-45-6789", "text", "text_delta", "thinking"],
  ...["content_block_start", "content_block_delta", "content_block_stop", "message_stop", "input_json_delta"],
  ...["response.output_text.delta", "response.output_text.done", "response.output_item.done", "response.completed"]
] as const
const scalars = [0, 1, -1, 1.5, 2 ** 53, null, true] as const

const anyJson = (random: Random, depth = 0): unknown => {
  const kind = random.below(depth > 4 ? 4 : 9)
  if (kind < 3) return random.of(texts)
  if (kind === 3) return random.of(scalars)
  const items = Array.from({ length: random.below(4) }, () => anyJson(random, depth + 1))
  return kind < 6 ? items : Object.fromEntries(items.map((item) => [random.of(names), item]))
}

/** An event in the shape of a provider's, with a member that is not as it should be. */
const almostAnEvent = (random: Random): unknown => {
  const text = random.of(texts)
  const index = random.of([0, 1, 1, "0", null])
  const wrong = anyJson(random, 3)
  return random.of([
    {
      choices: [{ index, delta: random.of([{ content: text }, { refusal: text }, wrong]), message: { content: text } }]
    },
    {
      choices: [{ index, delta: { tool_calls: [{ index: 0, function: { arguments: text } }] }, finish_reason: "stop" }]
    },
    { type: "content_block_start", index, content_block: random.of([{ type: "text", text }, { text }, text, wrong]) },
    { type: "content_block_delta", index, delta: random.of([{ type: "text_delta", text }, wrong]) },
    { type: "content_block_stop", index },
    { type: random.of(texts), sequence_number: index, output_index: 0, content_index: index, delta: text, text },
    anyJson(random)
  ])
}

const anyStream = (random: Random): Buffer => {
  const event = () => {
    const lineEnd = random.of(["\n", "\r\n", "\r"])
    const name = random.below(3) === 0 ? `event: ${random.of(texts)}${lineEnd}` : ""
    return `${name}data: ${JSON.stringify(almostAnEvent(random))}${lineEnd}${random.below(20) === 0 ? "" : lineEnd}`
  }
  return Buffer.from(Array.from({ length: 1 + random.below(10) }, event).join(""))
}

const allow: Reply = Result.succeed({ action: "allow", reason: null, metadata: {} })

/** Runs a stream in random pieces. Some calls return at once, others later. */
const run = (random: Random, steps: Selection, route: TextRoute, stream: Buffer): string => {
  const waiting: Array<() => void> = []
  let sent = ""
  let ends = 0
  const call: StreamCall = (_, _response, done) => {
    if (random.below(2) === 0) done(allow)
    else waiting.push(() => done(allow))
    return () => {}
  }
  const chain = new StreamChain(
    steps,
    { route, known: new Map([["[EMAIL_1]", "joe@example.org"]]), now: () => 0, call },
    {
      push: (bytes) => {
        assert.strictEqual(ends, 0)
        sent += bytes.toString()
      },
      end: () => ends++,
      stop: () => assert.fail("nothing stops the stream"),
      ready: () => {}
    }
  )
  for (let from = 0; from < stream.length; ) {
    const to = from + 1 + random.below(200)
    chain.push(stream.subarray(from, to))
    if (random.below(2) === 0) for (const finish of waiting.splice(0)) finish()
    from = to
  }
  chain.end()
  while (waiting.length > 0) for (const finish of waiting.splice(0)) finish()
  assert.deepStrictEqual([ends, chain.isBusy], [1, false])
  return sent
}

describe("events of no known shape", () => {
  const pii = piiStep("fail_open")
  const buffered = streamStep("buffer", 64, "fail_open")
  const windowed = streamStep("window", 64, "fail_open")

  it.each([
    ["pii-redact", [pii], false],
    ["a guardrail on the whole stream", [buffered], true],
    ["a guardrail on windows", [windowed], true],
    ["a guardrail on windows, and another one", [windowed, windowed], true],
    ["a guardrail on windows after pii-redact", [pii, windowed], false]
  ] as const)("make nothing fail or wait forever under %s", (_, steps, isUnchanged) => {
    const seed = Number(process.env["GUARDED_SEED"] ?? Date.now() % 1_000_000_007)
    const random = new Random(seed)
    for (let index = 0; index < 1000; index++) {
      const stream = anyStream(random)
      const route = random.of(textRoutes)
      try {
        const sent = run(random, steps, route, stream)
        if (isUnchanged) assert.strictEqual(sent, stream.toString())
      } catch (cause) {
        throw new Error(`GUARDED_SEED=${seed}, ${route}: ${JSON.stringify(stream.toString())}`, { cause })
      }
    }
  })
})
