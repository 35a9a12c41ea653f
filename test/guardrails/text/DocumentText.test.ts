import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { type DocumentText, ofRequest, ofResponse } from "../../../src/guardrails/text/DocumentText.ts"
import { EventReader } from "../../../src/guardrails/text/EventReader.ts"
import { type TextRoute, textRoutes } from "../../../src/guardrails/text/Place.ts"
import { places } from "./Places.ts"

const valuesOf = (json: string, found: DocumentText | undefined): ReadonlyArray<string> =>
  (found?.spans ?? []).map(({ end, start }) => JSON.parse(json.slice(start, end)))

const request = (route: TextRoute, document: unknown) => {
  const json = JSON.stringify(document)
  return valuesOf(json, ofRequest(route, json))
}

describe("every string is text, but for what the protocol defines:", () => {
  it("ids, types, roles and models are none", () => {
    const message = { role: "user", content: "hi", id: "msg_1" }
    assert.deepStrictEqual(request("chat", { model: "a@b.co", messages: [message], service_tier: "auto" }), ["hi"])
    const item = {
      type: "function_call",
      id: "fc_1",
      call_id: "call_1",
      name: "f",
      status: "completed",
      arguments: "{}"
    }
    assert.deepStrictEqual(request("responses", { previous_response_id: "resp_1", input: [item] }), ["{}"])
  })

  it("an id or a type that looks like a person's words is text", () => {
    assert.deepStrictEqual(request("chat", { messages: [{ role: "a@b.co", tool_call_id: "to Zoë" }] }), [
      "a@b.co",
      "to Zoë"
    ])
    assert.deepStrictEqual(request("other", { id: "4155552671", status: "415-555-2671" }), ["415-555-2671"])
    assert.deepStrictEqual(request("other", { id: "a%40b.co", type: "a b" }), ["a%40b.co", "a b"])
    assert.deepStrictEqual(valuesOf('{"id":"a\\u0040b.co"}', ofRequest("other", '{"id":"a\\u0040b.co"}')), ["a@b.co"])
  })

  it("base64 and data URLs are none, but anything else in their place is", () => {
    const source = (data: string) => ({ role: "user", content: [{ type: "image", source: { type: "base64", data } }] })
    assert.deepStrictEqual(request("messages", { messages: [source("iVBORw0KGgo=")] }), [])
    assert.deepStrictEqual(request("messages", { messages: [source("mail zoe")] }), ["mail zoe"])
    const file = `data:image/png;base64,${"QUJD".repeat(64)}`
    assert.deepStrictEqual(request("chat", { messages: [{ content: file }] }), [])
    assert.deepStrictEqual(request("chat", { messages: [{ content: "data:text/plain,zoe" }] }), ["data:text/plain,zoe"])
    const escaped = `{"file_data":"data:image\\/png;base64,${"\\/9j\\/".repeat(64)}"}`
    assert.deepStrictEqual(ofRequest("other", escaped)?.spans, [])
  })

  it("the names that users choose in tool arguments, metadata and schemas hide nothing", () => {
    const free = { id: "1", type: "2", model: "3", signature: "4", role: "5" }
    const input = { messages: [{ role: "assistant", content: [{ type: "tool_use", name: "f", input: free }] }] }
    assert.deepStrictEqual(request("messages", { ...input, metadata: free }), [
      "1",
      "2",
      "3",
      "4",
      "5",
      "1",
      "2",
      "3",
      "4",
      "5"
    ])
    const properties = { type: { type: "string", description: "a", enum: ["b"], default: { type: "c" } } }
    const parameters = { type: "object", required: ["type"], properties }
    assert.deepStrictEqual(request("responses", { tools: [{ type: "function", name: "f", parameters }] }), [
      "a",
      "b",
      "c"
    ])
  })

  it("arguments are JSON as a string and plain text as an object", () => {
    const json = '{"messages":[{"tool_calls":[{"function":{"arguments":"{}"}},{"function":{"arguments":{"a":"b"}}}]}]}'
    assert.deepStrictEqual(
      ofRequest("chat", json)?.spans.map(({ writing }) => writing),
      ["json", "plain"]
    )
  })

  it("thinking is signed only with a signature, and its order does not matter", () => {
    const signed = (block: string) => {
      const json = `{"messages":[{"content":[${block}]}]}`
      return ofRequest("messages", json)?.spans.map((span) => span.signed)
    }
    assert.deepStrictEqual(signed('{"type":"thinking","thinking":"a","signature":"c2ln"}'), [true])
    assert.deepStrictEqual(signed('{"signature":"c2ln","thinking":"a","type":"thinking"}'), [true])
    assert.deepStrictEqual(signed('{"type":"thinking","thinking":"a","signature":""}'), [false])
    assert.deepStrictEqual(signed('{"type":"redacted_thinking","data":"c2ln"}'), [])
  })

  it("a tool's answer is a tool result, whatever its form", () => {
    const places = (message: object) => {
      const json = JSON.stringify({ messages: [message] })
      return new Set(ofRequest("messages", json)?.spans.map(({ place }) => place))
    }
    const content = [
      { type: "text", text: "a" },
      { type: "search_result", title: "b", content: [{ type: "text", text: "c" }] }
    ]
    assert.deepStrictEqual(places({ content: [{ type: "tool_result", content }] }), new Set(["tool result"]))
    assert.deepStrictEqual(places({ content: [{ type: "tool_result", content: "a" }] }), new Set(["tool result"]))
  })

  it("a member that no rule knows leaks nothing, wherever it stands", () => {
    const word = fc.stringMatching(/^[a-z_]{1,12}$/).filter((name) => !/_ids?$|^encrypted_/.test(name))
    fc.assert(
      fc.property(fc.constantFrom(...places), fc.nat(), word, (row, position, name) => {
        const [example] = row.example(["a text"])
        if (typeof example === "string") return
        const document: unknown = JSON.parse(JSON.stringify(example))
        const objects = objectsIn(document)
        Object.assign(objects[position % objects.length] ?? {}, { [`${name}_x`]: { deep: ["Zoë wrote"] } })
        const json = JSON.stringify(document)
        const found =
          row.delivery === "plain"
            ? (row.direction === "request" ? ofRequest : ofResponse)(row.route, json)
            : new EventReader(row.route).read(undefined, json)
        const texts = (found?.spans ?? []).map(({ end, start }) => json.slice(start, end))
        assert.include(texts.concat(scores(row.place)), '"Zoë wrote"')
      }),
      { numRuns: 3_000 }
    )
  })
})

