import { assert, describe, it } from "@effect/vitest"
import * as conventions from "@opentelemetry/semantic-conventions/incubating"
import { attributesOf, type ModelCallFacts, providerOf } from "../../../src/gateway/telemetry/GenAiAttributes.ts"
import { genAiVersionOf } from "../../../src/process/SemanticConventions.ts"

/** Every fact that is known of a call. */
const facts: Required<ModelCallFacts> = {
  operation: "chat",
  provider: "openai",
  requestModel: "gpt-5",
  serverAddress: "api.openai.com",
  serverPort: 443,
  streams: true,
  maxTokens: 100,
  temperature: 0.5,
  topP: 0.9,
  topK: 40,
  choiceCount: 2,
  seed: 7,
  frequencyPenalty: 0.1,
  presencePenalty: 0.2,
  outputType: "json",
  encodingFormats: ["float"],
  dimensions: 256,
  conversationId: "conv_1",
  responseId: "chatcmpl-1",
  responseModel: "gpt-5-2025",
  finishReasons: ["stop"],
  secondsToFirstChunk: 0.4,
  inputTokens: 10,
  outputTokens: 20,
  cacheReadTokens: 5,
  cacheWriteTokens: 1,
  reasoningTokens: 3,
  tokenType: "input",
  errorType: "500"
}

const named = (name: string) => Object.entries(conventions).find(([, value]) => value === name)?.[0]
const namesIn = (version: Parameters<typeof attributesOf>[0]) => attributesOf(version, facts).map(([name]) => name)

describe("the attributes of calls of models", () => {
  it("are named by the conventions", () => {
    for (const version of ["v1.36.0", "v1.41.1"] as const) {
      for (const name of namesIn(version)) assert.match(named(name) ?? "", /^ATTR_/, name)
    }
  })

  it("name each fact in the latest version, and those of the former one differ by these", () => {
    assert.lengthOf(namesIn("v1.41.1"), Object.keys(facts).length)
    assert.deepStrictEqual(
      namesIn("v1.36.0").filter((name) => !namesIn("v1.41.1").includes(name)),
      [conventions.ATTR_GEN_AI_SYSTEM]
    )
    assert.deepStrictEqual(
      namesIn("v1.41.1").filter((name) => !namesIn("v1.36.0").includes(name)),
      [
        conventions.ATTR_GEN_AI_PROVIDER_NAME,
        conventions.ATTR_GEN_AI_REQUEST_STREAM,
        conventions.ATTR_GEN_AI_EMBEDDINGS_DIMENSION_COUNT,
        conventions.ATTR_GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK,
        conventions.ATTR_GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
        conventions.ATTR_GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS,
        conventions.ATTR_GEN_AI_USAGE_REASONING_OUTPUT_TOKENS
      ]
    )
  })

  it("leave out what is unknown, and a single choice", () => {
    assert.deepStrictEqual(attributesOf("v1.41.1", { operation: "embeddings", seed: undefined, choiceCount: 1 }), [
      ["gen_ai.operation.name", "embeddings"]
    ])
  })

  it.each([
    ["api.openai.com", "a", conventions.GEN_AI_PROVIDER_NAME_VALUE_OPENAI],
    ["me.openai.azure.com", "a", conventions.GEN_AI_PROVIDER_NAME_VALUE_AZURE_AI_OPENAI],
    ["models.inference.ai.azure.com", "a", conventions.GEN_AI_PROVIDER_NAME_VALUE_AZURE_AI_INFERENCE],
    ["api.anthropic.com", "b", conventions.GEN_AI_PROVIDER_NAME_VALUE_ANTHROPIC],
    ["bedrock-runtime.eu-west-1.amazonaws.com", "b", conventions.GEN_AI_PROVIDER_NAME_VALUE_AWS_BEDROCK],
    ["generativelanguage.googleapis.com", "a", conventions.GEN_AI_PROVIDER_NAME_VALUE_GCP_GEMINI],
    ["europe-west4-aiplatform.googleapis.com", "b", conventions.GEN_AI_PROVIDER_NAME_VALUE_GCP_VERTEX_AI],
    ["eu-de.ml.cloud.ibm.com", "a", conventions.GEN_AI_PROVIDER_NAME_VALUE_IBM_WATSONX_AI],
    ["api.cohere.com", "a", conventions.GEN_AI_PROVIDER_NAME_VALUE_COHERE],
    ["api.deepseek.com", "a", conventions.GEN_AI_PROVIDER_NAME_VALUE_DEEPSEEK],
    ["api.groq.com", "a", conventions.GEN_AI_PROVIDER_NAME_VALUE_GROQ],
    ["api.mistral.ai", "a", conventions.GEN_AI_PROVIDER_NAME_VALUE_MISTRAL_AI],
    ["api.perplexity.ai", "a", conventions.GEN_AI_PROVIDER_NAME_VALUE_PERPLEXITY],
    ["api.x.ai", "a", conventions.GEN_AI_PROVIDER_NAME_VALUE_X_AI],
    // a proxy is named by the protocol that it speaks
    ["litellm", "a", conventions.GEN_AI_PROVIDER_NAME_VALUE_OPENAI],
    ["litellm", "b", conventions.GEN_AI_PROVIDER_NAME_VALUE_ANTHROPIC],
    ["notopenai.com", "b", conventions.GEN_AI_PROVIDER_NAME_VALUE_ANTHROPIC]
  ] as const)("name the vendor at %s for family %s %s", (host, family, provider) => {
    assert.strictEqual(providerOf("v1.41.1", host, family), provider)
    const former = provider === "x_ai" ? conventions.GEN_AI_SYSTEM_VALUE_XAI : provider
    assert.strictEqual(providerOf("v1.36.0", host, family), former)
  })
})

describe("OTEL_SEMCONV_STABILITY_OPT_IN", () => {
  it.each([
    ["", "v1.36.0"],
    ["http,database/dup", "v1.36.0"],
    ["gen_ai", "v1.36.0"],
    ["gen_ai_latest_experimental", "v1.41.1"],
    ["http, gen_ai_latest_experimental ,database", "v1.41.1"]
  ])("%j selects %s", (optIn, version) => {
    assert.strictEqual(genAiVersionOf(optIn), version)
  })
})
