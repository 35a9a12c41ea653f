import { assert, describe, it } from "@effect/vitest"
import type { JsonObject } from "../../../src/policy/facts/Json.ts"
import * as RequestParameters from "../../../src/policy/facts/RequestParameters.ts"

/** Those that a request has. */
const read = (request: JsonObject) =>
  Object.fromEntries(Object.entries(RequestParameters.of(request)).filter(([, value]) => value !== undefined))

describe("the parameters of a request", () => {
  it("are those of a chat completion", () => {
    const request = {
      ...{
        model: "m",
        max_completion_tokens: 50,
        max_tokens: 60,
        temperature: 0,
        top_p: 0.5,
        n: 2,
        stop: "canary-stop"
      },
      ...{ seed: 7, frequency_penalty: 0.1, presence_penalty: -0.1, response_format: { type: "json_schema" } },
      messages: [{ role: "user", content: "canary-prompt" }]
    }
    const parameters = read(request)
    assert.deepStrictEqual(parameters, {
      ...{ maxTokens: 50, temperature: 0, topP: 0.5, choiceCount: 2 },
      ...{ seed: 7, frequencyPenalty: 0.1, presencePenalty: -0.1, outputType: "json" }
    })
    assert.notInclude(JSON.stringify(parameters), "canary")
  })

  it("are those of a message, a response and an embedding", () => {
    assert.deepStrictEqual(read({ max_tokens: 9, top_k: 40, stop_sequences: ["END"] }), { maxTokens: 9, topK: 40 })
    assert.deepStrictEqual(
      read({ max_output_tokens: 9, conversation: { id: "conv_1" }, text: { format: { type: "text" } } }),
      {
        maxTokens: 9,
        conversationId: "conv_1",
        outputType: "text"
      }
    )
    assert.deepStrictEqual(read({ conversation: "conv_2" }), { conversationId: "conv_2" })
    assert.deepStrictEqual(read({ encoding_format: "base64", dimensions: 256 }), {
      encodingFormats: ["base64"],
      dimensions: 256
    })
  })

  it("leave out what has another type", () => {
    assert.deepStrictEqual(
      read({
        temperature: "hot",
        n: null,
        stop: [],
        seed: {},
        conversation: "a b",
        encoding_format: "canary",
        text: []
      }),
      {}
    )
  })
})
