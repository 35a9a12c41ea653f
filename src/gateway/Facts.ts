import { Result } from "effect"
import * as JsonMembers from "./JsonMembers.ts"
import type { RouteId } from "./model/CanonicalRoute.ts"

/** What a decision needs to know of a body, from one parse. */
export interface Facts {
  /** How many requests the body holds: one, or those of a message batch. */
  readonly requests: number
  /** Every model that the request would use; several in a message batch. */
  readonly models: ReadonlyArray<string>
  readonly stream: boolean
  readonly tools: boolean
  /** Estimated tokens of the input (reference §5). */
  readonly inputTokens: number
  /** The most output tokens that the request asks for, when it says so. */
  readonly maxOutputTokens: number | undefined
  /** Top-level `guardrails`: names that the client asks for. The member is the gateway's, and no upstream sees it. */
  readonly guardrails: ReadonlyArray<string>
  readonly namesGuardrails: boolean
}

export const none: Facts = {
  requests: 1,
  models: [],
  stream: false,
  tools: false,
  inputTokens: 0,
  maxOutputTokens: undefined,
  guardrails: [],
  namesGuardrails: false
}

export interface BodyProblem {
  readonly code: "invalid_request_body" | "invalid_guardrail_request"
  readonly message: string
  readonly param?: string
}

