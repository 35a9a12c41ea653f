import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { Family } from "../../src/gateway/model/CanonicalRoute.ts"
import * as UsageTap from "../../src/gateway/UsageTap.ts"
import { chatStream, split, splitting, through } from "./Streams.ts"

describe("UsageTap of a JSON answer", () => {
  it("passes every byte on, and reads the same however the answer is split", () => {
    fc.assert(
      fc.property(fc.constantFrom(...answers), splitting, ([family, text, reported], sizes) => {
        const bytes = Buffer.from(text)
        assert.deepStrictEqual(through(UsageTap.json(family, 10_000), split(bytes, sizes)), {
          bytes: bytes.toString("latin1"),
          seen: { reported, guessedOutput: Math.ceil(bytes.length / 4) }
        })
      }),
      { numRuns: 100 }
    )
  })
})

describe("UsageTap of a long JSON answer", () => {
  it("keeps no more of it than it may, passes all of it, and still knows how long it was", () => {
    const bytes = Buffer.from(`{"usage":{"prompt_tokens":7},"padding":"${"x".repeat(200)}"}`)
    fc.assert(
      fc.property(splitting, (sizes) => {
        assert.deepStrictEqual(through(UsageTap.json("a", bytes.length - 1), split(bytes, sizes)), {
          bytes: bytes.toString("latin1"),
          seen: { reported: undefined, guessedOutput: Math.ceil(bytes.length / 4) }
        })
        const { seen } = through(UsageTap.json("a", bytes.length), split(bytes, sizes))
        assert.deepStrictEqual(seen.reported, { usage: { input: 7 } })
      }),
      { numRuns: 100 }
    )
  })
})

describe("UsageTap of events", () => {
  it("passes every byte on, and sees the same of a chat stream however it is split", () => {
    fc.assert(
      fc.property(chatStream, splitting, ({ asked, usage }, sizes) => {
        const { bytes, seen } = through(UsageTap.events("a", 10_000), split(asked, sizes))
        assert.strictEqual(bytes, asked.toString("latin1"))
        assert.deepStrictEqual(seen.reported, reportOf(usage))
        assert.strictEqual(seen.guessedOutput, dataLines(asked) - 1)
      }),
      { numRuns: 300 }
    )
  })

  it.each(streams())("reads %s however it is split", (_, family, text, reported) => {
    const bytes = Buffer.from(text)
    fc.assert(
      fc.property(splitting, (sizes) => {
        const result = through(UsageTap.events(family, 10_000), split(bytes, sizes))
        assert.strictEqual(result.bytes, bytes.toString("latin1"))
        assert.deepStrictEqual(result.seen, { reported: { usage: reported }, guessedOutput: dataLines(bytes) - 1 })
      }),
      { numRuns: 50 }
    )
  })

  it("keeps the input that was reported when the stream is cut anywhere behind it", () => {
    const [, , text] = messageStream
    const start = text.indexOf("event: content_block")
    fc.assert(
      fc.property(fc.integer({ min: start, max: text.indexOf("event: message_delta") }), splitting, (end, sizes) => {
        const cut = split(Buffer.from(text.slice(0, end)), sizes)
        const { seen } = through(UsageTap.events("b", 10_000), cut)
        assert.deepStrictEqual(seen.reported?.usage, { input: 45, output: 1, cachedInput: 20 })
      }),
      { numRuns: 100 }
    )
  })

  it("does not read a line over the bound, however it is split, and reads the next", () => {
    const long = `data: {"padding":"${"x".repeat(200)}","usage":{"prompt_tokens":9}}\n\n`
    const next = `data: {"usage":{"completion_tokens":2}}\n\n`
    fc.assert(
      fc.property(splitting, (sizes) => {
        const { bytes, seen } = through(UsageTap.events("a", 200), split(Buffer.from(long + next), sizes))
        assert.strictEqual(bytes, long + next)
        assert.deepStrictEqual(seen.reported, { usage: { output: 2 } })
      }),
      { numRuns: 100 }
    )
  })
})

describe("UsageTap of what nobody reads", () => {
  it("looks at nothing", () => {
    const [, , text] = messageStream
    assert.deepStrictEqual(through(UsageTap.blind, [Buffer.from(text)]), {
      bytes: Buffer.from(text).toString("latin1"),
      seen: { reported: undefined, guessedOutput: 0 }
    })
  })
})

const dataLines = (bytes: Buffer) => bytes.toString("latin1").match(/^data:/gm)?.length ?? 0

const reportOf = (usage: {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
}) => ({
  usage: { input: usage.prompt_tokens, output: usage.completion_tokens, total: usage.total_tokens }
})

const answers = [
  [
    "a",
    '{"id":"c","usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}',
    { usage: { input: 7, output: 2, total: 9 } }
  ],
  [
    "b",
    '{"content":[{"text":"née ☃"}],"usage":{"input_tokens":7,"output_tokens":2}}',
    { usage: { input: 7, output: 2 } }
  ],
  ["a", '{"usage":{"prompt_tokens":7}', undefined],
  ["a", "no json ☃", undefined]
] as const

type Stream = [what: string, family: Family, text: string, usage: object]

const messageStream = [
  "a message stream",
  "b",
  `event: message_start
data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":25,"cache_read_input_tokens":20,"output_tokens":1}}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"née ☃ \\"usage\\":{"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}

event: message_stop
data: {"type":"message_stop"}

`,
  { input: 45, output: 15, cachedInput: 20 }
] satisfies Stream

function streams(): ReadonlyArray<Stream> {
  const completed =
    '"usage": {"input_tokens":5,"output_tokens":6,"total_tokens":11,"output_tokens_details":{"reasoning_tokens":4}}'
  const response = (echoed: string) => `event: response.created
data: {"type":"response.created","response":{"id":"r","usage":null}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","delta":"usage"}

event: response.completed
data: {"type":"response.completed","response":{"id":"r",${echoed}${completed}}}

`
  const usage = { input: 5, output: 6, total: 11, reasoning: 4 }
  return [
    messageStream,
    ["a message stream with CRLF", "b", messageStream[2].replaceAll("\n", "\r\n"), messageStream[3]],
    ["a response stream", "a", response(""), usage],
    [
      "a response stream whose client named a tool usage",
      "a",
      response('"tools":[{"name":"usage","strict":true}],'),
      usage
    ],
    ["a response stream whose client's metadata say usage", "a", response('"metadata":{"usage":"none"},'), usage],
    ["a stream without its last line end", "a", response("").trimEnd(), usage]
  ]
}
