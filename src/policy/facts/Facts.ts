import { Result } from "effect"
import type { Provider, RouteId } from "../routes/CanonicalRoute.ts"
import * as CompatPaths from "../routes/CompatPaths.ts"
import { referencedObjects, referringMembers, type UpstreamObject } from "../routes/UpstreamObjects.ts"
import * as InputEstimate from "./InputEstimate.ts"
import type { Json, JsonObject } from "./Json.ts"
import * as JsonBounds from "./JsonBounds.ts"
import * as JsonMembers from "./JsonMembers.ts"
import * as NamedModels from "./NamedModels.ts"

/** What a decision needs to know of a body, from one parse. */
export interface Facts {
  /** How many requests the body holds: one, or those of a message batch. */
  readonly requests: number
  /** The models that its requests ask for: one, or several in a message batch. Prices go by them. */
  readonly models: ReadonlyArray<string>
  /** Models that stand beside them, as in `fallbacks`: the upstream may use each, and need not know any. */
  readonly alternativeModels: ReadonlyArray<string>
  /** A request of the body leaves its model to the upstream, on a route that has one. */
  readonly omitsModel: boolean
  /** A member that may choose a model in a way that nobody here can follow. */
  readonly unjudgedMember: string | undefined
  readonly stream: boolean
  /** The upstream answers at once and works later; the result is fetched by a request of its own. */
  readonly background: boolean
  readonly tools: boolean
  /** How many tools a request offers, and the bytes of their JSON; in a message batch, of the request with the most. */
  readonly toolCount: number
  readonly toolSchemaBytes: number
  /** The registered service that the body names. */
  readonly service: string | undefined
  /** Estimated tokens of the input. */
  readonly inputTokens: number
  /** Output tokens that the requests bound themselves, summed over all answers; by the largest member of each. */
  readonly boundedOutput: number
  /** How many answers have no bound that their route knows. */
  readonly openChoices: number
  /** By whichever member an upstream may go, of the one request that asks for the most; 0 when none says. */
  readonly largestOutput: number
  /** The same, summed over all requests. */
  readonly totalOutput: number
  /** How many texts the one request asks for that asks for the most; 0 where a route has none to bound. */
  readonly choices: number
  /** Top-level `guardrails`: names that the client asks for. The member is the gateway's, and no upstream sees it. */
  readonly guardrails: ReadonlyArray<string>
  readonly namesGuardrails: boolean
  /** Objects at the upstream that the body refers to. */
  readonly references: ReadonlyArray<UpstreamObject>
  /** Whether the upstream is to keep the answer. `undefined`: the body does not say. */
  readonly stored: boolean | undefined
  /** The answer is to be spoken. */
  readonly audio: boolean
  /** The ids that the client chose for the items which it adds to a conversation. */
  readonly itemIds: ReadonlyArray<string>
}

export const noFacts: Facts = {
  requests: 1,
  models: [],
  alternativeModels: [],
  omitsModel: false,
  unjudgedMember: undefined,
  stream: false,
  background: false,
  tools: false,
  toolCount: 0,
  toolSchemaBytes: 0,
  service: undefined,
  inputTokens: 0,
  boundedOutput: 0,
  openChoices: 0,
  largestOutput: 0,
  totalOutput: 0,
  choices: 0,
  guardrails: [],
  namesGuardrails: false,
  references: [],
  stored: undefined,
  audio: false,
  itemIds: []
}

/** Of a body that says nothing and has a size. */
export const factsOfSize = (inputTokens: number): Facts => ({ ...noFacts, inputTokens: Math.max(1, inputTokens) })

/** Every model that the request may use. */
export const allModels = ({
  alternativeModels,
  models
}: Pick<Facts, "models" | "alternativeModels">): ReadonlyArray<string> =>
  alternativeModels.length === 0 ? models : [...new Set([...models, ...alternativeModels])]

/**
 * As `facts`, of a request to `target`: a path of the compatible upstream may name models too, and where neither it nor
 * the body does, the upstream chooses one, unless the path is known to have none.
 */
export const withTarget = (
  facts: Facts,
  { provider, target }: { readonly provider: Provider; readonly target: string }
): Facts => {
  if (provider !== "compat") return facts
  const named = NamedModels.namedInPath(target)
  const models = [...new Set([...facts.models, ...named.models])]
  const leavesModel = facts.omitsModel || (models.length === 0 && CompatPaths.workOf(target) !== "none")
  return { ...facts, models, omitsModel: leavesModel, unjudgedMember: facts.unjudgedMember ?? named.unjudgedMember }
}

