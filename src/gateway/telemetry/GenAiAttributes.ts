import type { RequestParameters } from "../../policy/facts/RequestParameters.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import type { GenAiVersion } from "../../process/SemanticConventions.ts"

export type Operation = "chat" | "text_completion" | "embeddings"

/** What spans and metrics say of a call of a model. Prompts and answers are not among the facts. */
export interface ModelCallFacts extends RequestParameters {
  readonly operation: Operation
  readonly provider: string
  readonly requestModel?: string | undefined
  readonly serverAddress: string
  readonly serverPort: number
  readonly streams?: true | undefined
  readonly responseId?: string | undefined
  readonly responseModel?: string | undefined
  readonly finishReasons?: ReadonlyArray<string> | undefined
  readonly secondsToFirstChunk?: number | undefined
  readonly inputTokens?: number | undefined
  readonly outputTokens?: number | undefined
  readonly cacheReadTokens?: number | undefined
  readonly cacheWriteTokens?: number | undefined
  readonly reasoningTokens?: number | undefined
  readonly tokenType?: "input" | "output" | undefined
  readonly errorType?: string | undefined
}

/** The attribute of each fact: in v1.36.0, where it may be missing, and in v1.41.1. */
const names: { readonly [Fact in keyof Required<ModelCallFacts>]: readonly [former: string | null, latest: string] } = {
  operation: ["gen_ai.operation.name", "gen_ai.operation.name"],
  provider: ["gen_ai.system", "gen_ai.provider.name"],
  conversationId: ["gen_ai.conversation.id", "gen_ai.conversation.id"],
  outputType: ["gen_ai.output.type", "gen_ai.output.type"],
  requestModel: ["gen_ai.request.model", "gen_ai.request.model"],
  streams: [null, "gen_ai.request.stream"],
  maxTokens: ["gen_ai.request.max_tokens", "gen_ai.request.max_tokens"],
  temperature: ["gen_ai.request.temperature", "gen_ai.request.temperature"],
  topP: ["gen_ai.request.top_p", "gen_ai.request.top_p"],
  topK: ["gen_ai.request.top_k", "gen_ai.request.top_k"],
  choiceCount: ["gen_ai.request.choice.count", "gen_ai.request.choice.count"],
  seed: ["gen_ai.request.seed", "gen_ai.request.seed"],
  frequencyPenalty: ["gen_ai.request.frequency_penalty", "gen_ai.request.frequency_penalty"],
  presencePenalty: ["gen_ai.request.presence_penalty", "gen_ai.request.presence_penalty"],
  encodingFormats: ["gen_ai.request.encoding_formats", "gen_ai.request.encoding_formats"],
  dimensions: [null, "gen_ai.embeddings.dimension.count"],
  responseId: ["gen_ai.response.id", "gen_ai.response.id"],
  responseModel: ["gen_ai.response.model", "gen_ai.response.model"],
  finishReasons: ["gen_ai.response.finish_reasons", "gen_ai.response.finish_reasons"],
  secondsToFirstChunk: [null, "gen_ai.response.time_to_first_chunk"],
  inputTokens: ["gen_ai.usage.input_tokens", "gen_ai.usage.input_tokens"],
  outputTokens: ["gen_ai.usage.output_tokens", "gen_ai.usage.output_tokens"],
  cacheReadTokens: [null, "gen_ai.usage.cache_read.input_tokens"],
  cacheWriteTokens: [null, "gen_ai.usage.cache_creation.input_tokens"],
  reasoningTokens: [null, "gen_ai.usage.reasoning.output_tokens"],
  tokenType: ["gen_ai.token.type", "gen_ai.token.type"],
  serverAddress: ["server.address", "server.address"],
  serverPort: ["server.port", "server.port"],
  errorType: ["error.type", "error.type"]
}

type Value = string | number | boolean | ReadonlyArray<string>

/** Returns the attributes of the facts that are known, by their names in the version. */
export const attributesOf = (
  version: GenAiVersion,
  facts: Partial<ModelCallFacts>
): ReadonlyArray<readonly [name: string, value: Value]> => {
  const attributes: Array<readonly [string, Value]> = []
  for (const fact of factNames) {
    const value = facts[fact]
    const name = names[fact][version === "v1.36.0" ? 0 : 1]
    if (value !== undefined && name !== null && !(fact === "choiceCount" && value === 1)) attributes.push([name, value])
  }
  return attributes
}

const isFact = (name: string): name is keyof ModelCallFacts => name in names
const factNames = Object.keys(names).filter(isFact)

interface Vendor {
  readonly host: RegExp
  readonly name: string
  /** The name in v1.36.0, if it was another one. */
  readonly formerName?: string
}

/** The vendors that the conventions name, by the hosts of their APIs. */
const vendors: ReadonlyArray<Vendor> = [
  { host: /(?:^|\.)openai\.azure\.com$/, name: "azure.ai.openai" },
  { host: /\.ai\.azure\.com$/, name: "azure.ai.inference" },
  { host: /(?:^|\.)openai\.com$/, name: "openai" },
  { host: /(?:^|\.)anthropic\.com$/, name: "anthropic" },
  { host: /^bedrock[\w-]*\.[\w.-]+\.amazonaws\.com$/, name: "aws.bedrock" },
  { host: /^generativelanguage\.googleapis\.com$/, name: "gcp.gemini" },
  { host: /(?:^|-)aiplatform\.googleapis\.com$/, name: "gcp.vertex_ai" },
  { host: /\.ml\.cloud\.ibm\.com$/, name: "ibm.watsonx.ai" },
  { host: /(?:^|\.)cohere\.(?:com|ai)$/, name: "cohere" },
  { host: /(?:^|\.)deepseek\.com$/, name: "deepseek" },
  { host: /(?:^|\.)groq\.com$/, name: "groq" },
  { host: /(?:^|\.)mistral\.ai$/, name: "mistral_ai" },
  { host: /(?:^|\.)perplexity\.ai$/, name: "perplexity" },
  { host: /(?:^|\.)x\.ai$/, name: "x_ai", formerName: "xai" }
]

/** A proxy such as LiteLLM hides the vendor. The conventions then want the vendor whose protocol is spoken. */
export const providerOf = (version: GenAiVersion, host: string, family: Family): string => {
  const vendor = vendors.find((vendor) => vendor.host.test(host))
  if (vendor === undefined) return family === "a" ? "openai" : "anthropic"
  return version === "v1.36.0" ? (vendor.formerName ?? vendor.name) : vendor.name
}
