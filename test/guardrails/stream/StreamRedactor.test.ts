import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import { Redaction } from "../../../src/guardrails/redact/Redaction.ts"
import { TextRedactor } from "../../../src/guardrails/redact/TextRedactor.ts"
import { EventTooLarge, SseSplitter, textOf } from "../../../src/guardrails/stream/SseEvents.ts"
import { StreamRedactor } from "../../../src/guardrails/stream/StreamRedactor.ts"
import type { TextRoute } from "../../../src/guardrails/text/Place.ts"
import { Random, randomPieces, randomText } from "../redact/RandomTexts.ts"

const usual = Result.getOrThrow(DetectorSet.of({}))
const known = new Map([["[EMAIL_1]", "joe@example.org"]])
const redactionOf = (restore = true) => new Redaction({ detectors: usual, known, restore })

/** Redacts a stream that arrives in the given pieces. */
const redact = (route: TextRoute, pieces: ReadonlyArray<string | Uint8Array>, restore = true): string => {
  const redactor = new StreamRedactor(redactionOf(restore), route)
  let out = ""
  for (const piece of pieces) out += redactor.push(Buffer.from(piece))
  return out + redactor.end()
}
const chat = (...pieces: ReadonlyArray<string>) => redact("chat", pieces)

const event = (json: unknown, lineEnd = "\n") => `data: ${JSON.stringify(json)}${lineEnd}${lineEnd}`
const chunk = (content: string, index = 0) => event({ choices: [{ index, delta: { content }, finish_reason: null }] })
const finish = (index = 0) => event({ choices: [{ index, delta: {}, finish_reason: "stop" }] })
const done = "data: [DONE]\n\n"

/** The events of a stream, as its clients read them. */
const eventsOf = (stream: string): ReadonlyArray<string> =>
  stream
    .split(/\r\n\r\n|\n\n|\r\r/)
    .filter((text) => text !== "")
    .map((text) => text.replace(/^data: /, ""))
const contentOf = (stream: string, index = 0): string =>
  eventsOf(stream)
    .filter((text) => text.startsWith("{"))
    .flatMap((text) => JSON.parse(text).choices)
    .filter((choice) => choice.index === index)
    .map((choice) => choice.delta.content ?? "")
    .join("")

