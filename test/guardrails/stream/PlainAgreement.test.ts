import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as PiiRedact from "../../../src/guardrails/PiiRedact.ts"
import { StreamRedactor } from "../../../src/guardrails/stream/StreamRedactor.ts"
import type { TextRoute } from "../../../src/guardrails/text/Place.ts"
import { renumbered } from "../../e2e/streams/Renumbered.ts"
import * as VendorAnswers from "../../e2e/streams/VendorAnswers.ts"
import { Random, randomPieces, randomText } from "../redact/RandomTexts.ts"

const cases = Number(process.env["GUARDED_STREAMS"] ?? 300)
const known = new Map([
  ["[EMAIL_1]", "joe@example.org"],
  ["[PHONE_9]", "+1-555-000-1111"]
])
const options = (route: TextRoute): PiiRedact.Options => ({ config: { unreadable: "pass" }, route, known })

/** The members of a stream's events that make up its message, by where they belong. */
type Texts = Record<string, unknown>

const eventsOf = (stream: string) =>
  stream.split("\n\n").flatMap((event) => {
    const data = event.slice(event.indexOf("data: ") + 6)
    return data.startsWith("{") ? [JSON.parse(data)] : []
  })

const texts = () => {
  const all: Record<string, string> = {}
  const add = (place: string, piece: string | null | undefined) => {
    if (piece) all[place] = (all[place] ?? "") + piece
  }
  return { all, add }
}

const ofChat = (stream: string): Texts => {
  const { add, all } = texts()
  for (const { choices } of eventsOf(stream))
    for (const { delta, index } of choices) {
      add(`${index} reasoning`, delta.reasoning_content)
      add(`${index} content`, delta.content)
      add(`${index} refusal`, delta.refusal)
      for (const call of delta.tool_calls ?? []) add(`${index} tool ${call.index}`, call.function.arguments)
    }
  return all
}

const ofPlainChat = (plain: string): Texts => {
  const { add, all } = texts()
  for (const { index, message } of JSON.parse(plain).choices) {
    add(`${index} reasoning`, message.reasoning_content)
    add(`${index} content`, message.content)
    add(`${index} refusal`, message.refusal)
    for (const [at, call] of (message.tool_calls ?? []).entries()) add(`${index} tool ${at}`, call.function.arguments)
  }
  return all
}

const ofResponses = (stream: string): Texts => {
  const { add, all } = texts()
  const events = eventsOf(stream)
  for (const { delta, output_index, type } of events) if (type.endsWith(".delta")) add(`${output_index} text`, delta)
  for (const { item, output_index, type } of events)
    if (type === "response.output_item.done") add(`${output_index} copy`, textOfItem(item))
  for (const [index, item] of events.at(-1).response.output.entries()) add(`${index} last copy`, textOfItem(item))
  return all
}

interface Item {
  readonly summary?: readonly [{ readonly text: string }]
  readonly content?: readonly [{ readonly text?: string; readonly refusal?: string }]
  readonly arguments?: string
  readonly input?: string
}

const textOfItem = ({ arguments: json, content, input, summary }: Item): string | undefined =>
  summary?.[0].text ?? content?.[0].text ?? content?.[0].refusal ?? json ?? input

const ofPlainResponse = (plain: string): Texts => {
  const { add, all } = texts()
  for (const [index, item] of JSON.parse(plain).output.entries())
    for (const place of ["text", "copy", "last copy"]) add(`${index} ${place}`, textOfItem(item))
  return all
}

const ofMessages = (stream: string): Texts => {
  const { add, all } = texts()
  for (const { delta, index } of eventsOf(stream)) {
    add(`${index} text`, delta?.text)
    add(`${index} thinking`, delta?.thinking)
    add(`${index} input`, delta?.partial_json)
  }
  return Object.fromEntries(
    Object.entries(all).map(([place, text]) => [place, place.endsWith("input") ? JSON.parse(text) : text])
  )
}

const ofPlainMessage = (plain: string): Texts =>
  Object.fromEntries(
    JSON.parse(plain).content.flatMap((block: VendorAnswers.Json, index: number) =>
      ["text", "thinking", "input"].flatMap((member) => (block[member] ? [[`${index} ${member}`, block[member]]] : []))
    )
  )

/** A text whose placeholders are all known, because the numbers of invented ones may be given to new values. */
const textOf = (random: Random): string =>
  randomText(random, 6).toWellFormed().replaceAll("[SSN_1]", "[EMAIL_1]").replaceAll("[EMAIL_2]", "[PHONE_9]")

/** JSON as models write it, with more escapes than necessary. */
const toolInput = (random: Random): string => {
  const nested = JSON.stringify({ e: textOf(random) })
  const value = { a: textOf(random), b: [textOf(random), 5551234567, random.below(1_000_000_000)], c: { d: nested } }
  const json = JSON.stringify(value, null, random.of([0, 1]))
  const escaped = random.of(["@", "/", "5", "-", "unescaped"])
  const code = escaped.charCodeAt(0).toString(16).padStart(4, "0")
  return json.replace(/"(?:[^"\\]|\\.)*"/g, (text) => text.replaceAll(escaped, `\\u${code}`))
}

const answerOf = (random: Random): VendorAnswers.ModelAnswer => {
  const call = (id: string) => ({ id, tool: "send", input: toolInput(random) })
  return {
    ...(random.below(2) === 0 && { reasoning: textOf(random), signature: "c2ln" }),
    text: textOf(random),
    ...(random.below(3) === 0 && { refusal: textOf(random) }),
    ...(random.below(2) === 0 && { calls: [call("call_1"), call("call_2")] }),
    ...(random.below(3) === 0 && { script: textOf(random) })
  }
}

interface Family {
  readonly route: TextRoute
  readonly render: (random: Random, size: number) => VendorAnswers.Rendered
  readonly streamed: (stream: string) => Texts
  readonly plain: (plain: string) => Texts
}

const families: ReadonlyArray<Family> = [
  {
    route: "chat",
    render: (random, size) => VendorAnswers.chat([answerOf(random), answerOf(random)], size),
    streamed: ofChat,
    plain: ofPlainChat
  },
  {
    route: "responses",
    render: (random, size) => VendorAnswers.responses(answerOf(random), size),
    streamed: ofResponses,
    plain: ofPlainResponse
  },
  {
    route: "messages",
    render: (random, size) => VendorAnswers.messages(answerOf(random), size),
    streamed: ofMessages,
    plain: ofPlainMessage
  }
]

describe("the message of a guarded stream", () => {
  it.each(families)("of $route equals the plain answer of the same content", ({ plain, render, route, streamed }) => {
    const seed = Number(process.env["GUARDED_SEED"] ?? Date.now() % 1_000_000_007)
    const random = new Random(seed)
    for (let index = 0; index < cases; index++) {
      const rendered = render(random, random.of([1, 2, 3, 8, 30, 10_000]))
      const stream = rendered.events.join("")
      const redaction = Result.getOrThrow(PiiRedact.redactionOf("response", options(route)))
      const redactor = new StreamRedactor(redaction, route)
      let out = ""
      for (const piece of randomPieces(random, Buffer.from(stream).toString("latin1")))
        out += redactor.push(Buffer.from(piece, "latin1"))
      out += redactor.end()
      const text = JSON.stringify(rendered.plain)
      const document = Result.getOrThrow(PiiRedact.redactResponse(text, options(route), "fail_open")).text
      assert.deepStrictEqual(renumbered(streamed(out)), renumbered(plain(document)), `seed ${seed}, case ${index}`)
    }
  })
})
