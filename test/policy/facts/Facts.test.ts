import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import * as Facts from "../../../src/policy/facts/Facts.ts"
import type { Json } from "../../../src/policy/facts/Json.ts"
import type { RouteId } from "../../../src/policy/routes/CanonicalRoute.ts"
import * as JsonText from "../../gateway/JsonText.ts"

describe("Facts", () => {
  it("reads model, stream, tools, estimates and guardrails from one body", () => {
    assert.deepStrictEqual(
      factsOf({
        model: "large",
        stream: true,
        messages: [{ role: "user", content: "abcdefgh" }],
        max_tokens: 12,
        tools: [{}],
        guardrails: ["pii-redact"],
        user: "ada"
      }),
      {
        requests: 1,
        models: ["large"],
        alternativeModels: [],
        omitsModel: false,
        unjudgedMember: undefined,
        stream: true,
        background: false,
        tools: true,
        toolCount: 1,
        toolSchemaBytes: 4,
        service: undefined,
        // large: 2, user: 1, abcdefgh: 2, true: 1, pii-redact: 3, ada: 1
        inputTokens: 10,
        boundedOutput: 12,
        openChoices: 0,
        largestOutput: 12,
        totalOutput: 12,
        choices: 1,
        guardrails: ["pii-redact"],
        namesGuardrails: true,
        references: [],
        stored: undefined,
        audio: false,
        itemIds: [],
        endUser: "ada"
      }
    )
  })

  it.each([
    [{ user: "ada" }, "ada"],
    [{ metadata: { user_id: "ada" } }, "ada"],
    [{ user: "ada", metadata: { user_id: "bob" } }, "ada"],
    [{ user: "", metadata: { user_id: "bob" } }, "bob"],
    [{ user: 7, metadata: [] }, undefined],
    [{ metadata: { user_id: null } }, undefined]
  ])("reads the end user of %j", (members, endUser) => {
    assert.strictEqual(factsOf({ model: "large", ...members }).endUser, endUser)
  })

  it("finds nothing in an empty object", () => {
    assert.deepStrictEqual(factsOf({}), { ...Facts.noFacts, omitsModel: true, openChoices: 1, choices: 1 })
  })

  it("takes null for not said", () => {
    const facts = factsOf({ stream: null, tools: null, guardrails: null, max_tokens: null })
    assert.deepStrictEqual(facts, {
      ...Facts.noFacts,
      omitsModel: true,
      openChoices: 1,
      choices: 1,
      namesGuardrails: true
    })
  })

  it.each([
    ["functions, the older name of tools", { functions: [{}] }, true],
    ["tools", { tools: [{}] }, true],
    ["an empty list of tools", { tools: [], functions: [] }, false]
  ])("%s: %j asks for tools: %s", (_, body, tools) => {
    assert.strictEqual(factsOf(body).tools, tools)
  })

  it("counts tools and the bytes of their JSON as it is written", () => {
    const { facts } = Result.getOrThrow(
      Facts.parse("chat-completions", Buffer.from('{"tools": [ {"name":"é"}, {} ],"functions":[{}]}'))
    )
    assert.deepStrictEqual([facts.toolCount, facts.toolSchemaBytes], [3, '[ {"name":"é"}, {} ]'.length + 1 + 4])
  })

  it("of a message batch counts the request with the most tools, and the one that asks for the most output", () => {
    const requests = [
      { params: { tools: [{}, {}], max_tokens: 5 } },
      { params: { tools: [{ a: "long description" }], max_tokens: 9 } },
      { params: {} }
    ]
    const { facts } = Result.getOrThrow(Facts.parse("message-batches", Buffer.from(JSON.stringify({ requests }))))
    assert.deepStrictEqual(
      [facts.toolCount, facts.toolSchemaBytes, facts.largestOutput, facts.boundedOutput, facts.openChoices],
      [2, '[{"a":"long description"}]'.length, 9, 14, 1]
    )
  })

  it("reads a list of as many models as a body has room for", () => {
    const fallbacks = Array<string>(300_000).fill("")
    assert.lengthOf(factsOf({ model: "a", fallbacks }).alternativeModels, fallbacks.length)
  })

  it("takes the service from service, else from service_name", () => {
    const services = [{ service: "ocr", service_name: "x" }, { service_name: "x" }, { service: "" }, { service: 1 }]
    assert.deepStrictEqual(
      services.map((body) => factsOf(body).service),
      ["ocr", "x", undefined, undefined]
    )
  })

  describe("estimates input as the reference does", () => {
    it("counts 3 and 12 for the pinned example", () => {
      const facts = factsOf({ messages: [{ role: "user", content: "abcdefgh" }], max_tokens: 12 })
      assert.deepStrictEqual([facts.inputTokens, facts.boundedOutput], [3, 12])
    })

    const estimate = (value: Json) => Facts.estimateInput({ messages: value }, "messages")

    it.each<[value: Json, tokens: number]>([
      [[""], 1],
      [["abcd"], 1],
      [["abcde"], 2],
      [["☃☃"], 2],
      [[1, 2.5, true, false, null], 4],
      [{ content: null, role: null }, 0],
      [{ a_long_key_counts_by_its_bytes: null }, 8],
      [[], 0],
      ["abcdefgh", 2],
      [`data: no media ${"A".repeat(100)}`, 29]
    ])("%j: %d", (value, tokens) => {
      assert.strictEqual(estimate(value), tokens)
    })

    const base64 = "A".repeat(160_000)
    const png = `data:image/png;base64,${base64}`
    const pdf = `data:application/pdf;base64,${base64}`

    it.each<[what: string, content: Json, tokens: number]>([
      ["a picture of chat", { image_url: { url: png } }, 1600],
      ["a picture of responses", { type: "input_image", image_url: png }, 3 + 1600],
      ["a picture of messages", { source: { type: "base64", media_type: "image/png", data: base64 } }, 2 + 3 + 1600],
      ["a picture that a tool gives back", { content: [{ source: { type: "base64", data: base64 } }] }, 2 + 1600],
      ["a short document", { file: { file_data: "data:application/pdf;base64,AAAA" } }, 1600],
      ["a document, by its length", { file: { file_data: pdf } }, 10_001],
      [
        "a document of messages",
        { source: { type: "base64", media_type: "application/pdf", data: base64 } },
        2 + 4 + 10_000
      ],
      ["a file of text", { file: { file_data: `data:text/plain;base64,${base64}` } }, 30_001],
      ["a file of JSON", { file: { file_data: `data:application/json;base64,${base64}` } }, 30_001],
      ["audio, by its length", { input_audio: { format: "wav", data: base64.repeat(20) } }, 1 + 3125]
    ])("takes %s for one", (_, content, tokens) => {
      assert.strictEqual(estimate([{ content: [content] }]), tokens)
    })

    const prose = "write_a_long_story_".repeat(10_000)
    it.each<[what: string, messages: Json]>([
      ["in a text", [{ content: `data:;base64,${prose}` }]],
      ["in a text part", [{ content: [{ text: `data:image/png;base64,${prose}` }] }]],
      ["in a picture, with a blank", [{ content: [{ image_url: `data:image/png;base64,${prose} ` }] }]],
      ["as the data of nothing", [{ content: [{ type: "base64", data: prose }] }]],
      ["as a tool's input", [{ content: [{ input: { image_url: `data:;base64,${prose}` } }] }]],
      ["as a name", [{ content: { [prose]: null } }]]
    ])("takes prose for prose %s", (_, messages) => {
      assert.isAtLeast(estimate(messages), prose.length / 4)
    })

    it("takes prose for prose in a tool's schema", () => {
      const tools = [{ parameters: { image_url: `data:;base64,${prose}` } }]
      assert.isAtLeast(Facts.estimateInput({ tools }, "messages"), prose.length / 4)
    })

    it("takes media for media anywhere in a service's JSON", () => {
      const json = { picture: png, scan: { type: "base64", data: base64 } }
      assert.strictEqual(Facts.estimateInput(json, "anywhere"), 2 + 1600 + 1 + 2 + 1600)
    })

    it("leaves out what is asked for as output, at the top only", () => {
      const output = { max_tokens: 7, max_completion_tokens: 8, max_output_tokens: 9 }
      assert.strictEqual(Facts.estimateInput(output, "messages"), 0)
      assert.strictEqual(Facts.estimateInput({ metadata: output }, "messages"), 3)
    })

    it("never depends on how the JSON is written, and grows with what it says", () => {
      fc.assert(
        fc.property(JsonText.value, JsonText.value, (one, other) => {
          const estimate = (text: string) => Facts.estimateInput(JSON.parse(text), "messages")
          assert.strictEqual(estimate(` ${one}\n`), estimate(JSON.stringify(JSON.parse(one))))
          assert.strictEqual(estimate(`{"type":${one},"text":${other}}`), estimate(`[${one},${other}]`))
          assert.isAtLeast(estimate(`[${one},${other}]`), estimate(`[${one}]`))
        }),
        { numRuns: 200 }
      )
    })

    it("walks a body that nests as deep as one may", () => {
      const deep = `{"input":${"[".repeat(255)}"abcdefgh"${"]".repeat(255)}}`
      assert.strictEqual(Result.getOrThrow(parse(deep)).facts.inputTokens, 2)
    })
  })

  describe("asks for as much output as the largest bound says", () => {
    it.each([
      [{ max_completion_tokens: 5, max_output_tokens: 6, max_tokens: 7 }, 7, 0],
      [{ max_completion_tokens: 1, max_tokens: 16_000 }, 16_000, 0],
      [{ max_output_tokens: 6, max_tokens: 7 }, 7, 0],
      [{ max_output_tokens: 6 }, 0, 1],
      [{ max_tokens: 7, n: 1.5 }, 14, 0],
      [{ max_tokens: 7.2 }, 8, 0],
      [{ max_tokens: 1e300 }, 1e12, 0],
      [{ max_tokens: 0 }, 0, 1],
      [{ max_tokens: -5 }, 0, 1],
      [{ n: 128 }, 0, 128],
      [{ n: 1e300 }, 0, 1e12],
      [{ n: 2, best_of: 5 }, 0, 5],
      [{}, 0, 1]
    ])("%j: %d bounded, %d answers open", (body, bounded, open) => {
      const { boundedOutput, openChoices } = factsOf(body)
      assert.deepStrictEqual([boundedOutput, openChoices], [bounded, open])
    })

    it("only a member that its route knows bounds an answer", () => {
      const asked = (["responses", "messages", "message-batches"] as const).map((route) => {
        const { boundedOutput, largestOutput, openChoices } = factsOf({ max_completion_tokens: 5 }, route)
        return [boundedOutput, openChoices, largestOutput]
      })
      assert.deepStrictEqual(asked, [
        [0, 1, 5],
        [0, 1, 5],
        [0, 1, 5]
      ])
    })

    it("nothing on a route without output", () => {
      for (const route of ["embeddings", "messages-count-tokens"] as const) {
        assert.deepInclude(factsOf({ max_tokens: 5 }, route), { boundedOutput: 0, openChoices: 0 })
      }
    })

    it("of one request and of all", () => {
      const facts = factsOf({ max_completion_tokens: 1, max_tokens: 50_000, n: 2 })
      assert.deepStrictEqual([facts.boundedOutput, facts.largestOutput], [100_000, 100_000])
    })
  })

  describe("a message batch", () => {
    const batch = (...params: ReadonlyArray<object>) => ({
      requests: params.map((one) => ({ custom_id: "c", params: one }))
    })

    it("counts every request: models, streaming, tools, output", () => {
      const facts = factsOf(
        batch(
          { model: "small", max_tokens: 5 },
          { model: "large", max_tokens: 7, tools: [{}] },
          { model: "small", max_tokens: 1 }
        ),
        "message-batches"
      )
      assert.deepInclude(facts, {
        requests: 3,
        models: ["small", "large"],
        stream: false,
        tools: true,
        boundedOutput: 13,
        openChoices: 0
      })
    })

    it("counts apart what its requests bound and what they leave open", () => {
      const facts = factsOf(batch({ max_tokens: 5 }, {}, { n: 2 }), "message-batches")
      assert.deepStrictEqual([facts.boundedOutput, facts.openChoices], [5, 3])
    })

    it("is one request anywhere else", () => {
      assert.deepInclude(factsOf(batch({ model: "small" }, { model: "large" }), "messages"), {
        requests: 1,
        models: []
      })
    })
  })

  describe("reads extra_body as upstreams do that lay it over the request, and as those that do not", () => {
    it.each([
      ["a bound", { max_tokens: 5, extra_body: { max_tokens: 16_000 } }, [16_000, 0, 16_000]],
      ["a smaller bound", { max_tokens: 16_000, extra_body: { max_tokens: 5 } }, [16_000, 0, 16_000]],
      ["a number of answers", { max_tokens: 100, extra_body: { n: 40 } }, [4000, 0, 4000]],
      ["best_of", { max_tokens: 100, extra_body: { best_of: 3 } }, [300, 0, 300]],
      ["a bound where the request has none", { n: 2, extra_body: { max_tokens: 10 } }, [0, 2, 20]],
      ["answers without a bound", { extra_body: { n: 40 } }, [0, 40, 0]],
      ["a bound taken back", { max_tokens: 5, extra_body: { max_tokens: null } }, [0, 1, 5]]
    ] as const)("%s", (_, body, [bounded, open, named]) => {
      const facts = factsOf(body)
      assert.deepStrictEqual([facts.boundedOutput, facts.openChoices, facts.totalOutput], [bounded, open, named])
    })

    it("in each request of a batch", () => {
      const params = { max_tokens: 5, extra_body: { max_tokens: 1000 } }
      const facts = factsOf({ requests: [{ params }, { params }] }, "message-batches")
      assert.deepInclude(facts, { boundedOutput: 2000, largestOutput: 1000, totalOutput: 2000 })
    })

    it("background, streaming, tools and objects", () => {
      const more = { background: true, stream: true, tools: [{}], previous_response_id: "resp_1", conversation: "c" }
      const facts = factsOf({ extra_body: more }, "responses")
      assert.deepInclude(facts, { background: true, stream: true, toolCount: 1, choices: 1 })
      assert.sameDeepMembers(
        [...facts.references],
        [
          { kind: "response", id: "resp_1" },
          { kind: "conversation", id: "c" }
        ]
      )
    })

    it.each([
      ['{"extra_body":{"max_tokens":1,"max_tokens":2}}', "max_tokens"],
      ['{"extra_body":{"m\\u006fdel":"large"}}', "model"],
      ['{"extra_body":{"stream":"true"}}', "extra_body.stream"],
      ['{"extra_body":{"n":"40"}}', "extra_body.n"]
    ])("refuses in it what it refuses in the request: %s", (text, param) => {
      assert.strictEqual(Result.getOrThrow(Result.flip(parse(text))).param, param)
    })

    it("refuses one that may replace the requests of a batch", () => {
      const text = '{"requests":[],"extra_body":{"requests":[{"params":{}}]}}'
      assert.strictEqual(Result.getOrThrow(Result.flip(parse(text, "message-batches"))).param, "extra_body")
    })
  })

  it("never takes a body for something else than JSON.parse does", () => {
    fc.assert(
      fc.property(JsonText.body, (text) => {
        const body: { readonly [key: string]: unknown } = JSON.parse(text)
        const parsed = parse(text)
        if (Result.isFailure(parsed)) {
          const { code, message } = parsed.failure
          if (code === "invalid_guardrail_request") assert.exists(body["guardrails"])
          else assert.match(message, /must be written without escapes/)
          return
        }
        assert.strictEqual(parsed.success.text, text)
        assert.strictEqual(parsed.success.facts.namesGuardrails, "guardrails" in body)
      }),
      { numRuns: 300 }
    )
  })
})

const parse = (text: string, routeId: RouteId = "chat-completions") => Facts.parse(routeId, Buffer.from(text))
const factsOf = (body: object, routeId?: RouteId) => Result.getOrThrow(parse(JSON.stringify(body), routeId)).facts