describe("a stream", () => {
  it("continues the text of a block that its first event began", () => {
    const block = (type: string, rest: object) => `event: ${type}\n${event({ type, index: 0, ...rest })}`
    const out = eventsOf(
      redact("messages", [
        block("content_block_start", { content_block: { type: "text", text: "jane@" } }),
        block("content_block_stop", {})
      ])
    )
    assert.deepStrictEqual(
      out,
      [
        `event: content_block_start\n${event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } })}`,
        `event: content_block_delta\n${event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "jane@" } })}`,
        `event: content_block_stop\n${event({ type: "content_block_stop", index: 0 })}`
      ].map((text) => text.trim())
    )
  })

  it.each([
    ["thinking", "thinking", "thinking_delta"],
    ["compaction", "content", "compaction_delta"]
  ])("continues a block of the type %s in the member %s", (type, member, delta) => {
    const events = [
      { type: "content_block_start", index: 0, content_block: { type, [member]: "to jane" } },
      { type: "content_block_stop", index: 0 }
    ]
    const [, added = ""] = eventsOf(
      redact(
        "messages",
        events.map((one) => event(one))
      )
    )
    assert.deepStrictEqual(JSON.parse(added).delta, { type: delta, [member]: "jane" })
  })

  it("passes byte for byte where nothing is found and nothing is held", () => {
    const stream = [
      ": a comment\n\n",
      'event: x\r\nid: 7\r\ndata: {"choices":[{"index":0,"delta":{"content":"One sentence. "}}], "n": 1.50}\r\n\r\n',
      'data: {"unknown":\ndata:  [1, 2]}\n\n',
      chunk("Another one. "),
      finish(),
      done
    ]
    assert.strictEqual(chat(...stream), stream.join(""))
  })

  it("sends the end of a text that was held before the event that ends the text", () => {
    const out = eventsOf(chat(chunk("Write to jane"), chunk("@example.com"), finish(), done))
    assert.deepStrictEqual(
      out.map((text) => (text.startsWith("{") ? JSON.parse(text).choices[0] : text)),
      [
        { index: 0, delta: { content: "Write to " }, finish_reason: null },
        { index: 0, delta: { content: "" }, finish_reason: null },
        { index: 0, delta: { content: "[EMAIL_2]" }, finish_reason: null },
        { index: 0, delta: {}, finish_reason: "stop" },
        "[DONE]"
      ]
    )
  })

  it("sends what it holds also if the stream ends without its last events, or within an event", () => {
    assert.strictEqual(contentOf(chat(chunk("to jane@exam"), chunk("ple.com"))), "to [EMAIL_2]")
    const cut = chat(
      chunk("to jane@"),
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "x.com" } }] })}`
    )
    assert.strictEqual(contentOf(cut), "to [EMAIL_2]")
  })

  it("ends each event that it adds after a stream that ended within an event", () => {
    const cut = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "x.com" } }] })}`
    const out = chat(chunk("to jane@", 0), chunk("to joe@b.co", 1), cut)
    assert.deepStrictEqual([contentOf(out, 0), contentOf(out, 1)], ["to [EMAIL_2]", "to [EMAIL_3]"])
  })

  it("sends all of a text before the choice ends, also beside a copy of it", () => {
    const last = { index: 0, delta: { content: "ple.com" }, message: { content: "to jane@example.com" } }
    const out = chat(chunk("to jane@exam"), event({ choices: [{ ...last, finish_reason: "stop" }] }))
    assert.deepStrictEqual(
      eventsOf(out).map((text) => JSON.parse(text).choices[0]),
      [
        { index: 0, delta: { content: "to " }, finish_reason: null },
        { ...last, delta: { content: "[EMAIL_2]" }, message: { content: "to [EMAIL_2]" }, finish_reason: "stop" }
      ]
    )
  })

  it.each([
    ["without an index", { content_block: { type: "text", text: "to jane@" } }],
    ["whose index is no number", { index: "0", content_block: { type: "text", text: "to jane@" } }],
    ["without a type", { content_block: { text: "to jane@" } }],
    ["that is a string", { content_block: "to jane@" }]
  ])("sends the text of a started block %s", (_, block) => {
    const out = redact("messages", [event({ type: "content_block_start", ...block }), event({ type: "message_stop" })])
    assert.deepStrictEqual([...out.matchAll(/to |jane@/g)].map(String), ["to ", "jane@"])
  })

  it("puts no line break of a value into a line that is no data", () => {
    const values = new Map([["[EMAIL_1]", "first\ndata: second\r\n\r\nthird"]])
    const redactor = new StreamRedactor(new Redaction({ detectors: usual, known: values, restore: true }), "chat")
    const out = redactor.push(Buffer.from(": to [EMAIL_1]\ndata: {}\n\n"))
    assert.strictEqual(out, ": to first data: second    third\ndata: {}\n\n")
  })

  it("keeps the texts of choices apart", () => {
    const out = chat(
      chunk("jane@", 0),
      chunk("joe@", 1),
      chunk("a.com", 0),
      chunk("b.com", 1),
      finish(0),
      finish(1),
      done
    )
    assert.deepStrictEqual([contentOf(out, 0), contentOf(out, 1)], ["[EMAIL_2]", "[EMAIL_3]"])
  })

  it("redacts data that is no JSON, comments and ids", () => {
    assert.strictEqual(
      chat("data: write to a@b.co\n\n", ": c@d.co\n\n", "id: e@f.co\ndata: {\n\n"),
      "data: write to [EMAIL_2]\n\n: [EMAIL_3]\n\nid: [EMAIL_4]\ndata: {\n\n"
    )
  })

  it("gives copies the placeholders of their text, and numbers the events of a response without gaps", () => {
    const numbered = (type: string, sequence_number: number, rest: object) =>
      `event: ${type}\n${event({ type, sequence_number, output_index: 0, ...rest })}`
    const text = "Ask jane@example.com"
    const out = eventsOf(
      redact("responses", [
        numbered("response.output_text.delta", 3, { content_index: 0, delta: "Ask jane@exam" }),
        numbered("response.output_text.delta", 4, { content_index: 0, delta: "ple.com" }),
        numbered("response.output_text.done", 5, { content_index: 0, text }),
        numbered("response.output_item.done", 6, {
          item: { type: "message", content: [{ type: "output_text", text }] }
        })
      ])
    ).map((text) => JSON.parse(text.slice(text.indexOf("{"))))
    assert.deepStrictEqual(
      out.map(({ sequence_number }) => sequence_number),
      [3, 4, 5, 6, 7]
    )
    assert.deepStrictEqual(
      out.map(({ delta, item, text }) => delta ?? text ?? item.content[0].text),
      ["Ask ", "", "[EMAIL_2]", "Ask [EMAIL_2]", "Ask [EMAIL_2]"]
    )
  })

  it("refuses an event without an end", () => {
    const splitter = new SseSplitter(100)
    assert.throws(() => splitter.push(Buffer.from(`data: ${"x".repeat(100)}`)), EventTooLarge)
  })
})

