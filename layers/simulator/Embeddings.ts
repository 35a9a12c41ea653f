import { type Json, numberOf, textOf } from "./Json.ts"
import { tokensOf } from "./Reply.ts"
import { errorResponse, jsonResponse, type Moment, type SimulatedResponse } from "./SimulatedResponse.ts"

const defaultDimensions = 256
const mostDimensions = 3_072
const mostInputs = 2_048

export const embeddings = (body: Json, moment: Moment): SimulatedResponse => {
  const inputs = inputsOf(body["input"])
  const dimensions = numberOf(body["dimensions"]) ?? defaultDimensions
  if (inputs === undefined || inputs.length === 0 || inputs.length > mostInputs) {
    return errorResponse("A", moment, 400, "'$.input' is invalid.", { param: "input" })
  }
  if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > mostDimensions) {
    return errorResponse("A", moment, 400, "'$.dimensions' is invalid.", { param: "dimensions" })
  }
  const encode = body["encoding_format"] === "base64" ? base64Of : (vector: Float32Array) => [...vector]
  const tokens = inputs.reduce((sum, input) => sum + input.tokens, 0)
  return jsonResponse({
    object: "list",
    data: inputs.map((input, index) => ({
      object: "embedding",
      index,
      embedding: encode(vectorOf(input.text, dimensions))
    })),
    model: textOf(body["model"]) ?? "",
    usage: { prompt_tokens: tokens, total_tokens: tokens }
  })
}

interface Input {
  readonly text: string
  readonly tokens: number
}

/** Accepts a text, a list of texts, a list of tokens, or a list of lists of tokens. */
const inputsOf = (input: unknown): ReadonlyArray<Input> | undefined => {
  if (!Array.isArray(input) || input.every((item) => typeof item === "number")) {
    const only = inputOf(input)
    return only && [only]
  }
  const inputs = input.map(inputOf)
  return inputs.every((one) => one !== undefined) ? inputs : undefined
}

const inputOf = (input: unknown): Input | undefined => {
  if (typeof input === "string") return input === "" ? undefined : { text: input, tokens: tokensOf(input) }
  if (!Array.isArray(input) || input.length === 0 || !input.every((token) => typeof token === "number"))
    return undefined
  return { text: input.join(" "), tokens: input.length }
}

/** Equal texts get equal vectors. A hash of the text (FNV-1a) seeds a random generator (xorshift). */
const vectorOf = (text: string, dimensions: number): Float32Array => {
  let state = 0x811c9dc5
  for (const byte of Buffer.from(text)) state = Math.imul(state ^ byte, 0x01000193)
  state ||= 1
  const vector = Float32Array.from({ length: dimensions }, () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state / 0x8000_0000
  })
  const norm = Math.hypot(...vector)
  return vector.map((component) => component / norm)
}

/** Encodes a vector as little-endian 32-bit floats in Base64, the form that OpenAI's client requests. */
const base64Of = (vector: Float32Array): string => {
  const bytes = Buffer.alloc(vector.length * 4)
  vector.forEach((component, i) => {
    bytes.writeFloatLE(component, i * 4)
  })
  return bytes.toString("base64")
}
