import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import { Redaction } from "../../../src/guardrails/redact/Redaction.ts"
import { StreamRedactor } from "../../../src/guardrails/stream/StreamRedactor.ts"
import type { TextRoute } from "../../../src/guardrails/text/Place.ts"
import * as VendorAnswers from "../../e2e/streams/VendorAnswers.ts"

const detectors = Result.getOrThrow(DetectorSet.of({}))
const known = new Map([
  ["[EMAIL_1]", "joe@example.org"],
  ["[PHONE_12]", "+1-555-000-1111"]
])

const redactorOf = (route: TextRoute) => new StreamRedactor(new Redaction({ detectors, known, restore: true }), route)

const redact = (route: TextRoute, pieces: Iterable<string | Uint8Array>): string => {
  const redactor = redactorOf(route)
  let out = ""
  for (const piece of pieces) out += redactor.push(Buffer.from(piece))
  return out + redactor.end()
}

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const content = (text: string) => chunk({ content: text })
const toolArguments = (text: string) => chunk({ tool_calls: [{ index: 0, function: { arguments: text } }] })
const end = `${chunk({}, "stop")}data: [DONE]\n\n`

const deltasOf = (stream: string) =>
  stream
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .flatMap((event) => JSON.parse(event.slice(6)).choices)
    .map(({ delta }) => delta)
const contentOf = (stream: string): string =>
  deltasOf(stream)
    .map((delta) => delta.content ?? "")
    .join("")
const argumentsOf = (stream: string): string =>
  deltasOf(stream)
    .map(({ tool_calls }) => tool_calls?.[0].function.arguments ?? "")
    .join("")

/** What a chat client reads when the text arrives in pieces of `size`. */
const throughChat = (text: string, size = 1) =>
  contentOf(redact("chat", [...VendorAnswers.chat([{ text }], size).events]))
const throughArguments = (text: string, size = 1): string =>
  argumentsOf(redact("chat", [...(text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? []).map(toolArguments), end]))

const input = String.raw`{"to":"jane\u0040example.com","cc":"[EMAIL_1]","say":"😀 \"555-123-4567\""}`
const answer = { text: "To jane@example.com 😀é and [EMAIL_1]", calls: [{ id: "call_1", tool: "send", input }] }

const streams: ReadonlyArray<readonly [TextRoute, string]> = [
  ["chat", VendorAnswers.chat([answer, answer], 9).events.join("")],
  ["responses", VendorAnswers.responses({ ...answer, script: answer.text }, 9).events.join("")],
  ["messages", VendorAnswers.messages({ ...answer, reasoning: "I think", signature: "c2ln" }, 9).events.join("")]
]

