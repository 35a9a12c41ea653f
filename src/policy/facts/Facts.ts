import { Result } from "effect"
import type { BodyRoute, Provider } from "../routes/CanonicalRoute.ts"
import * as CompatPaths from "../routes/CompatPaths.ts"
import { referencedObjects, referringMembers, type UpstreamObject } from "../routes/UpstreamObjects.ts"
import * as InputEstimate from "./InputEstimate.ts"
import { isObject, type Json, type JsonObject } from "./Json.ts"
import * as JsonBounds from "./JsonBounds.ts"
import * as JsonMembers from "./JsonMembers.ts"
import * as NamedModels from "./NamedModels.ts"
import * as OutputBounds from "./OutputBounds.ts"
import * as TypeMistakes from "./TypeMistakes.ts"

export interface Facts extends OutputBounds.OutputBounds {
  readonly requests: number
  readonly models: ReadonlyArray<string>
  /** Further models that the upstream may use, such as `fallbacks`. */
  readonly alternativeModels: ReadonlyArray<string>
  /** True if a request names no model where one is expected, so that the upstream chooses it. */
  readonly omitsModel: boolean
  /** A member whose value may select a model in a way that the gateway cannot evaluate. */
  readonly unjudgedMember: string | undefined
  readonly stream: boolean
  readonly background: boolean
  readonly tools: boolean
  /** The number of offered tools and the bytes of their JSON. In a batch, the maximum of all requests. */
  readonly toolCount: number
  readonly toolSchemaBytes: number
  readonly service: string | undefined
  readonly inputTokens: number
  /** The guardrails that the client requests. The gateway removes this member before forwarding. */
  readonly guardrails: ReadonlyArray<string>
  readonly namesGuardrails: boolean
  readonly references: ReadonlyArray<UpstreamObject>
  /** `undefined` if the body does not say whether the upstream stores the response. */
  readonly stored: boolean | undefined
  readonly audio: boolean
  readonly itemIds: ReadonlyArray<string>
  /** The person for whom the client says that it sends the request. Nobody verifies this name. */
  readonly endUser: string | undefined
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
  itemIds: [],
  endUser: undefined
}

export const factsOfSize = (inputTokens: number): Facts => ({ ...noFacts, inputTokens: Math.max(1, inputTokens) })

export const allModels = ({
  alternativeModels,
  models
}: Pick<Facts, "models" | "alternativeModels">): ReadonlyArray<string> =>
  alternativeModels.length === 0 ? models : [...new Set([...models, ...alternativeModels])]

/** Adds the models in the path of a compatible upstream. Sets `omitsModel` if neither path nor body names one. */
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

export const formFieldNames = (routeId: BodyRoute): ReadonlyArray<string> =>
  routeId === "service" ? ["model", "stream"] : [...decidingMembers, ...referringMembers]

/** Each file of a form counts as one image. */
export const ofForm = (
  routeId: BodyRoute,
  form: { readonly fields: ReadonlyMap<string, string>; readonly files: number; readonly textBytes: number }
): Result.Result<Facts, BodyProblem> => {
  const request: { [name: string]: Json } = {}
  for (const name of formFieldNames(routeId)) {
    const text = form.fields.get(name) ?? ""
    if (text === "") continue
    const value = formValueOf(name, text)
    if (value === undefined)
      return Result.fail(
        problem(`The form field "${printable(name)}" has an unsupported value. Send the request as JSON.`, name)
      )
    request[name] = value
  }
  const { background, model, stream } = request
  if (typeof model === "string" && model.includes(",")) return Result.fail(commaProblem("model"))
  return Result.succeed({
    ...factsOfSize(Math.ceil(form.textBytes / 4) + form.files * InputEstimate.imageTokens),
    models: typeof model === "string" ? [model] : [],
    stream: stream === true,
    background: routeId === "responses" && typeof background === "string" && !/^(?:false|0)$/i.test(background),
    ...OutputBounds.of(routeId, [[request]]),
    references: routeId === "service" ? [] : referencedObjects(JSON.stringify(request), request)
  })
}

const formValueOf = (name: string, text: string): Json | undefined => {
  if (name === "stream") return /^(?:true|1)$/i.test(text) ? true : /^(?:false|0)$/i.test(text) ? false : undefined
  if (TypeMistakes.countMembers.includes(name)) return /^\d{1,15}(?:\.\d+)?$/.test(text) ? Number(text) : undefined
  // Forms do not support these members. Tools need JSON, and the gateway removes guardrails only from JSON.
  return toolMembers.includes(name) || name === "guardrails" ? undefined : text
}

export interface BodyProblem {
  readonly code: "invalid_request_body" | "invalid_guardrail_request"
  readonly message: string
  readonly param?: string
}