const cases = Number(process.env["GUARDED_STREAMS"] ?? 8_000)
const withoutNumbers = (text: string) => text.replace(/\[([A-Z]+)_\d+\]/g, "[$1]")

describe("random streams", () => {
  it("have the texts of the plain response, for every order of choices and every cut of the bytes", () => {
    const seed = Number(process.env["GUARDED_SEED"] ?? Date.now() % 1_000_000_007)
    const random = new Random(seed)
    for (let index = 0; index < cases; index++) {
      const texts = Array.from({ length: 1 + random.below(3) }, () => randomText(random, 5).toWellFormed())
      const stream = randomStream(random, texts)
      const bytes = Buffer.from(stream)
      const cut = random.below(bytes.length)
      const out = redact("chat", random.below(2) === 0 ? [bytes] : [bytes.subarray(0, cut), bytes.subarray(cut)])
      texts.forEach((text, choice) => {
        const expected = new TextRedactor(redactionOf(), { writing: "plain", signed: false }).whole(text)
        const sent = contentOf(out, choice)
        const isSame = texts.length === 1 ? sent === expected : withoutNumbers(sent) === withoutNumbers(expected)
        if (!isSame)
          throw new Error(`GUARDED_SEED=${seed}, ${index}: ${JSON.stringify({ text, expected, sent, stream })}`)
      })
    }
  })

  it("are split into events whose text is the text of the stream", () => {
    const random = new Random(7)
    for (let index = 0; index < 2_000; index++) {
      const stream = randomPieces(random, randomText(random, 8).toWellFormed())
        .map((text) => text + random.of(["\n", "\r\n", "\r", "\n\n", "\r\n\r\n", ""]))
        .join("")
        .toWellFormed()
      const bytes = Buffer.from(stream)
      const splitter = new SseSplitter(10_000)
      let out = ""
      for (let at = 0; at < bytes.length; ) {
        const next = at + 1 + random.below(4)
        for (const event of splitter.push(bytes.subarray(at, next))) out += textOf(event)
        at = next
      }
      for (const event of splitter.end()) out += textOf(event)
      assert.strictEqual(out, stream)
    }
  })
})

const randomStream = (random: Random, texts: ReadonlyArray<string>): string => {
  const waiting = texts.map((text, index) => ({ index, pieces: [...randomPieces(random, text)] }))
  let stream = ""
  while (waiting.length > 0) {
    const at = random.below(waiting.length)
    const choice = waiting[at]
    const piece = choice?.pieces.shift()
    if (choice === undefined) break
    if (piece !== undefined) stream += chunk(piece, choice.index)
    else {
      stream += random.below(4) === 0 ? "" : finish(choice.index)
      waiting.splice(at, 1)
    }
  }
  return stream + (random.below(4) === 0 ? "" : done)
}
