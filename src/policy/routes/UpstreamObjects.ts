import type { RouteId } from "./CanonicalRoute.ts"
import * as UpstreamPaths from "./UpstreamPaths.ts"

export interface UpstreamObject {
  readonly kind: string
  readonly id: string
}

export type ObjectUse =
  | { readonly _tag: "None" }
  | { readonly _tag: "Create"; readonly kind: string }
  | { readonly _tag: "List"; readonly kind: string }
  /** `below` is the path below the object, such as `content`. It is empty for the object itself. */
  | { readonly _tag: "Use"; readonly kind: string; readonly id: string; readonly below: string }
  /** A request that creates no stored object. Its body may refer to objects. */
  | { readonly _tag: "BodyOnly" }
  | { readonly _tag: "Unclear" }

export const noObjectUse: ObjectUse = { _tag: "None" }

export const useOfRoute = (id: RouteId, method: string, segments: ReadonlyArray<string>): ObjectUse => {
  switch (id) {
    case "chat-completions":
      return creates.completion
    case "responses":
      return creates.response
    case "messages":
      return creates.message
    case "message-batches":
    case "message-batch":
    case "message-batch-results":
    case "message-batch-cancel":
      return useOf(method, segments)
    case "embeddings":
    case "messages-count-tokens":
    case "models":
      return noObjectUse
  }
}

/** Anthropic's messages cannot be fetched later, but the containers of their tools can. */
const creates = {
  completion: { _tag: "Create", kind: "chat_completion" },
  response: { _tag: "Create", kind: "response" },
  message: { _tag: "Create", kind: "message" }
} as const

const collections: ReadonlyArray<readonly [kind: string, path: ReadonlyArray<string>]> = [
  ["message_batch", ["messages", "batches"]],
  ["chat_completion", ["chat", "completions"]],
  ["fine_tuning_job", ["fine_tuning", "jobs"]],
  // Other providers use these paths.
  ["fine_tuning_job", ["fine-tuning", "jobs"]],
  ["fine_tuning_job", ["fine-tunes"]],
  ["fine_tuning_job", ["fine_tunes"]],
  ["batch", ["batch", "jobs"]],
  ["assistant", ["assistants"]],
  ["batch", ["batches"]],
  ["container", ["containers"]],
  ["conversation", ["conversations"]],
  ["eval", ["evals"]],
  ["file", ["files"]],
  ["response", ["responses"]],
  ["skill", ["skills"]],
  ["thread", ["threads"]],
  ["upload", ["uploads"]],
  ["vector_store", ["vector_stores"]],
  ["video", ["videos"]]
]

/** Paths below `/v1/responses` that name no stored response. */
const actions: ReadonlySet<string> = new Set(["response/input_tokens", "response/compact"])

/** Finds a collection after any prefix (`/v1/openai/files`), in any spelling that a lenient upstream accepts. */
export const useOf = (method: string, segments: ReadonlyArray<string>): ObjectUse => {
  const folded = UpstreamPaths.foldedPath(`/${segments.join("/")}`)
  if (folded === undefined || folded.length !== segments.length) return { _tag: "Unclear" }
  if (method === "POST" && folded.at(-1) === "messages" && folded.at(-2) === "v1") return creates.message
  const found = firstCollection(folded)
  if (found === undefined) return noObjectUse
  const { kind, end } = found
  const id = segments[end]
  if (id === undefined || id === "") {
    if (method === "POST") return { _tag: "Create", kind }
    return method === "GET" || method === "HEAD" ? { _tag: "List", kind } : { _tag: "Unclear" }
  }
  const rest = folded.slice(end + 1).join("/")
  // This request creates a thread and runs it. The response describes the run.
  if (kind === "thread" && id === "runs" && rest === "" && method === "POST") return { _tag: "Create", kind }
  return actions.has(`${kind}/${id}`) ? bodyOnly : { _tag: "Use", kind, id, below: rest }
}

const firstCollection = (names: ReadonlyArray<string>): { readonly kind: string; readonly end: number } | undefined => {
  for (let start = 0; start < names.length; start++) {
    const found = collections.find(([, path]) => path.every((name, index) => name === names[start + index]))
    if (found !== undefined) return { kind: found[0], end: start + found[1].length }
  }
  return undefined
}

