import { isObject, type Json, type JsonObject } from "./Json.ts"

/**
 * What a request asks of the model, beside its texts. Stop sequences are texts, which guardrails redact. A member of an
 * unexpected type is absent.
 */
export interface RequestParameters {
  readonly maxTokens?: number | undefined
  readonly temperature?: number | undefined
  readonly topP?: number | undefined
  readonly topK?: number | undefined
  readonly choiceCount?: number | undefined
  readonly seed?: number | undefined
  readonly frequencyPenalty?: number | undefined
  readonly presencePenalty?: number | undefined
  readonly outputType?: "text" | "json" | undefined
  readonly encodingFormats?: ReadonlyArray<string> | undefined
  readonly dimensions?: number | undefined
  readonly conversationId?: string | undefined
}

/** Reads the members of both protocols. Their names differ, so a request has each parameter once. */
export const of = (request: JsonObject): RequestParameters => ({
  maxTokens:
    numberIn(request["max_completion_tokens"]) ??
    numberIn(request["max_output_tokens"]) ??
    numberIn(request["max_tokens"]),
  temperature: numberIn(request["temperature"]),
  topP: numberIn(request["top_p"]),
  topK: numberIn(request["top_k"]),
  choiceCount: numberIn(request["n"]),
  seed: numberIn(request["seed"]),
  frequencyPenalty: numberIn(request["frequency_penalty"]),
  presencePenalty: numberIn(request["presence_penalty"]),
  outputType: outputTypeIn(request["response_format"]) ?? outputTypeIn(memberOf(request["text"], "format")),
  encodingFormats: encodingFormatsIn(request["encoding_format"]),
  dimensions: numberIn(request["dimensions"]),
  conversationId: identifierIn(request["conversation"]) ?? identifierIn(memberOf(request["conversation"], "id"))
})

const numberIn = (json: Json | undefined): number | undefined => (typeof json === "number" ? json : undefined)

const memberOf = (json: Json | undefined, name: string): Json | undefined => (isObject(json) ? json[name] : undefined)

const outputTypeIn = (format: Json | undefined): "text" | "json" | undefined => {
  const type = memberOf(format, "type")
  return type === "text" ? "text" : type === "json_object" || type === "json_schema" ? "json" : undefined
}

const encodingFormatsIn = (json: Json | undefined): ReadonlyArray<string> | undefined =>
  json === "float" || json === "base64" ? [json] : undefined

const identifierIn = (json: Json | undefined): string | undefined =>
  typeof json === "string" && /^[\w.:-]{1,128}$/.test(json) ? json : undefined
