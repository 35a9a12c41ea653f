import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { EventReader } from "../../../src/guardrails/text/EventReader.ts"
import { messagesEvents, responsesEvents } from "../../../src/guardrails/text/EventTypes.ts"
import { deltaOfBlock } from "../../../src/guardrails/text/MessagesRules.ts"
import { items } from "../../../src/guardrails/text/ResponsesRules.ts"

/** The declarations of an SDK's module, without comments. */
const declarations = (path: string) =>
  readFileSync(`node_modules/${path}`, "utf8").replaceAll(/\/\*\*[\s\S]*?\*\//g, "")

const responses = declarations("openai/resources/responses/responses.d.ts")
const messages = declarations("@anthropic-ai/sdk/resources/messages/messages.d.ts")
const betaMessages = declarations("@anthropic-ai/sdk/resources/beta/messages/messages.d.ts")
const chat = declarations("openai/resources/chat/completions/completions.d.ts")

const between = (text: string, from: string, to: string): string => {
  const start = text.indexOf(from)
  assert.notStrictEqual(start, -1, `${from} is not declared`)
  return text.slice(start + from.length, text.indexOf(to, start))
}

/** The names of the types in a union. */
const members = (source: string, union: string): ReadonlyArray<string> =>
  between(source, `export type ${union} = `, ";")
    .split("|")
    .map((name) => name.trim())

/** The body of an interface, which may stand in a namespace, as in `ResponseOutputItem.McpCall`. */
const body = (source: string, name: string): string => {
  const [space = "", inner] = name.split(".")
  if (inner === undefined) return between(source, `export interface ${space} `, "\n}\n")
  return between(between(source, `export declare namespace ${space} {`, "\n}\n"), `    interface ${inner} `, "\n    }")
}

/** The value of the member `type`, which may stand in the interface that another one extends. */
const typeOf = (source: string, name: string): string => {
  const text = body(source, name)
  const type = /\n +type\??: '([^']+)'/.exec(text)?.[1]
  const base = /^extends (\w+) /.exec(text)?.[1]
  return type ?? (base === undefined ? `no type in ${name}` : typeOf(source, base))
}

const typesIn = (source: string, union: string): ReadonlyArray<string> =>
  members(source, union).map((name) => typeOf(source, name))

const missing = (types: ReadonlyArray<string>, known: (type: string) => boolean) => types.filter((type) => !known(type))

describe("the SDKs' stream events:", () => {
  it("each event of OpenAI's responses has a row", () => {
    const types = typesIn(responses, "ResponseStreamEvent")
    assert.isAbove(types.length, 50)
    assert.deepStrictEqual(
      missing(types, (type) => Object.hasOwn(responsesEvents, type)),
      []
    )
  })

  it("each event of OpenAI's responses has a rule for each of its strings", () => {
    const unknown = members(responses, "ResponseStreamEvent").flatMap((name) => {
      const type = typeOf(responses, name)
      const strings = [...body(responses, name).matchAll(/\n {4}(\w+)\??: string/g)].map(([, member = ""]) => member)
      return strings.filter((member) => {
        const event = JSON.stringify({ type, [member]: "QUJD" })
        return new EventReader("responses").read(undefined, event)?.spans[0]?.place === "other text"
      })
    })
    assert.deepStrictEqual(unknown, [])
  })

  it("each item of OpenAI's responses has a rule", () => {
    const types = typesIn(responses, "ResponseOutputItem").concat(typesIn(responses, "ResponseItem"))
    const withoutSpecialPlaces = new Set([
      "message",
      "compaction",
      "local_shell_call_output",
      "apply_patch_call_output",
      "mcp_approval_response"
    ])
    assert.deepStrictEqual(
      missing(types, (type) => items.variants.has(type) || withoutSpecialPlaces.has(type)),
      []
    )
  })

  it.each([
    ["messages", messages, ""],
    ["beta messages", betaMessages, "Beta"]
  ])("each event and delta of Anthropic's %s has a row", (_, source, prefix) => {
    assert.deepStrictEqual(
      missing(typesIn(source, `${prefix}RawMessageStreamEvent`), (type) => Object.hasOwn(messagesEvents, type)),
      []
    )
    const deltas = deltaOfBlock.members.get("delta")?.variants
    assert.deepStrictEqual(
      missing(typesIn(source, `${prefix}RawContentBlockDelta`), (type) => deltas?.has(type) === true),
      []
    )
  })

  it.each([
    ["messages", messages, ""],
    ["beta messages", betaMessages, "Beta"]
  ])("each block of Anthropic's %s has a rule", (_, source, prefix) => {
    const withoutText = new Set(["fallback"])
    const rule = messagesEvents["content_block_start"]?.rule.members.get("content_block")
    const types = typesIn(source, `${prefix}ContentBlock`).concat(typesIn(source, `${prefix}ContentBlockParam`))
    assert.deepStrictEqual(
      missing(types, (type) => rule?.variants.has(type) === true || withoutText.has(type)),
      []
    )
  })

  it("each member of a chat delta has a place", () => {
    const names = [...between(chat, "        interface Delta {", "\n        }").matchAll(/\n {12}(\w+)\??:/g)]
    const choices = new EventReader("chat")
    const spans = names.map(([, name = ""]) => {
      const json = JSON.stringify({ choices: [{ index: 0, delta: { [name]: "a" } }] })
      return [name, choices.read(undefined, json)?.spans.map(({ place }) => place)]
    })
    assert.deepStrictEqual(Object.fromEntries(spans), {
      audio: ["other text"],
      content: ["message content"],
      function_call: ["other text"],
      refusal: ["refusal"],
      role: [],
      tool_calls: ["other text"]
    })
  })
})