const bodyOnly: ObjectUse = { _tag: "BodyOnly" }

/** Kinds that can be created with a form. The form holds file contents, or a request that may name objects. */
const forms: ReadonlyMap<string, "contents" | "request"> = new Map([
  ["container", "request"],
  ["file", "contents"],
  ["skill", "contents"],
  ["upload", "contents"],
  ["video", "request"]
])

export const formKindOf = (use: ObjectUse): "contents" | "request" | undefined =>
  use._tag === "Create" || use._tag === "Use" ? forms.get(use.kind) : undefined

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isId = (value: unknown): value is string => typeof value === "string" && /^[\x21-\x7e]{1,256}$/.test(value)

export interface ObjectSearch {
  readonly kind: string
  readonly created: boolean
  /** Objects that the upstream's tools create: containers, and Anthropic's files. */
  readonly hosted: boolean
  /** Parts with ids of their own: the items of a response or conversation, and the audio of a completion. */
  readonly parts: boolean
  /** Ids that the client sent. A response that repeats them does not prove ownership. */
  readonly clientIds?: ReadonlySet<string>
}

export interface CreationRequest {
  readonly stored: boolean | undefined
  readonly tools: boolean
  readonly audio: boolean
  /** The ids of items to add to a conversation. `undefined` if the body was not read. */
  readonly itemIds: ReadonlyArray<string> | undefined
}

export const objectSearchOf = (
  use: ObjectUse,
  method: string,
  { audio, itemIds, stored, tools }: CreationRequest
): ObjectSearch | undefined => {
  if (use._tag === "Create") {
    const { kind } = use
    const hosted = tools && hosting.has(kind)
    const created = isKept(kind, stored)
    const parts = kind === "response" ? created : kind === "chat_completion" && audio
    return created || hosted || parts ? { kind, created, hosted, parts } : undefined
  }
  if (use._tag !== "Use") return undefined
  const { below, kind } = use
  if (kind === "video" && below === "remix" && method === "POST")
    return { kind, created: true, hosted: false, parts: false }
  if (kind === "conversation" && below === "items" && method === "POST" && itemIds !== undefined) {
    return { kind, created: false, hosted: false, parts: true, clientIds: new Set(itemIds) }
  }
  // Other paths below an object may return user content, such as a file. User content is not searched.
  if (below !== "" && below !== "cancel" && below !== "complete") return undefined
  return kind === "response" || filesOf.has(kind)
    ? { kind, created: false, hosted: hosting.has(kind), parts: kind === "response" }
    : undefined
}

const isKept = (kind: string, stored: boolean | undefined): boolean => {
  switch (kind) {
    case "message":
      return false
    case "chat_completion":
      return stored === true
    case "response":
      return stored !== false
    default:
      return true
  }
}

const hosting: ReadonlySet<string> = new Set(["response", "message"])

type Members = Readonly<Record<string, unknown>>

const filesOf: ReadonlyMap<string, (about: Members) => ReadonlyArray<unknown>> = new Map([
  ["batch", (about: Members) => [about["output_file_id"], about["error_file_id"]]],
  ["upload", (about: Members) => [idOf(about["file"])]],
  ["fine_tuning_job", (about: Members) => listOf(about["result_files"])]
])

const idOf = (value: unknown): unknown => (isRecord(value) ? value["id"] : undefined)
const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

export const objectsIn = (
  { clientIds, created, hosted, kind, parts }: ObjectSearch,
  response: unknown
): ReadonlyArray<UpstreamObject> => {
  if (!isRecord(response)) return []
  const about = isRecord(response["response"]) ? response["response"] : response
  const objects: Array<UpstreamObject> = []
  const add = (kind: string, id: unknown) => {
    if (isId(id)) objects.push({ kind, id })
  }
  if (created) {
    // The run of a thread names the thread in `thread_id`.
    add(kind, (kind === "thread" ? about["thread_id"] : undefined) ?? about["id"])
    if (kind === "response") add("conversation", idOf(about["conversation"]))
  }
  for (const id of filesOf.get(kind)?.(about) ?? []) add("file", id)
  if (parts && kind === "response") {
    for (const item of [...listOf(about["output"]), response["item"]]) add("item", idOf(item))
  }
  if (parts && kind === "conversation") {
    for (const id of listOf(about["data"]).map(idOf))
      if (typeof id === "string" && clientIds?.has(id) !== true) add("item", id)
  }
  if (parts && kind === "chat_completion") {
    for (const choice of listOf(response["choices"])) {
      for (const part of isRecord(choice) ? [choice["message"], choice["delta"]] : []) {
        if (isRecord(part)) add("audio", idOf(part["audio"]))
      }
    }
  }
  if (hosted && kind === "response") {
    for (const item of [...listOf(about["output"]), response["item"]]) add("container", containerOf(item))
  }
  if (hosted && kind === "message") {
    for (const holder of [response, response["message"], response["delta"]]) {
      if (isRecord(holder)) add("container", idOf(holder["container"]))
    }
    for (const block of [...listOf(about["content"]), response["content_block"]]) {
      for (const id of writtenFiles(block)) add("file", id)
    }
  }
  return objects
}