describe("a guarded stream", () => {
  it.each(streams)("of %s is the same for every cut of its bytes", (route, stream) => {
    const bytes = Buffer.from(stream)
    const whole = redact(route, [bytes])
    assert.notInclude(whole, "jane")
    assert.strictEqual(
      redact(
        route,
        Array.from(bytes, (byte) => Uint8Array.of(byte))
      ),
      whole
    )
    for (let cut = 1; cut < bytes.length; cut++) {
      if (redact(route, [bytes.subarray(0, cut), bytes.subarray(cut)]) !== whole) assert.fail(`cut at ${cut}`)
    }
  })

  it.each(streams)("of %s is the same with CR or CR LF line ends", (route, stream) => {
    const expected = redact(route, [stream])
    for (const lineEnd of ["\r", "\r\n"]) {
      const bytes = Buffer.from(stream.replaceAll("\n", lineEnd))
      const out = redact(
        route,
        Array.from(bytes, (byte) => Uint8Array.of(byte))
      )
      assert.strictEqual(out, expected.replaceAll("\n", lineEnd))
    }
  })

  it.each(streams)("of %s without its last events has all text that arrived", (route, stream) => {
    for (let at = stream.indexOf("\n\n") + 2; at > 1; at = stream.indexOf("\n\n", at) + 2) {
      const out = redact(route, [stream.slice(0, at)])
      assert.isFalse(/jane@example|555-123/.test(out))
    }
  })

  it("passes data that is no JSON in the middle of a text, whose pieces stay one text", () => {
    const broken = 'data: {"choices":[{"index":0,"delta":{"content":"x\n\n'
    const out = redact("chat", [content("To jane@exam"), broken, "data: \n\n", content("ple.com"), end])
    assert.strictEqual(contentOf(out.replace(broken, "")), "To [EMAIL_2]")
    assert.include(out, broken)
  })

  it("passes unknown events, and redacts what they say", () => {
    const other = 'event: new\ndata: {"type":"new.event","n":1.50,"deep":[{"id":"x_1"}]}\n\n'
    for (const [route] of streams) {
      assert.strictEqual(redact(route, [other]), other)
      const said = 'event: new\ndata: {"type":"new.event","said":"to jane@example.com"}\n\n'
      assert.strictEqual(redact(route, [said]), said.replace("jane@example.com", "[EMAIL_2]"))
      const deltas = ["ja", "ne@exa", "mple.com"].map((delta) => `data: {"type":"new.delta","delta":"${delta}"}\n\n`)
      assert.notMatch(redact(route, deltas), /ne@|mple/)
    }
  })

  it("reads events after a byte order mark", () => {
    const out = redact("chat", ["\ufeff", content("To ja"), content("ne@example.com"), end])
    assert.strictEqual(contentOf(out.replace("\ufeff", "")), "To [EMAIL_2]")
  })

  it("sends the last word of reasoning before the content, and that of the content before tool calls", () => {
    const call = { index: 0, id: "call_1", type: "function", function: { name: "mail", arguments: "" } }
    const events = [
      chunk({ reasoning_content: "I think" }),
      content("Let me"),
      content(" see."),
      chunk({ tool_calls: [call] })
    ]
    assert.deepStrictEqual(deltasOf(redact("chat", [...events, end])), [
      { reasoning_content: "I " },
      { reasoning_content: "think" },
      { content: "Let " },
      { content: "me " },
      { content: "see." },
      { tool_calls: [call] },
      {}
    ])
  })

  it("finds values also where another text of the choice interrupts them", () => {
    const between = (before: string, after: string) =>
      contentOf(
        redact("chat", [content(before), chunk({ refusal: "x" }), content(after), chunk({ refusal: "y" }), end])
      )
    assert.strictEqual(between("To jane", "@example.com"), "To jane[EMAIL_2]")
    assert.strictEqual(between("To jane@exam", "ple.com"), "To [EMAIL_2]")
    assert.strictEqual(between("To 555-12", "3-4567"), "To [PHONE_1]")
    assert.strictEqual(between("To j", "ane now"), "To jane now")
    assert.strictEqual(between("To [EMA", "IL_1] now"), "To joe@example.org now")
  })

  it("names the role and a tool call once, also if all of the text is held", () => {
    const first = { role: "assistant", content: "jane" }
    const deltas = deltasOf(redact("chat", [chunk(first), end]))
    assert.deepStrictEqual(deltas, [{ role: "assistant", content: "" }, { content: "jane" }, {}])
    const call = { index: 0, id: "call_1", type: "function", function: { name: "mail", arguments: "jane" } }
    const calls = deltasOf(redact("chat", [chunk({ tool_calls: [call] }), end])).map(
      ({ tool_calls }) => tool_calls?.[0]
    )
    assert.deepStrictEqual(calls[1], { index: 0, type: "function", function: { arguments: "jane" } })
  })
})

