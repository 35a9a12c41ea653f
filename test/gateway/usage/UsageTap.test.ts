import { assert, describe, it, vi } from "@effect/vitest"
import fc from "fast-check"
import * as UsageTap from "../../../src/gateway/usage/UsageTap.ts"
import type { Family } from "../../../src/policy/routes/CanonicalRoute.ts"
import { chatStream, split, splitting, through } from "../Streams.ts"

describe("UsageTap of a JSON answer", () => {
  it("passes every byte on, and reads the same however the answer is split", () => {
    fc.assert(
      fc.property(fc.constantFrom(...answers), splitting, ([family, text, reported], sizes) => {
        const bytes = Buffer.from(text)
        assert.deepStrictEqual(through(UsageTap.json(family, 10_000), split(bytes, sizes)), {
          bytes: bytes.toString("latin1"),
          seen: { reported, estimatedOutput: Math.ceil(bytes.length / 4) }
        })
      }),
      { numRuns: 100 }
    )
  })
})

describe("UsageTap of JSON that takes long to parse", () => {
  const nested = `"x":${"[".repeat(300_000)}${"]".repeat(300_000)}`
  const usage = '"usage":{"prompt_tokens":5,"completion_tokens":6}'
  it.each([
    ["an answer", UsageTap.json, `{${usage},"note":"\\\\u0061",${nested}}`],
    ["an event", UsageTap.events, `data: {${nested},${usage}}\n\n`],
    ["an event whose usage is hidden", UsageTap.hidingUsage, `data: {${nested},${usage}}\n\n`],
    ["usage in usage", UsageTap.json, `{${nested},${'"usage":{'.repeat(400)}${usage}${"}".repeat(401)}`]
  ] as const)("reads the usage of %s, and parses little", (_, tapOf, text) => {
    const parse = vi.spyOn(JSON, "parse")
    try {
      const { bytes, seen } = through(tapOf("a", 1_048_576), [Buffer.from(text)])
      assert.strictEqual(bytes, text)
      assert.deepStrictEqual(seen.reported, { usage: { input: 5, output: 6 } })
      const parsed = parse.mock.calls.reduce((sum, [text]) => sum + text.length, 0)
      assert.isBelow(parsed, 262_144)
    } finally {
      parse.mockRestore()
    }
  })
})

describe("what others read of a JSON answer", () => {
  it("is held once: the answer, or nothing of one that is too long", () => {
    const bytes = Buffer.from(answers[0]?.[1] ?? "")
    fc.assert(
      fc.property(splitting, fc.boolean(), (sizes, fits) => {
        const tap = UsageTap.json("a", fits ? bytes.length : bytes.length - 1)
        for (const chunk of split(bytes, sizes)) tap.push(chunk)
        assert.deepStrictEqual(tap.collectedBody?.(), fits ? bytes : undefined)
        assert.strictEqual(tap.collectedBody?.(), tap.collectedBody?.())
      }),
      { numRuns: 50 }
    )
  })
})

describe("UsageTap of a long JSON answer", () => {
  const usage = '"usage":{"prompt_tokens":7,"note":"}\\"{"}'
  const padding = (length: number) => `"padding":"${"x".repeat(length)}"`

  it("passes all of it, knows how long it was, and reads the usage at its end", () => {
    const bytes = Buffer.from(`{${padding(200)},${usage}}`)
    fc.assert(
      fc.property(splitting, (sizes) => {
        assert.deepStrictEqual(through(UsageTap.json("a", 100), split(bytes, sizes)), {
          bytes: bytes.toString("latin1"),
          seen: { reported: { usage: { input: 7 } }, estimatedOutput: Math.ceil(bytes.length / 4) }
        })
      }),
      { numRuns: 100 }
    )
  })

  it.each<[what: string, text: string, reported: object | undefined]>([
    ["a usage that is not near its end", `{${usage},${padding(70_000)}}`, undefined],
    ["what a model says of one", `{${padding(200)},"text":${JSON.stringify(`{${usage}}`)}}`, undefined],
    ["one that is cut", `{${padding(200)},"usage":{"prompt_tokens":7`, undefined],
    ["one that is no object", `{${padding(200)},"usage":null,"a":{}}`, undefined],
    [
      "the larger of several: a client may have had a small one echoed",
      `{${padding(200)},"usage":{"prompt_tokens":7},"metadata":{"usage":{"prompt_tokens":0}}}`,
      { usage: { input: 7 } }
    ]
  ])("reads %s accordingly", (_, text, reported) => {
    const bytes = Buffer.from(text)
    assert.deepStrictEqual<unknown>(through(UsageTap.json("a", 100), split(bytes, [1000])).seen.reported, reported)
  })
})

