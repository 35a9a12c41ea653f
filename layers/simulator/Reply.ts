import { type Json, listOf, objectOf, textOf } from "./Json.ts"

/** A conversation in a form that is independent of the API family. */
export interface Prompt {
  readonly model: string
  readonly text: string
  /** `undefined` if the last message is the result of a tool. */
  readonly lastUserText: string | undefined
  readonly tools: ReadonlyArray<Tool>
  readonly maxTokens: number | undefined
}

interface Tool {
  readonly name: string
  readonly schema: Json
}

export interface ToolCall {
  readonly name: string
  readonly arguments: Json
}

interface Usage {
  readonly input: number
  /** The cached tokens. `input` includes them. */
  readonly cached: number
  readonly output: number
  /** The reasoning tokens. `output` includes them. */
  readonly reasoning: number
}

export interface Reply {
  /** A stream sends `text` in these pieces. */
  readonly pieces: ReadonlyArray<string>
  readonly text: string
  readonly call: ToolCall | undefined
  readonly finish: "stop" | "length" | "call"
  readonly usage: Usage
}

/** The same prompt always gets the same reply. */
export const replyTo = (prompt: Prompt): Reply => {
  const tool = prompt.lastUserText?.toLowerCase().includes("tool") ? prompt.tools[0] : undefined
  if (tool !== undefined) {
    const call: ToolCall = { name: tool.name, arguments: objectOf(exampleOf(tool.schema, prompt.lastUserText ?? "")) }
    const usage = usageOf(prompt, JSON.stringify(call))
    return { pieces: [], text: "", call, finish: "call", usage }
  }
  const allPieces = piecesOf(replyText(prompt))
  const pieces =
    prompt.maxTokens === undefined ? allPieces : allPieces.slice(0, piecesWithin(allPieces, prompt.maxTokens))
  const text = pieces.join("")
  const finish = pieces.length < allPieces.length ? "length" : "stop"
  return { pieces, text, call: undefined, finish, usage: usageOf(prompt, text) }
}

/** A token is assumed to have four bytes of UTF-8, as in English text. */
export const tokensOf = (text: string): number => Math.max(1, Math.ceil(Buffer.byteLength(text) / 4))

/** Content is a text or a list of parts. Images and tool results are ignored. */
export const contentText = (content: unknown): string =>
  textOf(content) ??
  listOf(content)
    .map((part) => textOf(objectOf(part)["text"]) ?? "")
    .join("")

const longestEcho = 4_000

const replyText = (prompt: Prompt): string =>
  prompt.lastUserText === undefined
    ? `${prompt.model} (simulated) has read the tool's result.`
    : `${prompt.model} (simulated) heard: ${prompt.lastUserText.slice(0, longestEcho).toWellFormed()}`.trimEnd()

/** Splits before spaces and in long words, but never inside a character. */
const piecesOf = (text: string): ReadonlyArray<string> => text.match(/\s*\S{1,24}/gu) ?? []

const piecesWithin = (pieces: ReadonlyArray<string>, tokens: number): number => {
  let bytes = 0
  let count = 0
  for (const piece of pieces) {
    bytes += Buffer.byteLength(piece)
    if (Math.ceil(bytes / 4) > tokens) break
    count += 1
  }
  return count
}

const reasoningTokens = 64
/** The real providers do not cache shorter prompts. */
const minCachedTokens = 1_024

const usageOf = (prompt: Prompt, output: string): Usage => {
  const input = tokensOf(prompt.text)
  const reasoning = /reasoning|(^|\/)o\d/.test(prompt.model) ? reasoningTokens : 0
  return {
    input,
    cached: input < minCachedTokens ? 0 : Math.floor(input / 256) * 128,
    output: tokensOf(output) + reasoning,
    reasoning
  }
}

/** Makes arguments for the required properties of a tool, from its JSON schema. */
const exampleOf = (schema: Json, text: string): unknown => {
  const choices = listOf(schema["enum"])
  if (choices.length > 0) return choices[0]
  switch (schema["type"]) {
    case "string":
      return text.slice(0, 200).toWellFormed()
    case "number":
    case "integer":
      return 1
    case "boolean":
      return true
    case "array":
      return []
    default: {
      const properties = objectOf(schema["properties"])
      const required = listOf(schema["required"]).filter((name) => typeof name === "string")
      return Object.fromEntries(required.map((name) => [name, exampleOf(objectOf(properties[name]), text)]))
    }
  }
}