describe("placeholders", () => {
  it("come back when they are split over ten events, in text and in tool arguments", () => {
    for (const size of [1, 2, 3]) {
      assert.strictEqual(
        throughChat("Call [PHONE_12], mail [EMAIL_1].", size),
        "Call +1-555-000-1111, mail joe@example.org."
      )
      assert.strictEqual(throughArguments('{"to":"[PHONE_12]"}', size), '{"to":"+1-555-000-1111"}')
    }
    assert.strictEqual(
      throughChat("[PHONE_13] [EMAIL_01] [EMAIL_1 ] [email_1]"),
      "[PHONE_13] [EMAIL_01] [EMAIL_1 ] [email_1]"
    )
  })

  it("come back ten thousand times, and new ones have numbers of their own", () => {
    assert.strictEqual(throughChat("[EMAIL_1] ".repeat(10_000), 4), "joe@example.org ".repeat(10_000))
    const found = throughChat("a@b.co ".repeat(10_000), 4).trim().split(" ")
    assert.deepStrictEqual(
      found,
      Array.from({ length: 10_000 }, (_, at) => `[EMAIL_${at + 2}]`)
    )
  })

  it("of a text that arrives only whole are the same in each of its copies", () => {
    const item = { type: "function_call", call_id: "c", name: "mail", arguments: '{"to":"a@b.co","cc":"c@d.co"}' }
    const message = {
      type: "message",
      content: [{ type: "output_text", text: "ok", annotations: [{ type: "url_citation", title: "by e@f.co" }] }]
    }
    const added = {
      output_index: 1,
      content_index: 0,
      annotation_index: 0,
      annotation: message.content[0]?.annotations[0]
    }
    const out = redact(
      "responses",
      [
        { type: "response.output_item.added", output_index: 0, item },
        { type: "response.output_item.done", output_index: 0, item },
        { type: "response.output_text.annotation.added", ...added },
        { type: "response.content_part.done", output_index: 1, content_index: 0, part: message.content[0] },
        { type: "response.output_item.done", output_index: 1, item: message },
        { type: "response.completed", response: { output: [item, message] } }
      ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    )
    const placeholders = out.match(/\[EMAIL_\d+\]/g) ?? []
    assert.deepStrictEqual(new Set(placeholders), new Set(["[EMAIL_2]", "[EMAIL_3]", "[EMAIL_4]"]))
    assert.strictEqual(out.match(/\[EMAIL_2\]/g)?.length, 3)
    assert.strictEqual(out.match(/\[EMAIL_4\]/g)?.length, 4)
  })
})

describe("values in disguise", () => {
  it.each([
    ["zero-width characters", "To ja\u200bne@\u00adexample\u2060.com now"],
    ["full-width characters", "To ｊａｎｅ＠ｅｘａｍｐｌｅ．ｃｏｍ now"],
    ["full-width digits", "To ５５５-１２３-４５６７ now"],
    ["mathematical digits", "To 𝟓𝟓𝟓-𝟏𝟐𝟑-𝟒𝟓𝟔𝟕 now"],
    ["spaces and dashes of other kinds", "To 987‑65‑4321 now"]
  ])("%s are found in every split", (_, text) => {
    for (let size = 1; size <= text.length; size++)
      assert.match(throughChat(text, size), /^To \[(EMAIL_2|PHONE_1|SSN_1)\] now$/)
  })

  it.each([
    [String.raw`{"a":"jane\u0040example.com"}`, '{"a":"[EMAIL_2]"}'],
    [String.raw`{"a":"{\"b\":\"jane\\u0040example.com\\n\"}"}`, String.raw`{"a":"{\"b\":\"[EMAIL_2]\\n\"}"}`],
    [String.raw`{"a":"\u005bEMAIL_1] [EMAIL_1]"}`, String.raw`{"a":"\u005bEMAIL_1] joe@example.org"}`],
    [String.raw`{"a":"\ud835\udfd3\ud835\udfd3\u0035-123-4567"}`, '{"a":"[PHONE_1]"}'],
    ['{"a":"see https://x.test","b":"[EMAIL_1]"}', '{"a":"see https://x.test","b":"joe@example.org"}'],
    ['{"a":"see https://x.test or [EMAIL_1]"}', '{"a":"see https://x.test or joe@example.org"}'],
    ['{"a":"https://x.test/?[EMAIL_1]"}', '{"a":"https://x.test/?[EMAIL_1]"}'],
    [
      String.raw`{"a":"<a href=\"https:\/\/x.test\/ [EMAIL_1]\">"}`,
      String.raw`{"a":"<a href=\"https:\/\/x.test\/ [EMAIL_1]\">"}`
    ],
    [
      '{"n":5551234567, "m":[-5551234567, 5551234567.5],"s":"5551234567"}',
      '{"n":5551234567, "m":[-5551234567, 5551234567.5],"s":"[PHONE_1]"}'
    ],
    ['{"n":555-123-4567,"e":jane@example.com}', '{"n":[PHONE_1],"e":[EMAIL_2]}'],
    ["5551234567, 5551234567", "[PHONE_1], [PHONE_2]"]
  ])("tool arguments %s are read as JSON", (text, expected) => {
    for (let size = 1; size <= text.length; size++) assert.strictEqual(throughArguments(text, size), expected)
  })
})

describe("a text of 1 MiB that is one candidate", () => {
  const size = 1_048_576
  const repeated = (unit: string) => unit.repeat(Math.ceil(size / unit.length)).slice(0, size)

  it.each(["a", "a.", "1", "1-", "+1 ", "(555) ", "a@", "@", "[EMAIL_", "[", "\u200b", "😀", "\\", "%4", "&#6"])(
    "of %s passes, and little of it is held",
    (unit) => {
      const text = repeated(unit)
      const redactor = redactorOf("chat")
      let out = ""
      for (let at = 0; at < text.length; at += 512) out += redactor.push(Buffer.from(content(text.slice(at, at + 512))))
      out += redactor.push(Buffer.from(end)) + redactor.end()
      assert.isAtMost(redactor.maxHeld, detectors.maxHeld)
      assert.isTrue(contentOf(out) === text || /\[(PHONE|EMAIL)_\d+\]/.test(out))
    }
  )
})