/** What a form is read for. Under other names a registered service's is its own business. */
export const formFieldNames = (routeId: RouteId | "compat" | "service"): ReadonlyArray<string> =>
  routeId === "service" ? ["model", "stream"] : [...decidingMembers, ...referringMembers]

/** What a form says, as that of an audio transcription, by the fields that `fieldNames` has. A file counts as media do. */
export const ofForm = (
  routeId: RouteId | "compat" | "service",
  form: { readonly fields: ReadonlyMap<string, string>; readonly files: number; readonly textBytes: number }
): Result.Result<Facts, BodyProblem> => {
  const request: { [name: string]: Json } = {}
  for (const name of formFieldNames(routeId)) {
    const text = form.fields.get(name) ?? ""
    if (text === "") continue
    const value = formValueOf(name, text)
    if (value === undefined) return Result.fail(problem(`A form cannot say "${printable(name)}" so: send JSON.`, name))
    request[name] = value
  }
  const { background, model, stream } = request
  return Result.succeed({
    ...factsOfSize(Math.ceil(form.textBytes / 4) + form.files * InputEstimate.imageTokens),
    models: typeof model === "string" ? [model] : [],
    stream: stream === true,
    background: routeId === "responses" && typeof background === "string" && !/^(?:false|0)$/i.test(background),
    ...outputBounds(routeId, [[request]]),
    references: routeId === "service" ? [] : referencedObjects(JSON.stringify(request), request)
  })
}

