import { isObject, type Json, type JsonObject } from "./Json.ts"

/** The position of media such as images: in the content of `messages`, or `anywhere` in the body of a service. */
export type Media = "messages" | "anywhere"

interface TokenEstimate {
  readonly tokens: number
  readonly members: number
}

/**
 * Estimates input tokens. Text counts one token per four bytes. A number or boolean counts one token. Base64 media
 * count by their media type. Does not recurse, because a body may nest more deeply than the call stack allows.
 */
export const estimateInput = (json: Json, media: Media, outputMembers: ReadonlyArray<string>): TokenEstimate => {
  let tokens = 0
  let members = 0
  const values: Array<Json> = []
  const positions: Array<ContentPosition> = []
  const push = (value: Json, position: ContentPosition) => {
    if (value === null) return
    values.push(value)
    positions.push(position)
  }
  if (isObject(json)) {
    for (const name of Object.keys(json)) {
      members++
      if (outputMembers.includes(name)) continue
      if (!protocolNames.has(name)) tokens += textTokens(name)
      push(json[name]!, media === "anywhere" ? "media" : (positionsAtTop.get(name) ?? "text"))
    }
  } else push(json, media === "anywhere" ? "media" : "text")
  for (let value = values.pop(); value !== undefined; value = values.pop()) {
    const position = positions.pop()!
    if (typeof value === "string")
      tokens += (position === "media" ? dataUrlTokens(value) : undefined) ?? textTokens(value)
    else if (Array.isArray(value)) for (const item of value) push(item, position)
    else if (isObject(value)) {
      const base64 = base64Tokens(value, position)
      tokens += base64 ?? 0
      for (const name of Object.keys(value)) {
        members++
        if (!protocolNames.has(name)) tokens += textTokens(name)
        if (base64 === undefined || name !== "data") push(value[name]!, positionOf(name, position))
      }
    } else tokens += 1
  }
  return { tokens, members }
}

type ContentPosition = "text" | "parts" | "source" | "media"

const positionsAtTop: ReadonlyMap<string, ContentPosition> = new Map(
  ["messages", "input", "system", "requests"].map((name) => [name, "parts"])
)

/** Other members, such as the arguments of tools, are text for the model. */
const positionsInParts: ReadonlyMap<string, ContentPosition> = new Map([
  ["params", "parts"],
  ["messages", "parts"],
  ["system", "parts"],
  ["content", "parts"],
  ["output", "parts"],
  ["file", "parts"],
  ["source", "source"],
  ["input_audio", "source"],
  ["image_url", "media"],
  ["file_data", "media"]
])

const positionOf = (name: string, position: ContentPosition): ContentPosition => {
  if (position === "parts") return positionsInParts.get(name) ?? "text"
  if (position === "source") return name === "content" ? "parts" : "text"
  return position
}

const textTokens = (text: string): number => Math.max(1, Math.ceil(Buffer.byteLength(text) / 4))

/** The usual tokens of an image, and the minimum for other media. */
export const imageTokens = 1600

/** A document page takes 3 to 100 KiB of base64. A second of audio takes 8 to 48 KiB. */
const documentBytesPerToken = 16
const audioBytesPerToken = 1024

/** Models read media of these types as text. Base64 takes four characters for three bytes. */
const textType = /^(?:text\/|application\/(?:[\w.+-]+\+)?(?:json|xml|yaml|javascript)\b)/i
const textBytesPerToken = 16 / 3

const mediaTokens = (type: string, base64Length: number): number => {
  if (textType.test(type)) return Math.max(imageTokens, Math.ceil(base64Length / textBytesPerToken))
  if (/^(?:application|text)\//i.test(type))
    return Math.max(imageTokens, Math.ceil(base64Length / documentBytesPerToken))
  if (/^(?:audio|video)\//i.test(type)) return Math.max(imageTokens, Math.ceil(base64Length / audioBytesPerToken))
  return imageTokens
}

/** Returns `undefined` if the string is not entirely a data URL, so that prose never counts as media. */
const dataUrlTokens = (text: string): number | undefined => {
  if (!text.startsWith("data:")) return undefined
  const comma = text.indexOf(",")
  const head = comma < 0 || comma > 512 ? "" : text.slice("data:".length, comma)
  if (!/^\S*;base64$/.test(head) || !isBase64(text.slice(comma + 1))) return undefined
  return mediaTokens(head, text.length - comma)
}

/** Reads Anthropic's `source` and OpenAI's `input_audio`. */
const base64Tokens = (value: JsonObject, position: ContentPosition): number | undefined => {
  const { data, format, media_type, type } = value
  if (position !== "source" && position !== "media") return undefined
  if (typeof data !== "string" || !isBase64(data)) return undefined
  if (type === "base64") return mediaTokens(typeof media_type === "string" ? media_type : "", data.length)
  return position === "source" && typeof format === "string" ? mediaTokens("audio/", data.length) : undefined
}

const isBase64 = (text: string): boolean => /^[A-Za-z0-9+/=_-]*$/.test(text)

/** Member names of the protocols. They cost no tokens. Any other name may be text for the model. */
const protocolNames: ReadonlySet<string> = new Set(
  `arguments background cache_control content custom_id data description detail dimensions effort encoding_format file file_data
  file_id filename format function functions guardrails id image_url include_usage input input_audio input_schema
  instructions items json_schema max_completion_tokens max_output_tokens max_tokens media_type messages metadata model n
  name output parallel_tool_calls parameters params previous_response_id properties reasoning reasoning_effort requests
  required response_format role schema seed service service_tier source stop stop_sequences store stream stream_options
  strict system temperature text thinking tool_call_id tool_calls tool_choice tool_use_id tools top_p type url user`.split(
    /\s+/
  )
)