/** A response or stream line without any of these strings names no further objects. */
export const markersOf = ({ hosted, kind, parts }: ObjectSearch, form: "json" | "events"): ReadonlyArray<string> => {
  const ofParts =
    kind === "chat_completion"
      ? '"audio"'
      : kind === "conversation"
        ? '"data"'
        : form === "json"
          ? '"output"'
          : '"response.output_item.added"'
  return [...(hosted ? ['"container', '"file_id"'] : []), ...(parts ? [ofParts] : [])]
}

const containerOf = (item: unknown): unknown => {
  if (!isRecord(item)) return undefined
  if (item["type"] === "code_interpreter_call") return item["container_id"]
  const { environment } = item
  return item["type"] === "shell_call" && isRecord(environment) ? environment["container_id"] : undefined
}

const writtenFiles = (block: unknown): ReadonlyArray<unknown> => {
  if (!isRecord(block) || typeof block["type"] !== "string" || !block["type"].endsWith("code_execution_tool_result")) {
    return []
  }
  const { content } = block
  const written = isRecord(content) ? listOf(content["content"]) : listOf(content)
  return written.map((file) => (isRecord(file) ? file["file_id"] : undefined))
}

const topMembers = {
  previous_response_id: "response",
  conversation: "conversation",
  input_file_id: "file",
  training_file: "file",
  validation_file: "file",
  assistant_id: "assistant",
  thread_id: "thread"
}

const deepMembers = {
  container: "container",
  container_id: "container",
  file_id: "file",
  file_ids: "file",
  skill_id: "skill",
  vector_store_id: "vector_store",
  vector_store_ids: "vector_store"
}

const deepKinds: ReadonlyMap<string, string> = new Map(Object.entries(deepMembers))
const topKinds: ReadonlyMap<string, string> = new Map(Object.entries({ ...topMembers, ...deepMembers }))

export const referringMembers: ReadonlyArray<string> = [...topKinds.keys()]

/** Members with arbitrary content. Names inside them do not refer to objects. */
const freeFormMembers: ReadonlySet<string> = new Set([
  ...["parameters", "input_schema", "json_schema", "schema", "metadata", "annotations"]
])

/** Members of tool calls that a client sends back to the upstream. The upstream looks up no objects by them. */
const echoed: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["code_interpreter_call", ["container_id", "outputs"]],
  ["file_search_call", ["results"]],
  ["shell_call", ["environment"]]
])

const toolUse: ReadonlyArray<string> = ["input"]

const ignoredMembersOf = (type: unknown): ReadonlyArray<string> | undefined =>
  typeof type === "string" ? (type.endsWith("tool_use") ? toolUse : echoed.get(type)) : undefined

/** Types of objects whose `id` refers to an upstream object, with the object's kind. */
const referringTypes: ReadonlyMap<unknown, string> = new Map([
  ["item_reference", "item"],
  ["file_id", "file"]
])

/** A body that does not match refers to no object. `\\u` matches too, because an escape may hide a name. */
const referencePattern = new RegExp(
  `"(?:${[...topKinds.keys(), ...referringTypes.keys(), "audio", "data_source"].join("|")})"|\\\\u`
)