const formValueOf = (name: string, text: string): Json | undefined => {
  if (name === "stream") return /^(?:true|1)$/i.test(text) ? true : /^(?:false|0)$/i.test(text) ? false : undefined
  if (countMembers.includes(name)) return /^\d{1,15}(?:\.\d+)?$/.test(text) ? Number(text) : undefined
  // tools would have to be read as JSON, and guardrails to be taken out
  return toolMembers.includes(name) || name === "guardrails" ? undefined : text
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
  readonly streamOptions: JsonObject | undefined
  /** The same of `extra_body`, where it says so anew. */
  readonly extraStreamOptions: Json | undefined
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** JSON of any kind, within the bounds of bodies. */
export interface JsonText {
  readonly text: string
  readonly json: Json
  readonly shape: JsonBounds.JsonShape
}

/** Why bytes are no `JsonText`; `isExcess`: they hold too much, whether or not they are JSON. */
export interface UnreadableJson {
  readonly isExcess: boolean
  readonly problem: BodyProblem
}

/** Reads JSON once, for all who look at it. */
export const readJson = (bytes: Uint8Array): Result.Result<JsonText, UnreadableJson> => {
  const shape = JsonBounds.shapeOf(bytes)
  if (shape.excess !== undefined) return Result.fail({ isExcess: true, problem: problem(shape.excess) })
  const unread = (message: string) => Result.fail({ isExcess: false, problem: problem(message) })
  const text = decoded(bytes)
  if (text === undefined) return unread("The body is not valid UTF-8.")
  const json = parsed(text)
  if (json !== undefined) return Result.succeed({ text, json, shape })
  return unread(text === "" ? "The body is empty; this route takes a JSON object." : "The body is not valid JSON.")
}

/** Reads the JSON object that a canonical route takes. */
export const parse = (
  routeId: RouteId | "compat" | "service",
  bytes: Uint8Array
): Result.Result<ParsedBody, BodyProblem> => {
  const read = readJson(bytes)
  return Result.isFailure(read) ? Result.fail(read.failure.problem) : ofJson(routeId, read.success)
}

/**
 * What a JSON object says. Whatever two readers could understand differently is refused: of a member that stands twice
 * in one object, deep down too, some upstreams take the first, and what was judged is the last.
 */
export const ofJson = (
  routeId: RouteId | "compat" | "service",
  { json, shape, text }: JsonText
): Result.Result<ParsedBody, BodyProblem> => {
  if (!isObject(json)) return Result.fail(problem("The body must be a JSON object."))
  const scanned = isPlain(routeId, json, shape) ? nothingFound : scanMembers(routeId, decidingObjects(routeId, text))
  if (Result.isFailure(scanned)) return Result.fail(scanned.failure)
  if (routeId === "message-batches" && json["requests"] !== undefined && !Array.isArray(json["requests"])) {
    return Result.fail(problem('"requests" must be an array.', "requests"))
  }
  if (routeId === "message-batches" && json["extra_body"] != null) {
    return Result.fail(problem('A batch takes "extra_body" in the "params" of its requests.', "extra_body"))
  }
  const requests = requestsOf(routeId, json)
  const mistyped = typeMistake(json, requests, routeId)
  if (mistyped !== undefined) return Result.fail(mistyped)
  const priceMember = routeId === "service" ? undefined : priceMemberIn(json, requests)
  if (priceMember !== undefined) {
    return Result.fail(
      problem(`"${printable(priceMember)}" cannot be sent: a request sets no price.`, printable(priceMember))
    )
  }
  const guardrails = json["guardrails"] ?? []
  if (!isStrings(guardrails)) {
    return Result.fail({
      code: "invalid_guardrail_request",
      message: '"guardrails" must be an array of guardrail names.',
      param: "guardrails"
    })
  }
  const input = InputEstimate.estimateInput(json, routeId === "service" ? "anywhere" : "messages", outputMembers)
  if (routeId !== "service" && input.members !== shape.allMembers) {
    return Result.fail(
      problem("An object in the body has a member more than once. Name each member of an object once.")
    )
  }
  const extra = routeId === "service" ? undefined : json["extra_body"]
  return Result.succeed({
    text,
    streamOptions: isObject(json["stream_options"]) ? json["stream_options"] : undefined,
    extraStreamOptions: isObject(extra) ? extra["stream_options"] : undefined,
    facts: factsOf(routeId, json, {
      inputTokens: input.tokens,
      requests,
      guardrails,
      toolBytes: scanned.success,
      references: routeId === "service" ? [] : referencedObjects(text, json),
      stored: storedBy(extra) ?? storedBy(json),
      audio: isObject(json["audio"]) || (isObject(extra) && isObject(extra["audio"])),
      itemIds: routeId === "compat" ? [...itemIdsIn(json), ...itemIdsIn(extra)] : noFacts.itemIds
    })
  })
}

const storedBy = (request: Json | undefined): boolean | undefined =>
  isObject(request) && typeof request["store"] === "boolean" ? request["store"] : undefined

const itemIdsIn = (request: Json | undefined): ReadonlyArray<string> =>
  isObject(request) && Array.isArray(request["items"])
    ? request["items"].flatMap((item) => (isObject(item) && typeof item["id"] === "string" ? [item["id"]] : []))
    : noFacts.itemIds

const decoded = (bytes: Uint8Array): string | undefined => {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

const parsed = (text: string): Json | undefined => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const problem = (message: string, param?: string): BodyProblem => ({
  code: "invalid_request_body",
  message,
  ...(param === undefined ? {} : { param })
})

const printable = (name: string): string => name.replace(/[^\x20-\x7e]/g, "?").slice(0, 64)

/** The objects whose members decide: the body, in a message batch each request and its `params`, and `extra_body`. */
const decidingObjects = (routeId: RouteId | "compat" | "service", text: string): ReadonlyArray<string> => {
  const extras = (objects: ReadonlyArray<string>) =>
    text.includes('"extra_body"') ? objects.flatMap((object) => valuesOf(object, "extra_body")) : []
  if (routeId === "service") return [text]
  if (routeId !== "message-batches") return [text, ...extras([text])]
  const requests = valuesOf(text, "requests").flatMap(JsonMembers.items)
  const params = requests.flatMap((request) => valuesOf(request, "params"))
  return [text, ...requests, ...params, ...extras(params)]
}

const valuesOf = (text: string, key: string): ReadonlyArray<string> =>
  JsonMembers.topLevel(text).flatMap((member) =>
    member.key === key ? [text.slice(member.valueStart, member.end)] : []
  )

/**
 * What `scan` would find nothing in, told for a third of its price: each name is there once and without escapes, and
 * none of them is a tool's.
 */
const isPlain = (
  routeId: RouteId | "compat" | "service",
  json: JsonObject,
  { members }: JsonBounds.JsonShape
): boolean => {
  if (routeId === "message-batches") return false
  const names = Object.keys(json)
  return (
    members === names.length &&
    names.every((name) => !toolMembers.includes(name) && (routeId === "service" || usualMemberName.test(name)))
  )
}

/** As clients write the members of requests. What is written otherwise may be taken for one of them. */
const usualMemberName = /^[a-z0-9_]*$/

const nothingFound = Result.succeed(0)

/**
 * What two readers could understand differently: a key that appears twice, and a plain one in disguise
 * (`"m\u006fdel"`). V8's own parser is one of the readers: it can take an escaped key for another one that an earlier
 * body had in its place (nodejs/node#63785), and then a model, a stream or a tool would pass unseen. Some upstreams
 * match names without regard to case. Where there is none of it, the result is the most bytes that the tools of one
 * object have.
 */
const scanMembers = (
  routeId: RouteId | "compat" | "service",
  objects: ReadonlyArray<string>
): Result.Result<number, BodyProblem> => {
  let most = 0
  for (const object of objects) {
    const seen = new Set<string>()
    let bytes = 0
    for (const { end, escaped, key, valueStart } of JsonMembers.topLevel(object)) {
      if (seen.has(key)) {
        return Result.fail(problem(`"${printable(key)}" appears more than once in the body.`, printable(key)))
      }
      if (escaped && plainKey.test(key)) {
        return Result.fail(problem(`"${key.slice(0, 64)}" must be written without escapes.`, key))
      }
      const folded = key.normalize("NFKC").trim().toLowerCase()
      if (routeId !== "service" && folded !== key && bodyMembers.has(folded)) {
        return Result.fail(problem(`"${printable(key)}" must be written "${folded}".`, printable(key)))
      }
      if (toolMembers.includes(key)) bytes += Buffer.byteLength(object.slice(valueStart, end))
      seen.add(key)
    }
    most = Math.max(most, bytes)
  }
  return Result.succeed(most)
}

/** `functions` is the older name of the same permission; the others are tools that the upstream's side hosts. */
const toolMembers = ["tools", "functions", "mcp_servers", "plugins", "web_search_options", "extra_body"]

const plainKey = /^[\w-]{1,64}$/

const isObject = (json: Json | undefined): json is JsonObject =>
  typeof json === "object" && json !== null && !Array.isArray(json)

const isStrings = (json: Json): json is ReadonlyArray<string> =>
  Array.isArray(json) && json.every((item) => typeof item === "string")

/** The requests inside a body: itself, or each of a message batch. */
const requestsOf = (routeId: RouteId | "compat" | "service", json: JsonObject): ReadonlyArray<Json> => {
  const batch = json["requests"]
  if (routeId !== "message-batches" || !Array.isArray(batch)) return [json]
  return batch.map((item: Json) => (isObject(item) ? (item["params"] ?? null) : null))
}

/** The members that decisions hang on must have their types: `"stream":"true"` must not stream past a permission. */
const typeMistake = (
  json: JsonObject,
  requests: ReadonlyArray<Json>,
  routeId: RouteId | "compat" | "service"
): BodyProblem | undefined => {
  for (let index = 0; index < requests.length; index++) {
    const request = requests[index]!
    const mistake = mistakeOf(routeId, request) ?? extraMistakeOf(routeId, request)
    if (mistake === undefined) continue
    const [type, ...member] = mistake
    const path = (request === json ? member : ["requests", index, "params", ...member]).join(".")
    return problem(`"${path}" must be ${type}.`, path)
  }
  return undefined
}

/**
 * A member that sets a price, as `input_cost_per_token`. Some upstreams believe it, and report a cost by it, to this
 * client or to all who use the model.
 */
const priceMemberIn = (json: JsonObject, requests: ReadonlyArray<Json>): string | undefined => {
  let found = priceMemberOf(json) ?? priceMemberOf(json["extra_body"])
  for (const request of requests) {
    if (request !== json && isObject(request)) found ??= priceMemberOf(request) ?? priceMemberOf(request["extra_body"])
  }
  return found
}

const priceMemberOf = (request: Json | undefined): string | undefined =>
  isObject(request) ? Object.keys(request).find((name) => priceMemberName.test(name)) : undefined

const priceMemberName = /_cost_per_/i

type TypeMistake = readonly [type: string, ...path: ReadonlyArray<string>]

const mistakeOf = (routeId: RouteId | "compat" | "service", request: Json): TypeMistake | undefined =>
  mistakeIn(request) ??
  (routeId === "service" ? undefined : countMistakeIn(request)) ??
  (routeId === "responses" ? backgroundMistakeIn(request) : undefined)

const extraMistakeOf = (routeId: RouteId | "compat" | "service", request: Json): TypeMistake | undefined => {
  const extra = isObject(request) && routeId !== "service" ? request["extra_body"] : undefined
  const mistake = isObject(extra) ? mistakeOf(routeId, extra) : undefined
  return mistake && [mistake[0], "extra_body", ...mistake.slice(1)]
}

const mistakeIn = (request: Json): TypeMistake | undefined => {
  if (!isObject(request)) return ["an object"]
  const { model, stream, tools } = request
  if (model !== undefined && typeof model !== "string") return ["a string", "model"]
  if (stream !== undefined && stream !== null && typeof stream !== "boolean") return ["true or false", "stream"]
  if (tools !== undefined && tools !== null && !Array.isArray(tools)) return ["an array", "tools"]
  return undefined
}

/** What goes by these names in a registered service's body is its own business. */
const countMistakeIn = (request: Json): TypeMistake | undefined => {
  if (!isObject(request)) return undefined
  const list = ["functions", "mcp_servers", "plugins"].find(
    (name) => request[name] != null && !Array.isArray(request[name])
  )
  if (list !== undefined) return ["an array", list]
  const count = countMembers.find((name) => request[name] != null && typeof request[name] !== "number")
  return count === undefined ? undefined : ["a number", count]
}

/** On other routes the member means something else, as how a picture is to look. */
const backgroundMistakeIn = (request: Json): TypeMistake | undefined =>
  isObject(request) && request["background"] != null && typeof request["background"] !== "boolean"
    ? ["true or false", "background"]
    : undefined

const factsOf = (
  routeId: RouteId | "compat" | "service",
  json: JsonObject,
  {
    audio,
    guardrails,
    inputTokens,
    itemIds,
    references,
    requests,
    stored,
    toolBytes
  }: Pick<Facts, "audio" | "guardrails" | "inputTokens" | "itemIds" | "references" | "stored"> & {
    readonly requests: ReadonlyArray<Json>
    readonly toolBytes: number
  }
): Facts => {
  const asked: Array<RequestVariants> = []
  for (const request of requests) if (isObject(request)) asked.push(variantsOf(routeId, request))
  const { boundedOutput, largestOutput, totalOutput, openChoices } = outputBounds(routeId, asked)
  const models: Array<string> = []
  const alternativeModels: Array<string> = []
  let streams = false
  let toolCount = 0
  let leavesModel = false
  let unjudged: string | undefined
  for (const readings of asked) {
    const [request] = readings
    const { model } = request
    if (typeof model === "string" && model !== "") models.push(model)
    else leavesModel ||= modelRoutes.has(routeId)
    streams ||= readings.some(({ stream }) => stream === true)
    toolCount = Math.max(toolCount, toolsOf(request))
    if (routeId === "service") continue
    const named = NamedModels.namedInRequest(request)
    alternativeModels.push(...named.models)
    unjudged ??= named.unjudgedMember
    if (isObject(request["extra_body"])) {
      toolCount = Math.max(toolCount, toolsOf(request) + toolsOf(request["extra_body"]))
    }
  }
  return {
    requests: requests.length,
    models: models.length < 2 ? models : [...new Set(models)],
    alternativeModels,
    omitsModel: leavesModel,
    unjudgedMember: unjudged,
    stream: streams,
    background:
      routeId === "responses" && asked.some((readings) => readings.some(({ background }) => background === true)),
    tools: toolCount > 0,
    toolCount,
    toolSchemaBytes: toolCount > 0 ? toolBytes : 0,
    service: nonEmptyString(json["service"]) ?? nonEmptyString(json["service_name"]),
    inputTokens,
    boundedOutput,
    openChoices,
    largestOutput,
    totalOutput,
    choices: generatingRoutes.has(routeId)
      ? asked.reduce((most, readings) => Math.max(most, maxChoices(readings)), 1)
      : 0,
    guardrails,
    namesGuardrails: json["guardrails"] !== undefined,
    references,
    stored,
    audio,
    itemIds
  }
}

/** A request as upstreams may read it: as it stands, and with `extra_body` laid over it, as some do. */
type RequestVariants = readonly [request: JsonObject, ...laidOver: ReadonlyArray<JsonObject>]

const variantsOf = (routeId: RouteId | "compat" | "service", request: JsonObject): RequestVariants => {
  const extra = routeId === "service" ? undefined : request["extra_body"]
  return isObject(extra) ? [request, { ...request, ...extra }] : [request]
}

/** Routes of which each request goes to a model. */
export const modelRoutes: ReadonlySet<string> = new Set([
  ...["chat-completions", "responses", "embeddings", "messages", "messages-count-tokens", "message-batches"]
])

const generatingRoutes: ReadonlySet<string> = new Set(["chat-completions", "responses", "messages", "message-batches"])

/** Where a request may leave the length of its answer open. Embeddings and counts have no output. */
const openLengthRoutes: ReadonlySet<string> = new Set([...generatingRoutes, "compat"])

/** What a request offers to be used: its own functions, and what the upstream's side hosts. */
const toolsOf = (request: JsonObject): number => {
  const { functions, mcp_servers, plugins, prompt, tools, web_search_options } = request
  return (
    lengthOf(tools) +
    lengthOf(functions) +
    lengthOf(mcp_servers) +
    lengthOf(plugins) +
    (web_search_options == null ? 0 : 1) +
    // a prompt that is stored at the upstream may bring tools
    (isObject(prompt) ? 1 : 0)
  )
}

const lengthOf = (json: Json | undefined): number => (Array.isArray(json) ? json.length : 0)

const nonEmptyString = (json: Json | undefined): string | undefined =>
  typeof json === "string" && json !== "" ? json : undefined

/** Members that bound an answer. They are no input. */
const outputMembers = ["max_completion_tokens", "max_output_tokens", "max_tokens"]

/** Those that a route has. By the others it may be asked too, and an upstream may not know them. */
const ownOutputMembers: Partial<Record<RouteId | "compat" | "service", ReadonlyArray<string>>> = {
  "chat-completions": ["max_completion_tokens", "max_tokens"],
  responses: ["max_output_tokens"],
  messages: ["max_tokens"],
  "message-batches": ["max_tokens"]
}

/** Upstreams take `"5000"` for a number too. */
const countMembers = [...outputMembers, "n", "best_of"]

/** The members that decisions hang on, by which no query may be asked for something else. */
export const decidingMembers: ReadonlySet<string> = new Set([
  "model",
  "stream",
  "background",
  ...toolMembers,
  "guardrails",
  ...countMembers
])

/** The same, and those that refer to objects: in a query they would name one that nobody has judged. */
export const bodyMembers: ReadonlySet<string> = new Set([...decidingMembers, ...referringMembers])

/**
 * How much output the requests of the body bound, and how many answers they leave open. Upstreams differ in the member
 * that they obey, so of several the largest counts. A member that the route does not know bounds nothing, and a request
 * is bounded only where each of its readings is.
 */
const outputBounds = (
  routeId: RouteId | "compat" | "service",
  asked: ReadonlyArray<RequestVariants>
): Pick<Facts, "boundedOutput" | "openChoices" | "largestOutput" | "totalOutput"> => {
  const own = ownOutputMembers[routeId] ?? outputMembers
  let boundedOutput = 0
  let openChoices = 0
  let largestOutput = 0
  let totalOutput = 0
  for (const readings of asked) {
    let largest = 0
    let isBounded = true
    for (const reading of readings) {
      largest = Math.max(largest, largestBound(reading, outputMembers))
      isBounded &&= largestBound(reading, own) > 0
    }
    largestOutput = Math.max(largestOutput, largest)
    totalOutput += largest
    if (isBounded) boundedOutput += largest
    else openChoices += maxChoices(readings)
  }
  return {
    boundedOutput: routeId === "service" || openLengthRoutes.has(routeId) ? boundedOutput : 0,
    openChoices: openLengthRoutes.has(routeId) ? openChoices : 0,
    largestOutput,
    totalOutput
  }
}

/** By the largest of the members; 0 where none of them bounds the request. */
const largestBound = (request: JsonObject, members: ReadonlyArray<string>): number => {
  let largest = 0
  for (const name of members) {
    const asked = request[name]
    if (typeof asked !== "number" || asked <= 0) continue
    largest = Math.max(largest, Math.min(Math.ceil(asked) * choicesOf(request), maxCount))
  }
  return largest
}

const maxChoices = (readings: RequestVariants): number =>
  readings.reduce((most, reading) => Math.max(most, choicesOf(reading)), 0)

/** How many answers a request asks for at once (`best_of` are made, `n` of them shown): whole ones, as tokens are. */
const choicesOf = ({ best_of, n }: JsonObject): number =>
  Math.min(maxCount, Math.ceil(Math.max(1, typeof n === "number" ? n : 1, typeof best_of === "number" ? best_of : 1)))

/** Beyond every limit, and small enough that sums and products stay exact. */
const maxCount = 1e12

/** Estimated input tokens of any JSON. */
export const estimateInput = (json: Json, media: InputEstimate.Media): number =>
  InputEstimate.estimateInput(json, media, outputMembers).tokens
