import type { Json, JsonObject } from "./Json.ts"

/**
 * Where media may stand in place of text: `messages`, in the content parts of messages; `anywhere`, in any JSON, as that
 * of registered services.
 */
export type Media = "messages" | "anywhere"

export interface TokenEstimate {
  readonly tokens: number
  /** The members of all objects that were walked through. */
  readonly members: number
}

/**
 * Estimated input tokens of a JSON body: each string a quarter of its bytes and at least 1, numbers and booleans 1,
 * `null` 0, names that are not the protocols' own a quarter of their bytes, bounds of the output nothing. Base64 says
 * nothing about tokens, so pictures, documents and audio count by their kind, where a model would see them as such:
 * anywhere else the same text is prose. The walk keeps its own stack: a body may nest deeper than the call stack.
 */
export const estimateInput = (json: Json, media: Media, outputMembers: ReadonlyArray<string>): TokenEstimate => {
  let tokens = 0
  let members = 0
  const values: Array<Json> = []
  const places: Array<ContentPosition> = []
  const push = (value: Json, place: ContentPosition) => {
    if (value === null) return
    values.push(value)
    places.push(place)
  }
  if (isObject(json)) {
    for (const name of Object.keys(json)) {
      members++
      if (outputMembers.includes(name)) continue
      if (!protocolNames.has(name)) tokens += textTokens(name)
      push(json[name]!, media === "anywhere" ? "media" : (placesAtTop.get(name) ?? "text"))
    }
  } else push(json, media === "anywhere" ? "media" : "text")
  for (let value = values.pop(); value !== undefined; value = values.pop()) {
    const place = places.pop()!
    if (typeof value === "string") tokens += (place === "media" ? dataUrlTokens(value) : undefined) ?? textTokens(value)
    else if (Array.isArray(value)) for (const item of value) push(item, place)
    else if (isObject(value)) {
      const base64 = base64Tokens(value, place)
      tokens += base64 ?? 0
      for (const name of Object.keys(value)) {
        members++
        if (!protocolNames.has(name)) tokens += textTokens(name)
        if (base64 === undefined || name !== "data") push(value[name]!, placeOf(name, place))
      }
    } else tokens += 1
  }
  return { tokens, members }
}

/** What may stand at a place: text alone, messages and their parts, or the medium itself. */
type ContentPosition = "text" | "parts" | "source" | "media"

const placesAtTop: ReadonlyMap<string, ContentPosition> = new Map(
  ["messages", "input", "system", "requests"].map((name) => [name, "parts"])
)

/** Below parts. What a tool is given or described by is text to the model, whatever its members are called. */
const placesInParts: ReadonlyMap<string, ContentPosition> = new Map([
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

const placeOf = (name: string, place: ContentPosition): ContentPosition => {
  if (place === "parts") return placesInParts.get(name) ?? "text"
  // the source of a document may be content again
  if (place === "source") return name === "content" ? "parts" : "text"
  return place
}

const textTokens = (text: string): number => Math.max(1, Math.ceil(Buffer.byteLength(text) / 4))

/** What providers charge for a picture of usual size, whatever its bytes; and at the least for any other medium. */
export const imageTokens = 1600

/** Bytes of base64 for a token: pages of a document are from 3 to 100 KiB, a second of audio is from 8 to 48. */
const documentBytesPerToken = 16
const audioBytesPerToken = 1024

/** Models read them as they read prose, which has three bytes in four of base64. */
const textType = /^(?:text\/|application\/(?:[\w.+-]+\+)?(?:json|xml|yaml|javascript)\b)/i
const textBytesPerToken = 16 / 3

const mediaTokens = (type: string, base64Length: number): number => {
  if (textType.test(type)) return Math.max(imageTokens, Math.ceil(base64Length / textBytesPerToken))
  if (/^(?:application|text)\//i.test(type))
    return Math.max(imageTokens, Math.ceil(base64Length / documentBytesPerToken))
  if (/^(?:audio|video)\//i.test(type)) return Math.max(imageTokens, Math.ceil(base64Length / audioBytesPerToken))
  return imageTokens
}

/** All of the text must be one, so that no prose passes for a picture by its first words. */
const dataUrlTokens = (text: string): number | undefined => {
  if (!text.startsWith("data:")) return undefined
  const comma = text.indexOf(",")
  const head = comma < 0 || comma > 512 ? "" : text.slice("data:".length, comma)
  if (!/^\S*;base64$/.test(head) || !isBase64(text.slice(comma + 1))) return undefined
  return mediaTokens(head, text.length - comma)
}

/** Of an object whose member `data` is base64: `source` of family B, `input_audio` of family A. */
const base64Tokens = (value: JsonObject, place: ContentPosition): number | undefined => {
  const { data, format, media_type, type } = value
  if (place !== "source" && place !== "media") return undefined
  if (typeof data !== "string" || !isBase64(data)) return undefined
  if (type === "base64") return mediaTokens(typeof media_type === "string" ? media_type : "", data.length)
  return place === "source" && typeof format === "string" ? mediaTokens("audio/", data.length) : undefined
}

const isBase64 = (text: string): boolean => /^[A-Za-z0-9+/=_-]*$/.test(text)

const isObject = (json: Json): json is JsonObject => typeof json === "object" && json !== null && !Array.isArray(json)

/** The protocols' own names say nothing to a model. Any other may be a sentence. */
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