describe("UsageTap of events", () => {
  it("passes every byte on, and sees the same of a chat stream however it is split", () => {
    fc.assert(
      fc.property(chatStream, splitting, ({ asked, usage }, sizes) => {
        const { bytes, seen } = through(UsageTap.events("a", 10_000), split(asked, sizes))
        assert.strictEqual(bytes, asked.toString("latin1"))
        assert.deepStrictEqual(seen.reported, reportOf(usage))
        assert.strictEqual(seen.estimatedOutput, guessOf(asked))
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
        assert.deepStrictEqual(result.seen, { reported: { usage: reported }, estimatedOutput: guessOf(bytes) })
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

  it("of a line over the bound reads the end, however it is split, and then the next", () => {
    const long = `data: {"padding":"${"x".repeat(200)}","usage":{"prompt_tokens":9}}\n\n`
    const next = `data: {"usage":{"completion_tokens":2}}\n\n`
    fc.assert(
      fc.property(splitting, (sizes) => {
        const { bytes, seen } = through(UsageTap.events("a", 200), split(Buffer.from(long + next), sizes))
        assert.strictEqual(bytes, long + next)
        assert.deepStrictEqual(seen.reported, { usage: { input: 9, output: 2 } })
      }),
      { numRuns: 100 }
    )
  })

  it.each<[what: string, tokens: number, events: ReadonlyArray<string>]>([
    ["the text of deltas", 3, [chatDelta("a".repeat(8)), chatDelta("b".repeat(4)), "[DONE]"]],
    ["the arguments of tool calls", 3, [`{"delta":{"tool_calls":[{"function":{"arguments":"{\\"a\\": 1}"}}]}}`]],
    ["what a model thinks", 2, ['{"delta":{"type":"thinking_delta","thinking":"12345678"}}']],
    [
      "no text twice that is repeated at the end",
      2,
      ['{"delta":"12345678"}', '{"text":"12345678"}', '{"text":"12345678"}']
    ],
    ["the text of a stream without deltas", 2, ['{"choices":[{"text":"12345678","finish_reason":null}]}']],
    ["all strings of a stream without text", 3, ['{"said":"12345678","by":"1234"}']],
    ["what is no JSON", 2, ["12345678"]],
    ["a token for each event at the least", 4, [1, 2, 3, 4, 5].map(() => chatDelta("a"))],
    ["nothing before the first", 0, ['{"n":1}']]
  ])("guesses by %s", (_, tokens, events) => {
    const bytes = Buffer.from(events.map((event) => `data: ${event}\n\n`).join(""))
    assert.strictEqual(through(UsageTap.events("a", 10_000), [bytes]).seen.estimatedOutput, tokens)
    assert.strictEqual(through(UsageTap.hidingUsage("a", 10_000), [bytes]).seen.estimatedOutput, tokens)
  })
})

describe("UsageTap of what nobody reads", () => {
  it("looks at nothing", () => {
    const [, , text] = messageStream
    assert.deepStrictEqual(through(UsageTap.passthrough, [Buffer.from(text)]), {
      bytes: Buffer.from(text).toString("latin1"),
      seen: { reported: undefined, estimatedOutput: undefined }
    })
  })
})

const chatDelta = (content: string) => JSON.stringify({ id: "chatcmpl-1", choices: [{ delta: { content } }] })

/** The guess, from events that are parsed. */
const guessOf = (bytes: Buffer): number => {
  const events = [...bytes.toString("utf8").matchAll(/^data: ?(.*?)\r?$/gm)].map(([, data = ""]) => data)
  const objects = events.filter((data) => data.startsWith("{")).map((data): unknown => JSON.parse(data))
  const strings = (value: unknown, named: boolean): number =>
    typeof value === "string"
      ? named
        ? Buffer.byteLength(JSON.stringify(value)) - 2
        : 0
      : typeof value === "object" && value !== null
        ? Object.entries(value).reduce((sum, [key, inner]) => sum + strings(inner, everything || textNames.has(key)), 0)
        : 0
  let everything = false
  const sum = (some: ReadonlyArray<unknown>) => some.reduce<number>((total, one) => total + strings(one, false), 0)
  const deltas = sum(objects.filter((one) => JSON.stringify(one).includes('"delta":')))
  const elsewhere = sum(objects)
  everything = true
  return Math.max(events.length - 1, Math.ceil((deltas || elsewhere || sum(objects)) / 4))
}

const textNames = new Set(["text", "delta", "content", "arguments"])

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