/** An input item that has an id, but neither type nor role, refers to a stored item. */
const untypedItems = (body: unknown): ReadonlyArray<UpstreamObject> =>
  (isRecord(body) ? listOf(body["input"]) : []).flatMap((item) =>
    isRecord(item) && typeof item["id"] === "string" && item["type"] == null && item["role"] == null
      ? [{ kind: "item", id: item["id"] }]
      : []
  )

/** Data sources of evaluations that include the stored data of every key. */
const keptByAll: ReadonlySet<unknown> = new Set(["logs", "responses", "stored_completions"])

const sourcesIn = (body: unknown): ReadonlyArray<UpstreamObject> => {
  const data = isRecord(body) ? body["data_source"] : undefined
  return [data, isRecord(data) ? data["source"] : undefined].flatMap((source) =>
    isRecord(source) && keptByAll.has(source["type"]) ? [{ kind: "data_source", id: String(source["type"]) }] : []
  )
}

export const maxReferences = 256

/** Returns each object once and stops above `maxReferences`. Reads `extra_body`, because some upstreams merge it. */
export const referencedObjects = (text: string, body: unknown): ReadonlyArray<UpstreamObject> => {
  const extra = isRecord(body) ? body["extra_body"] : undefined
  const holdsItems = isRecord(body) && (body["input"] !== undefined || extra !== undefined)
  const untyped = holdsItems ? [...untypedItems(body), ...untypedItems(extra)] : none
  if (untyped.length === 0 && !referencePattern.test(text)) return none
  const found = new Map<string, UpstreamObject>()
  const add = (kind: string, id: string) => found.set(`${kind}/${id}`, { kind, id })
  for (const { id, kind } of [...untyped, ...sourcesIn(body), ...sourcesIn(extra)]) add(kind, id)
  const pending: Array<unknown> = [body]
  while (pending.length > 0 && found.size <= maxReferences) {
    const value = pending.pop()
    if (Array.isArray(value)) for (const item of value) pending.push(item)
    else if (isRecord(value)) {
      // The top-level object is always read, even if its `type` claims to be a tool call.
      const isRequest = value === body || value === extra
      const silent = isRequest ? undefined : ignoredMembersOf(value["type"])
      const kinds = isRequest ? topKinds : deepKinds
      const referred = referringTypes.get(value["type"])
      if (referred !== undefined && typeof value["id"] === "string") add(referred, value["id"])
      const audio = idOf(value["audio"])
      if (typeof audio === "string") add("audio", audio)
      for (const [name, member] of Object.entries(value)) {
        if (silent?.includes(name) === true) continue
        const kind = kinds.get(name)
        if (kind !== undefined) for (const id of idsIn(member)) add(kind, id)
        if (!freeFormMembers.has(name)) pending.push(member)
      }
    }
  }
  return [...found.values()]
}

const none: ReadonlyArray<UpstreamObject> = []

/** The value `auto` requests a new container, so it is not an id. */
const idsIn = (member: unknown): ReadonlyArray<string> => {
  if (typeof member === "string") return member === "" || member === "auto" ? [] : [member]
  if (Array.isArray(member)) return member.filter((id): id is string => typeof id === "string")
  return isRecord(member) && typeof member["id"] === "string" ? [member["id"]] : []
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const listedIds = (text: string): ReadonlyArray<string> | undefined => {
  const response = parsed(text)
  if (!isRecord(response) || !Array.isArray(response["data"])) return undefined
  const ids = response["data"].map((item: unknown) =>
    isRecord(item) && typeof item["id"] === "string" ? item["id"] : ""
  )
  return ids
}

/** If more pages follow, the upstream's `last_id` stays, because clients need it to request the next page. */
export const filteredList = (text: string, keep: ReadonlyArray<boolean>): string => {
  const response = parsed(text)
  if (!isRecord(response) || !Array.isArray(response["data"])) return text
  const data: ReadonlyArray<unknown> = response["data"].filter((_, index) => keep[index] === true)
  const idOf = (item: unknown) => (isRecord(item) ? item["id"] : null) ?? null
  const rewritten: Record<string, unknown> = { ...response, data }
  if ("first_id" in response) rewritten["first_id"] = idOf(data[0])
  if ("last_id" in response && response["has_more"] !== true) rewritten["last_id"] = idOf(data.at(-1))
  if (typeof response["total"] === "number") rewritten["total"] = data.length
  return JSON.stringify(rewritten)
}