/** Token probabilities are unreadable as a whole. */
const scores = (place: string) => (place === "token probabilities" ? ['"Zoë wrote"'] : [])

describe("documents of any kind", () => {
  const other = (json: string) => valuesOf(json, ofRequest("other", json))

  it("have their spans in order, each a whole literal", () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(...textRoutes), (json, route) => {
        for (const found of [ofRequest(route, json), ofResponse(route, json)]) {
          let last = 0
          for (const { end, start } of found?.spans ?? []) {
            assert.isAtLeast(start, last)
            assert.typeOf(JSON.parse(json.slice(start, end)), "string")
            last = end
          }
        }
      })
    )
  })

  it("have a span for each string that is not empty", () => {
    const value = fc.string().map((text) => `é ${text}`)
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        value,
        fc.integer(),
        fc.array(tie("tree")),
        fc.dictionary(fc.string(), tie("tree"))
      )
    }))
    fc.assert(
      fc.property(tree, (document) => {
        const json = JSON.stringify({ document }, undefined, 1)
        assert.deepStrictEqual(
          other(json).filter((text) => text.startsWith("é ")),
          stringsIn(JSON.parse(json))
        )
      })
    )
  })

  it("are undefined if they are no JSON", () => {
    for (const json of ["", "{", '{"a":"b"', "[1,]", '{"a":"\\x"}', '"a" "b"', "01", "nul"]) {
      assert.isUndefined(ofRequest("chat", json))
      assert.isUndefined(ofResponse("responses", json))
    }
  })

  it("may be the lines of a batch's results", () => {
    const line = (text: string) => JSON.stringify({ result: { message: { content: [{ type: "text", text }] } } })
    const json = `${line("a")}\n${line("b")}\n`
    assert.deepStrictEqual(valuesOf(json, ofResponse("message_batches", json)), ["a", "b"])
  })
})

const objectsIn = (value: unknown): ReadonlyArray<object> =>
  typeof value !== "object" || value === null
    ? []
    : [...(Array.isArray(value) ? [] : [value]), ...Object.values(value).flatMap(objectsIn)]

const stringsIn = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.values(value).flatMap(stringsIn)
      : []
