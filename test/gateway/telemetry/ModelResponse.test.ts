import { assert, describe, it } from "@effect/vitest"
import { ModelResponse } from "../../../src/gateway/telemetry/ModelResponse.ts"
import * as UsageTap from "../../../src/gateway/usage/UsageTap.ts"
import type { Family } from "../../../src/policy/routes/CanonicalRoute.ts"

const max = 1_048_576

/** What is read of a response that comes in these chunks, ten milliseconds apart. */
const read = (
  tapOf: (response: ModelResponse) => UsageTap.UsageTap,
  chunks: ReadonlyArray<string>,
  isRecorded = true
) => {
  let at = 0
  const gaps: Array<number> = []
  const response = new ModelResponse({ isRecorded, now: () => at, onGap: (ms) => gaps.push(ms) })
  const tap = tapOf(response)
  for (const chunk of chunks) {
    at += 10
    tap.push(Buffer.from(chunk))
  }
  tap.flush()
  tap.observed()
  return { ...response.facts, firstChunkAt: response.firstChunkAt, gaps }
}

const event = (data: unknown): string => `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`

const chunk = (finish_reason: string | null, more: object = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  model: "gpt-5-2025",
  choices: [{ index: 0, delta: { content: 'says "finish_reason":"no"' }, finish_reason }],
  ...more
})
const chatStream = [
  event(chunk(null)),
  event(chunk(null)) + event(chunk("length")),
  event({ ...chunk(null), choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } }),
  event("[DONE]")
]

const message = { id: "msg_1", type: "message", model: "claude-5", stop_reason: null, usage: { input_tokens: 3 } }
const messageStream = [
  `event: message_start\n${event({ type: "message_start", message })}`,
  event({ type: "content_block_delta", delta: { type: "text_delta", text: "stop_reason" } }),
  event({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 4 } })
]

const created = { id: "resp_1", object: "response", model: "gpt-5", status: "in_progress", usage: null }
const responseStream = [
  event({ type: "response.created", response: created }),
  event({ type: "response.output_text.delta", delta: "hello" }),
  event({
    type: "response.incomplete",
    response: {
      ...created,
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      usage: { input_tokens: 1, output_tokens: 2 }
    }
  })
]

const stream = (family: Family) => (response: ModelResponse) => UsageTap.events(family, max, response)

describe("what telemetry says of a response", () => {
  it.each([
    ["chat", stream("a"), chatStream],
    [
      "chat whose usage only the gateway wants",
      (response: ModelResponse) => UsageTap.hidingUsage("a", max, response),
      chatStream
    ]
  ])("is read of a stream of %s, which ends with the reason once", (_, tap, chunks) => {
    assert.deepStrictEqual(read(tap, chunks), {
      responseId: "chatcmpl-1",
      responseModel: "gpt-5-2025",
      finishReasons: ["length"],
      firstChunkAt: 10,
      // two events come together, and the end mark is none
      gaps: [10, 0, 10]
    })
  })

  it("is read of a stream of messages and of one of responses", () => {
    assert.deepInclude(read(stream("b"), messageStream), {
      responseId: "msg_1",
      responseModel: "claude-5",
      finishReasons: ["end_turn"]
    })
    assert.deepInclude(read(stream("a"), responseStream), {
      responseId: "resp_1",
      responseModel: "gpt-5",
      finishReasons: ["max_output_tokens"]
    })
  })

  it("is read of whole responses", () => {
    const json = (family: Family, body: object) =>
      read((response) => UsageTap.json(family, max, response), [JSON.stringify(body)])
    const usage = { prompt_tokens: 1, completion_tokens: 2 }
    const choices = [{ finish_reason: "stop" }, { finish_reason: "tool_calls" }]
    assert.deepStrictEqual(json("a", { id: "chatcmpl-2", model: "gpt-5", choices, usage }), {
      responseId: "chatcmpl-2",
      responseModel: "gpt-5",
      finishReasons: ["stop", "tool_calls"],
      firstChunkAt: undefined,
      gaps: []
    })
    assert.deepInclude(json("b", { ...message, stop_reason: "tool_use" }), { finishReasons: ["tool_use"] })
    assert.deepInclude(json("a", { ...created, status: "completed", usage }), { finishReasons: ["completed"] })
    // an embedding has neither an id nor a reason
    assert.deepInclude(json("a", { model: "embed-3", data: [{ embedding: [0.5] }], usage }), {
      responseId: undefined,
      responseModel: "embed-3",
      finishReasons: undefined
    })
  })

  it("is nothing that looks like text", () => {
    const answer = { id: "an answer, word by word", model: "m\n", choices: [{ finish_reason: "said so" }], usage: {} }
    const { finishReasons, responseId, responseModel } = read(
      (response) => UsageTap.json("a", max, response),
      [JSON.stringify(answer)]
    )
    assert.deepStrictEqual([finishReasons, responseId, responseModel], [undefined, undefined, undefined])
  })

  it("is not read where no span wants it, but chunks are timed", () => {
    assert.deepStrictEqual(read(stream("a"), chatStream, false), {
      responseId: undefined,
      responseModel: undefined,
      finishReasons: undefined,
      firstChunkAt: 10,
      gaps: [10, 0, 10]
    })
  })
})
