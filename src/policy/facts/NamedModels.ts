import { Result } from "effect"
import * as Path from "../routes/Path.ts"
import * as UpstreamPaths from "../routes/UpstreamPaths.ts"
import { isObject, type Json, type JsonObject } from "./Json.ts"

interface NamedModels {
  readonly models: ReadonlyArray<string>
  readonly unjudgedMember: string | undefined
}

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

const relevantMembers: ReadonlySet<string> = new Set([
  ...listMembers,
  ...opaqueMembers,
  "extra_body",
  "prompt",
  "tools"
])

const noModels: NamedModels = { models: [], unjudgedMember: undefined }

/** Returns the models that a request names. Some upstreams prefer the models in `extra_body`, so these count too. */
export const namedInRequest = (request: JsonObject): NamedModels => {
  if (!Object.keys(request).some((name) => relevantMembers.has(name))) return noModels
  const models: Array<string> = []
  let unjudged: string | undefined
  const markUnjudged = (member: string) => {
    unjudged ??= member
  }
  const collect = (value: Json, member: string): void => {
    if (typeof value === "string") models.push(value)
    else if (isList(value)) for (const item of value) collect(item, member)
    else if (isObject(value)) {
      if (typeof value["model"] === "string") {
        models.push(value["model"])
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
      for (const tool of tools) if (isObject(tool) && typeof tool["model"] === "string") models.push(tool["model"])
  }
  return { models, unjudgedMember: unjudged }
}

const isList = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

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

const modelsAfter = (takesColon: boolean, rest: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [first = ""] = rest
  if (first === "") return []
  // A model name may contain slashes and colons. An action may follow the last colon.
  const text = takesColon ? rest.join("/") : ""
  return text.includes(":") ? [text.slice(0, text.indexOf(":")), text.slice(0, text.lastIndexOf(":"))] : [first]
}
