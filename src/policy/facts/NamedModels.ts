import { Result } from "effect"
import type { BodyRoute } from "../routes/CanonicalRoute.ts"
import * as Path from "../routes/Path.ts"
import * as UpstreamPaths from "../routes/UpstreamPaths.ts"
import { isObject, type Json, type JsonObject } from "./Json.ts"

interface NamedModels {
  readonly models: ReadonlyArray<string>
  readonly unjudgedMember: string | undefined
}

interface RequestModels extends NamedModels {
  /** The first member with a comma in a model name. LiteLLM sends such a request to several models. */
  readonly commaMember: string | undefined
}

export const commaMessage = (place: string): string =>
  `A model name in ${place} must not contain a comma, because some upstreams would use several models. Send one request per model.`

/** Members that list models: names, `{"model": …}`, or `{"big": ["small"]}` (the fallbacks of a model). */
const listMembers = [
  ...["fallbacks", "models", "context_window_fallbacks", "content_policy_fallbacks", "default_fallbacks"]
]

/** Members that let the upstream select a deployment, credential or stored configuration with its own model. */
const opaqueMembers = [
  ...[
    "agent",
    "agent_id",
    "api_base",
    "api_key",
    "base_url",
    "custom_llm_provider",
    "deployment_id",
    "extra_headers",
    "extra_query"
  ],
  ...[
    "litellm_params",
    "model_id",
    "model_list",
    "plugins",
    "preset",
    "prompt_id",
    "provider",
    "route",
    "router_settings_override",
    "user_config"
  ]
]

/** Members that may name or select models beside `model`. */
export const relevantMembers: ReadonlySet<string> = new Set([
  ...listMembers,
  ...opaqueMembers,
  "extra_body",
  "prompt",
  "tools"
])

const noModels: RequestModels = { models: [], unjudgedMember: undefined, commaMember: undefined }

/** Returns the models that a request names. Some upstreams prefer the models in `extra_body`, so these count too. */
export const namedInRequest = (request: JsonObject): RequestModels => {
  if (!Object.keys(request).some((name) => relevantMembers.has(name))) return noModels
  const models: Array<string> = []
  let unjudged: string | undefined
  let commaMember: string | undefined
  const add = (model: string, member: string) => {
    models.push(model)
    if (model.includes(",")) commaMember ??= member
  }
  const markUnjudged = (member: string) => {
    unjudged ??= member
  }
  const collect = (value: Json, member: string): void => {
    if (typeof value === "string") add(value, member)
    else if (isList(value)) for (const item of value) collect(item, member)
    else if (isObject(value)) {
      if (typeof value["model"] === "string") {
        add(value["model"], member)
        if (opaqueMembers.some((name) => value[name] != null)) markUnjudged(member)
      } else for (const item of Object.values(value)) collect(item, member)
    } else if (value !== null) markUnjudged(member)
  }
  const extra = request["extra_body"]
  for (const [prefix, from] of [["", request] as const, ["extra_body.", extra] as const]) {
    if (from == null) continue
    if (!isObject(from)) {
      markUnjudged("extra_body")
      continue
    }
    if (from !== request && from["model"] !== undefined) collect(from["model"], "extra_body.model")
    for (const name of listMembers) if (from[name] !== undefined) collect(from[name], prefix + name)
    const found = opaqueMembers.find((name) => from[name] != null)
    if (found !== undefined) markUnjudged(prefix + found)
    // A prompt that is stored at the upstream may set a model and tools.
    if (isObject(from["prompt"])) markUnjudged(`${prefix}prompt`)
    // Some tools that the upstream runs use a model of their own.
    const { tools } = from
    if (isList(tools))
      for (const tool of tools)
        if (isObject(tool) && typeof tool["model"] === "string") add(tool["model"], `${prefix}tools`)
  }
  return { models, unjudgedMember: unjudged, commaMember }
}

const isList = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

interface BodyModels {
  readonly models: ReadonlyArray<string>
  readonly alternativeModels: ReadonlyArray<string>
  readonly omitsModel: boolean
  readonly unjudgedMember: string | undefined
}

export const modelRoutes: ReadonlySet<string> = new Set([
  ...["chat-completions", "responses", "embeddings", "messages", "messages-count-tokens", "message-batches"]
])

/** Returns the models of the requests of one body. The failure is the path of a member with a comma in a model name. */
export const ofRequests = (
  routeId: BodyRoute,
  body: JsonObject,
  requests: ReadonlyArray<Json>
): Result.Result<BodyModels, string> => {
  const models: Array<string> = []
  const alternativeModels: Array<string> = []
  let omitsModel = false
  let unjudgedMember: string | undefined
  for (const [index, request] of requests.entries()) {
    if (!isObject(request)) continue
    const { model } = request
    const named = routeId === "service" ? noModels : namedInRequest(request)
    const commaMember = typeof model === "string" && model.includes(",") ? "model" : named.commaMember
    if (commaMember !== undefined) {
      return Result.fail(request === body ? commaMember : `requests.${index}.params.${commaMember}`)
    }
    if (typeof model === "string" && model !== "") models.push(model)
    else omitsModel ||= modelRoutes.has(routeId)
    for (const name of named.models) alternativeModels.push(name)
    unjudgedMember ??= named.unjudgedMember
  }
  return Result.succeed({
    models: models.length < 2 ? models : [...new Set(models)],
    alternativeModels,
    omitsModel,
    unjudgedMember
  })
}

/** Finds models in paths such as `/openai/deployments/m/…` and `/v1beta/models/m:generateContent`. */
export const namedInPath = (target: string): NamedModels => {
  const canonical = Path.canonicalise(target)
  if (Result.isFailure(canonical)) return unreadable
  const segments = canonical.success.segments.map(decodeURIComponent)
  const names = UpstreamPaths.foldedPath(canonical.success.path)
  // The upstream would split the path differently, so its model is unknown.
  if (names?.length !== segments.length) return unreadable
  const indexes = names.flatMap((name, at) => (namingSegments.has(name) ? [at] : []))
  if (indexes.length > maxNamingSegments) return unreadable
  const models = new Set(indexes.flatMap((at) => modelsAfter(names[at] === "models", segments.slice(at + 1))))
  return { models: [...models], unjudgedMember: undefined }
}

const unreadable: NamedModels = { models: [], unjudgedMember: "path" }

const namingSegments: ReadonlySet<string> = new Set(["deployments", "engines", "models"])

const maxNamingSegments = 8

/** Returns true if a path names a model with a comma. A path that cannot be read counts if it has any comma. */
export const hasCommaInPath = (target: string): boolean => {
  const canonical = Path.canonicalise(target)
  if (Result.isFailure(canonical) || !/,|%/.test(canonical.success.path)) return false
  const names = UpstreamPaths.foldedPath(canonical.success.path)
  if (names === undefined) return decodeURIComponent(canonical.success.path).includes(",")
  const first = names.findIndex((name) => namingSegments.has(name))
  return first !== -1 && names.slice(first + 1).some((name) => name.includes(","))
}

const modelsAfter = (takesColon: boolean, rest: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [first = ""] = rest
  if (first === "") return []
  // A model name may contain slashes and colons. An action may follow the last colon.
  const text = takesColon ? rest.join("/") : ""
  return text.includes(":") ? [text.slice(0, text.indexOf(":")), text.slice(0, text.lastIndexOf(":"))] : [first]
}