export interface ParsedBody {
  readonly text: string
  readonly request: JsonObject
  readonly facts: Facts
  readonly streamOptions: JsonObject | undefined
  readonly extraStreamOptions: Json | undefined
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

export interface JsonText {
  readonly text: string
  readonly json: Json
  readonly shape: JsonBounds.JsonShape
}

/** `isExcess` is true if the text nests too deeply or holds too many values, whether or not it is JSON. */
interface UnreadableJson {
  readonly isExcess: boolean
  readonly problem: BodyProblem
}

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

export const parse = (routeId: BodyRoute, bytes: Uint8Array): Result.Result<ParsedBody, BodyProblem> => {
  const read = readJson(bytes)
  return Result.isFailure(read) ? Result.fail(read.failure.problem) : ofJson(routeId, read.success)
}

/** Refuses duplicate members at any depth. Some upstreams read the first one, but the gateway reads the last one. */
export const ofJson = (routeId: BodyRoute, { json, shape, text }: JsonText): Result.Result<ParsedBody, BodyProblem> => {
  if (!isObject(json)) return Result.fail(problem("The body must be a JSON object."))
  const scanned = isPlain(routeId, json, shape) ? nothingFound : scanMembers(routeId, decidingObjects(routeId, text))
  if (Result.isFailure(scanned)) return Result.fail(scanned.failure)
  if (routeId === "message-batches" && json["requests"] !== undefined && !Array.isArray(json["requests"])) {
    return Result.fail(problem('"requests" must be an array.', "requests"))
  }
  if (routeId === "message-batches" && json["extra_body"] != null) {
    return Result.fail(problem('Move "extra_body" into the "params" of its requests.', "extra_body"))
  }
  const requests = requestsOf(routeId, json)
  const mistake = TypeMistakes.find(json, requests, routeId)
  if (mistake !== undefined) return Result.fail(problem(`"${mistake.path}" must be ${mistake.type}.`, mistake.path))
  const named = NamedModels.ofRequests(routeId, json, requests)
  if (Result.isFailure(named)) return Result.fail(commaProblem(named.failure))
  const priceMember = routeId === "service" ? undefined : priceMemberIn(json, requests)
  if (priceMember !== undefined) {
    return Result.fail(
      problem(`"${printable(priceMember)}" must be removed: a request cannot set a price.`, printable(priceMember))
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
  const input = InputEstimate.estimateInput(
    json,
    routeId === "service" ? "anywhere" : "messages",
    OutputBounds.outputMembers
  )
  if (routeId !== "service" && input.members !== shape.allMembers) {
    return Result.fail(
      problem("The body contains an object with a duplicate member. Name each member of an object once.")
    )
  }
  const extra = routeId === "service" ? undefined : json["extra_body"]
  return Result.succeed({
    text,
    request: json,
    streamOptions: isObject(json["stream_options"]) ? json["stream_options"] : undefined,
    extraStreamOptions: isObject(extra) ? extra["stream_options"] : undefined,
    facts: factsOf(routeId, json, {
      inputTokens: input.tokens,
      requests,
      named: named.success,
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

const commaProblem = (member: string): BodyProblem => problem(NamedModels.commaMessage(`"${member}"`), member)

/** Makes a name from a client safe for an error message. */
export const printable = (name: string): string => name.replace(/[^\x20-\x7e]/g, "?").slice(0, 64)

const decidingObjects = (routeId: BodyRoute, text: string): ReadonlyArray<string> => {
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

/** True if names are plain and unique and there are no tools. Then `scanMembers` can be skipped to save time. */
const isPlain = (routeId: BodyRoute, json: JsonObject, { members }: JsonBounds.JsonShape): boolean => {
  if (routeId === "message-batches") return false
  const names = Object.keys(json)
  return (
    members === names.length &&
    names.every((name) => !toolMembers.includes(name) && (routeId === "service" || usualMemberName.test(name)))
  )
}

/** Upstreams may convert other names to such a name, for example to lower case. */
const usualMemberName = /^[a-z0-9_]*$/

const nothingFound = Result.succeed(0)

/**
 * Refuses duplicate and escaped members, and names in unusual case. V8 can confuse an escaped name with a name from an
 * earlier body (nodejs/node#63785). Returns the maximum bytes of tools in one object.
 */
const scanMembers = (routeId: BodyRoute, objects: ReadonlyArray<string>): Result.Result<number, BodyProblem> => {
  const spelled = spelledMembers(routeId)
  let maxBytes = 0
  for (const object of objects) {
    const seen = new Set<string>()
    let bytes = 0
    for (const { end, escaped, key, valueStart } of JsonMembers.topLevel(object)) {
      if (seen.has(key)) {
        return Result.fail(problem(`"${printable(key)}" appears more than once in the body.`, printable(key)))
      }
      if (escaped && plainKey.test(key)) {
        return Result.fail(problem(`The member name "${key.slice(0, 64)}" must be written without escapes.`, key))
      }
      const folded = key.normalize("NFKC").trim().toLowerCase()
      if (folded !== key && spelled?.has(folded) === true) {
        return Result.fail(problem(`"${printable(key)}" must be written "${folded}".`, printable(key)))
      }
      if (toolMembers.includes(key)) bytes += Buffer.byteLength(object.slice(valueStart, end))
      seen.add(key)
    }
    maxBytes = Math.max(maxBytes, bytes)
  }
  return Result.succeed(maxBytes)
}

/** `functions` is the older name of `tools`. The other members enable tools that the upstream runs. */
const toolMembers = ["tools", "functions", "mcp_servers", "plugins", "web_search_options", "extra_body"]

const plainKey = /^[\w-]{1,64}$/

const isStrings = (json: Json): json is ReadonlyArray<string> =>
  Array.isArray(json) && json.every((item) => typeof item === "string")

const requestsOf = (routeId: BodyRoute, json: JsonObject): ReadonlyArray<Json> => {
  const batch = json["requests"]
  if (routeId !== "message-batches" || !Array.isArray(batch)) return [json]
  return batch.map((item: Json) => (isObject(item) ? (item["params"] ?? null) : null))
}

/** Finds a member that sets a price, such as `input_cost_per_token`. Some upstreams compute reported costs from it. */
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

const factsOf = (
  routeId: BodyRoute,
  json: JsonObject,
  {
    audio,
    guardrails,
    inputTokens,
    itemIds,
    named,
    references,
    requests,
    stored,
    toolBytes
  }: Pick<Facts, "audio" | "guardrails" | "inputTokens" | "itemIds" | "references" | "stored"> & {
    readonly requests: ReadonlyArray<Json>
    readonly named: Pick<Facts, "models" | "alternativeModels" | "omitsModel" | "unjudgedMember">
    readonly toolBytes: number
  }
): Facts => {
  const requestVariants: Array<OutputBounds.RequestVariants> = []
  for (const request of requests) if (isObject(request)) requestVariants.push(OutputBounds.variantsOf(routeId, request))
  const toolCount = requestVariants.reduce((most, variants) => Math.max(most, toolCountOf(variants)), 0)
  return {
    requests: requests.length,
    ...named,
    stream: requestVariants.some((variants) => variants.some(({ stream }) => stream === true)),
    background:
      routeId === "responses" &&
      requestVariants.some((variants) => variants.some(({ background }) => background === true)),
    tools: toolCount > 0,
    toolCount,
    toolSchemaBytes: toolCount > 0 ? toolBytes : 0,
    service: nonEmptyString(json["service"]) ?? nonEmptyString(json["service_name"]),
    inputTokens,
    ...OutputBounds.of(routeId, requestVariants),
    guardrails,
    namesGuardrails: json["guardrails"] !== undefined,
    references,
    stored,
    audio,
    itemIds,
    endUser: routeId === "service" ? undefined : endUserOf(json)
  }
}

/** OpenAI's clients name the end user in `user`, Anthropic's in `metadata.user_id`. */
const endUserOf = ({ metadata, user }: JsonObject): string | undefined =>
  nonEmptyString(user) ?? (isObject(metadata) ? nonEmptyString(metadata["user_id"]) : undefined)

const toolsOf = (request: JsonObject): number => {
  const { functions, mcp_servers, plugins, prompt, tools, web_search_options } = request
  return (
    lengthOf(tools) +
    lengthOf(functions) +
    lengthOf(mcp_servers) +
    lengthOf(plugins) +
    (web_search_options == null ? 0 : 1) +
    // A prompt that is stored at the upstream may add tools.
    (isObject(prompt) ? 1 : 0)
  )
}

const toolCountOf = ([request, merged]: OutputBounds.RequestVariants): number => {
  const extra = merged && request["extra_body"]
  return toolsOf(request) + (isObject(extra) ? toolsOf(extra) : 0)
}

const lengthOf = (json: Json | undefined): number => (Array.isArray(json) ? json.length : 0)

const nonEmptyString = (json: Json | undefined): string | undefined =>
  typeof json === "string" && json !== "" ? json : undefined

/** Members that affect the gateway's decisions. A query parameter must not set them. */
export const decidingMembers: ReadonlySet<string> = new Set([
  "model",
  "stream",
  "background",
  ...toolMembers,
  "guardrails",
  ...TypeMistakes.countMembers
])

export const bodyMembers: ReadonlySet<string> = new Set([...decidingMembers, ...referringMembers])

/** A query may contain the names that `bodyMembers` lacks, such as `provider`. */
const selectingMembers: ReadonlySet<string> = new Set([...bodyMembers, ...NamedModels.relevantMembers])

const batchMembers: ReadonlySet<string> = new Set([...selectingMembers, "requests", "params"])

/** Returns the members whose names must be spelled exactly. A registered service spells its members as it likes. */
const spelledMembers = (routeId: BodyRoute): ReadonlySet<string> | undefined =>
  routeId === "service" ? undefined : routeId === "message-batches" ? batchMembers : selectingMembers

export const estimateInput = (json: Json, media: InputEstimate.Media): number =>
  InputEstimate.estimateInput(json, media, OutputBounds.outputMembers).tokens