/** A body that was read: its text for rewriting, and its facts. */
export interface ParsedBody {
  readonly text: string
  readonly facts: Facts
  /** `stream_options` as the client wrote it, when it is an object (family A). */
  readonly streamOptions: { readonly [key: string]: unknown } | undefined
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

type Json = null | boolean | number | string | ReadonlyArray<Json> | JsonObject
interface JsonObject {
  readonly [key: string]: Json
}

/** Reads the JSON object that a canonical route takes. Whatever two readers could understand differently is refused. */
export const parse = (routeId: RouteId | "compat", bytes: Uint8Array): Result.Result<ParsedBody, BodyProblem> => {
  const text = Result.try({ try: () => utf8.decode(bytes), catch: () => problem("The body is not valid UTF-8.") })
  if (Result.isFailure(text)) return Result.fail(text.failure)
  const parsed = Result.try({
    try: (): Json => JSON.parse(text.success),
    catch: () =>
      problem(bytes.length === 0 ? "The body is empty; this route takes a JSON object." : "The body is not valid JSON.")
  })
  if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
  const json = parsed.success
  if (!isObject(json)) return Result.fail(problem("The body must be a JSON object."))
  const ambiguity = firstAmbiguity(decidingObjects(routeId, text.success))
  if (ambiguity !== undefined) return Result.fail(ambiguity)
  const mistyped = typeMistake(routeId, json)
  if (mistyped !== undefined) return Result.fail(mistyped)
  const guardrails = json["guardrails"] ?? []
  if (!isStrings(guardrails)) {
    return Result.fail({
      code: "invalid_guardrail_request",
      message: '"guardrails" must be an array of guardrail names.',
      param: "guardrails"
    })
  }
  return Result.succeed({
    text: text.success,
    streamOptions: isObject(json["stream_options"]) ? json["stream_options"] : undefined,
    facts: {
      ...featuresOf(routeId, json),
      inputTokens: estimateInput(json),
      maxOutputTokens: askedOutput(requestsOf(routeId, json).map(([, request]) => request)),
      guardrails,
      namesGuardrails: json["guardrails"] !== undefined
    }
  })
}

const problem = (message: string, param?: string): BodyProblem => ({
  code: "invalid_request_body",
  message,
  ...(param === undefined ? {} : { param })
})

const printable = (name: string): string => name.replace(/[^\x20-\x7e]/g, "?").slice(0, 64)

/** The objects whose members decide: the body, and in a message batch each request and its `params`. */
const decidingObjects = (routeId: RouteId | "compat", text: string): ReadonlyArray<string> => {
  if (routeId !== "message-batches") return [text]
  const requests = valuesOf(text, "requests").flatMap(JsonMembers.items)
  return [text, ...requests, ...requests.flatMap((request) => valuesOf(request, "params"))]
}

const valuesOf = (text: string, key: string): ReadonlyArray<string> =>
  JsonMembers.topLevel(text).flatMap((member) =>
    member.key === key ? [text.slice(member.valueStart, member.end)] : []
  )

/**
 * What two readers could understand differently: a key that appears twice, and a plain one in disguise (`"m\u006fdel"`).
 * V8's own parser is one of the readers: it can take an escaped key for another one that an earlier body had in its place
 * (nodejs/node#63785), and then a model, a stream or a tool would pass unseen.
 */
const firstAmbiguity = (objects: ReadonlyArray<string>): BodyProblem | undefined => {
  for (const object of objects) {
    const seen = new Set<string>()
    for (const { escaped, key } of JsonMembers.topLevel(object)) {
      if (seen.has(key)) return problem(`"${printable(key)}" appears more than once in the body.`, printable(key))
      if (escaped && plainKey.test(key)) return problem(`"${key.slice(0, 64)}" must be written without escapes.`, key)
      seen.add(key)
    }
  }
  return undefined
}

const plainKey = /^[\w-]{1,64}$/

const isObject = (json: Json | undefined): json is JsonObject =>
  typeof json === "object" && json !== null && !Array.isArray(json)

const isStrings = (json: Json): json is ReadonlyArray<string> =>
  Array.isArray(json) && json.every((item) => typeof item === "string")

/** The members that decisions hang on must have their types: `"stream":"true"` must not stream past a permission. */
const typeMistake = (routeId: RouteId | "compat", json: JsonObject): BodyProblem | undefined => {
  for (const [at, request] of requestsOf(routeId, json)) {
    if (!isObject(request)) return problem(`"${at}" must be an object.`, at)
    const where = at === "" ? "" : `${at}.`
    const { model, stream, tools } = request
    if (model !== undefined && typeof model !== "string")
      return problem(`"${where}model" must be a string.`, `${where}model`)
    if (stream !== undefined && stream !== null && typeof stream !== "boolean") {
      return problem(`"${where}stream" must be true or false.`, `${where}stream`)
    }
    if (tools !== undefined && tools !== null && !Array.isArray(tools)) {
      return problem(`"${where}tools" must be an array.`, `${where}tools`)
    }
  }
  return undefined
}

/** The requests inside a body: itself, or each of a message batch, with the path of each. */
const requestsOf = (routeId: RouteId | "compat", json: JsonObject): ReadonlyArray<readonly [string, Json]> => {
  const batch = json["requests"]
  if (routeId !== "message-batches" || !Array.isArray(batch)) return [["", json]]
  return batch.map((item: Json, index) => [
    `requests.${index}.params`,
    isObject(item) ? (item["params"] ?? null) : null
  ])
}

const featuresOf = (
  routeId: RouteId | "compat",
  json: JsonObject
): Pick<Facts, "requests" | "models" | "stream" | "tools"> => {
  const requests = requestsOf(routeId, json).flatMap(([, request]) => (isObject(request) ? [request] : []))
  const models = requests.flatMap(({ model }) => (typeof model === "string" && model !== "" ? [model] : []))
  return {
    requests: requests.length,
    models: [...new Set(models)],
    stream: requests.some(({ stream }) => stream === true),
    // `functions` is the older name of the same permission
    tools: requests.some(({ functions, tools }) => nonEmpty(tools) || nonEmpty(functions))
  }
}

const nonEmpty = (json: Json | undefined): boolean => Array.isArray(json) && json.length > 0

/** Counted on their own, in this order of preference: what the request asks for, not what it says. */
const outputMembers = ["max_completion_tokens", "max_output_tokens", "max_tokens"]

/** What providers charge for a picture of usual size; its base64 text says nothing about tokens. */
const inlineMediaTokens = 1600

/** The sum over all requests of the body, or `undefined` when one of them leaves it open. */
const askedOutput = (requests: ReadonlyArray<Json>): number | undefined => {
  let sum = 0
  for (const request of requests) {
    const asked = isObject(request)
      ? outputMembers.map((name) => request[name]).find((value) => typeof value === "number" && value > 0)
      : undefined
    if (typeof asked !== "number" || !isObject(request)) return undefined
    sum += Math.min(Math.ceil(asked) * choicesOf(request), 1e12)
  }
  return sum
}

/** How many answers a request asks for at once (`best_of` are made, `n` of them shown). */
const choicesOf = (request: JsonObject): number =>
  Math.max(1, ...[request["n"], request["best_of"]].filter((count) => typeof count === "number"))

/**
 * Estimated input tokens of a JSON body (reference §5): each string a quarter of its bytes and at least 1, numbers and
 * booleans 1, `null` 0, keys nothing, the output that is asked for left out. Inline media (`data:` URLs and base64
 * sources) count as a picture does. The walk keeps its own stack: a body may nest deeper than the call stack.
 */
export const estimateInput = (json: Json): number => {
  let tokens = 0
  const pending: Array<Json> = isObject(json)
    ? Object.entries(json).flatMap(([key, value]) => (outputMembers.includes(key) ? [] : [value]))
    : [json]
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    if (typeof value === "string") {
      tokens += isDataUrl(value) ? inlineMediaTokens : Math.max(1, Math.ceil(Buffer.byteLength(value) / 4))
    } else if (Array.isArray(value)) {
      for (const item of value) pending.push(item)
    } else if (isObject(value)) {
      const inline = value["type"] === "base64" && typeof value["data"] === "string" && isBase64(value["data"])
      if (inline) tokens += inlineMediaTokens
      for (const [key, member] of Object.entries(value)) {
        if (!(inline && key === "data")) pending.push(member)
      }
    } else if (value !== null) {
      tokens += 1
    }
  }
  return tokens
}

/** All of it, so that no prose passes for a picture by its first words. */
const isDataUrl = (text: string): boolean => /^data:[^,\s]{0,256};base64,[A-Za-z0-9+/=_-]*$/.test(text)

const isBase64 = (text: string): boolean => /^[A-Za-z0-9+/=_-]*$/.test(text)
