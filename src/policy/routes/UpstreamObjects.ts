import type { RouteId } from "./CanonicalRoute.ts"
import * as UpstreamPaths from "./UpstreamPaths.ts"

/** An object that lives at the upstream. */
export interface UpstreamObject {
  readonly kind: string
  readonly id: string
}

/** What a request does with the objects of a kind. */
export type ObjectUse =
  | { readonly _tag: "None" }
  | { readonly _tag: "Create"; readonly kind: string }
  | { readonly _tag: "List"; readonly kind: string }
  /** `below`: what of the object, as `content`; empty for the object itself. */
  | { readonly _tag: "Use"; readonly kind: string; readonly id: string; readonly below: string }
  /** A request to a collection that creates nothing which is remembered; its body may refer to objects. */
  | { readonly _tag: "BodyOnly" }
  /** The path may be one of an object, and it cannot be told of which. */
  | { readonly _tag: "Unclear" }

export const noObjectUse: ObjectUse = { _tag: "None" }

/** What a request to a canonical route does. */
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

/** A message is nothing that can be asked for again; the container that its tools ran in is. */
const creates = {
  completion: { _tag: "Create", kind: "chat_completion" },
  response: { _tag: "Create", kind: "response" },
  message: { _tag: "Create", kind: "message" }
} as const

/** Where the objects of each kind are created and listed, below `/v1` or what stands in its place. */
const collections: ReadonlyArray<readonly [kind: string, path: ReadonlyArray<string>]> = [
  ["message_batch", ["messages", "batches"]],
  ["chat_completion", ["chat", "completions"]],
  ["fine_tuning_job", ["fine_tuning", "jobs"]],
  // by the names that other providers have for them
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

/** Below `/v1/responses`, and no response: they are asked about the request that they bring. */
const actions: ReadonlySet<string> = new Set(["response/input_tokens", "response/compact"])

/**
 * What a request to this path does. The collection is recognised as a lax upstream would read it, and after any prefix
 * (`/v1/openai/files`); the id is taken as it is written.
 */
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
  // creates a thread and runs it; the answer is the run
  if (kind === "thread" && id === "runs" && rest === "" && method === "POST") return { _tag: "Create", kind }
  return actions.has(`${kind}/${id}`) ? bodyOnly : { _tag: "Use", kind, id, below: rest }
}

/** `end`: just after the collection's name. */
const firstCollection = (names: ReadonlyArray<string>): { readonly kind: string; readonly end: number } | undefined => {
  for (let start = 0; start < names.length; start++) {
    const found = collections.find(([, path]) => path.every((name, index) => name === names[start + index]))
    if (found !== undefined) return { kind: found[0], end: start + found[1].length }
  }
  return undefined
}

const bodyOnly: ObjectUse = { _tag: "BodyOnly" }

/**
 * The kinds whose contents are uploaded as forms (`multipart/form-data`), and what such a form may be: contents alone,
 * or a request that may refer to objects beside them.
 */
const forms: ReadonlyMap<string, "contents" | "request"> = new Map([
  ["container", "request"],
  ["file", "contents"],
  ["skill", "contents"],
  ["upload", "contents"],
  ["video", "request"]
])

/** What a form is that is sent there; `undefined` where none is taken. */
export const formKindOf = (use: ObjectUse): "contents" | "request" | undefined =>
  use._tag === "Create" || use._tag === "Use" ? forms.get(use.kind) : undefined

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isId = (value: unknown): value is string => typeof value === "string" && /^[\x21-\x7e]{1,256}$/.test(value)

/** What an answer about `kind` is read for. */
export interface ObjectSearch {
  readonly kind: string
  /** The object that the request created. */
  readonly created: boolean
  /** What the upstream's tools made while they ran: containers, and files of the second family. */
  readonly hosted: boolean
  /** What later requests refer to by an id of its own: items of a response or conversation, the audio of a completion. */
  readonly parts: boolean
  /** Ids that the client chose: an answer that repeats them says nothing of whose they are. */
  readonly clientIds?: ReadonlySet<string>
}

/** What a request says of the objects that its answer makes. */
export interface CreationRequest {
  /** Whether the upstream is to keep the answer. `undefined`: the request does not say. */
  readonly stored: boolean | undefined
  readonly tools: boolean
  /** Whether it asks for an answer that is spoken. */
  readonly audio: boolean
  /** The ids of the items that it adds to a conversation. `undefined`: nobody read them. */
  readonly itemIds: ReadonlyArray<string> | undefined
}

/** What the answer is to be read for; `undefined` where it makes nothing known. */
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
  // below an object may be what somebody wrote, as the content of a file
  if (below !== "" && below !== "cancel" && below !== "complete") return undefined
  return kind === "response" || filesOf.has(kind)
    ? { kind, created: false, hosted: hosting.has(kind), parts: kind === "response" }
    : undefined
}

/** Whether the upstream keeps what it makes. */
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

/** The files that the upstream made for an object of a kind. */
const filesOf: ReadonlyMap<string, (about: Members) => ReadonlyArray<unknown>> = new Map([
  ["batch", (about: Members) => [about["output_file_id"], about["error_file_id"]]],
  ["upload", (about: Members) => [idOf(about["file"])]],
  ["fine_tuning_job", (about: Members) => listOf(about["result_files"])]
])

const idOf = (value: unknown): unknown => (isRecord(value) ? value["id"] : undefined)
const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** The objects that an answer makes known to its client. A stream's event holds the response in `response`. */
export const objectsIn = (
  { clientIds, created, hosted, kind, parts }: ObjectSearch,
  answer: unknown
): ReadonlyArray<UpstreamObject> => {
  if (!isRecord(answer)) return []
  const about = isRecord(answer["response"]) ? answer["response"] : answer
  const objects: Array<UpstreamObject> = []
  const add = (kind: string, id: unknown) => {
    if (isId(id)) objects.push({ kind, id })
  }
  if (created) {
    // a run of a thread names it
    add(kind, (kind === "thread" ? about["thread_id"] : undefined) ?? about["id"])
    if (kind === "response") add("conversation", idOf(about["conversation"]))
  }
  for (const id of filesOf.get(kind)?.(about) ?? []) add("file", id)
  if (parts && kind === "response") {
    for (const item of [...listOf(about["output"]), answer["item"]]) add("item", idOf(item))
  }
  if (parts && kind === "conversation") {
    for (const id of listOf(about["data"]).map(idOf))
      if (typeof id === "string" && clientIds?.has(id) !== true) add("item", id)
  }
  if (parts && kind === "chat_completion") {
    for (const choice of listOf(answer["choices"])) {
      for (const said of isRecord(choice) ? [choice["message"], choice["delta"]] : []) {
        if (isRecord(said)) add("audio", idOf(said["audio"]))
      }
    }
  }
  if (hosted && kind === "response") {
    for (const item of [...listOf(about["output"]), answer["item"]]) add("container", containerOf(item))
  }
  if (hosted && kind === "message") {
    for (const holder of [answer, answer["message"], answer["delta"]]) {
      if (isRecord(holder)) add("container", idOf(holder["container"]))
    }
    for (const block of [...listOf(about["content"]), answer["content_block"]]) {
      for (const id of writtenFiles(block)) add("file", id)
    }
  }
  return objects
}

/** One of these is in the text of an answer, or in the line of a stream, that makes known more than what was created. */
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

/** Of a call that the upstream ran: where it ran. */
const containerOf = (item: unknown): unknown => {
  if (!isRecord(item)) return undefined
  if (item["type"] === "code_interpreter_call") return item["container_id"]
  const { environment } = item
  return item["type"] === "shell_call" && isRecord(environment) ? environment["container_id"] : undefined
}

/** Of a result of code execution: the files that the code wrote. */
const writtenFiles = (block: unknown): ReadonlyArray<unknown> => {
  if (!isRecord(block) || typeof block["type"] !== "string" || !block["type"].endsWith("code_execution_tool_result")) {
    return []
  }
  const { content } = block
  const written = isRecord(content) ? listOf(content["content"]) : listOf(content)
  return written.map((file) => (isRecord(file) ? file["file_id"] : undefined))
}

/** The members at the top of a request that name an object of an upstream, and its kind. */
const topMembers = {
  previous_response_id: "response",
  conversation: "conversation",
  input_file_id: "file",
  training_file: "file",
  validation_file: "file",
  assistant_id: "assistant",
  thread_id: "thread"
}

/** Those at any depth: content parts and tools hold them. */
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

/** The members at the top of a request that refer to objects. */
export const referringMembers: ReadonlyArray<string> = [...topKinds.keys()]

/**
 * What clients and models write there has names of its own; annotations, which models write, are only sent back with
 * the answers that held them.
 */
const freeFormMembers: ReadonlySet<string> = new Set([
  ...["parameters", "input_schema", "json_schema", "schema", "metadata", "annotations"]
])

/** What the upstream said of its own work in items that come back with the next request: nothing is fetched by it. */
const echoed: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["code_interpreter_call", ["container_id", "outputs"]],
  ["file_search_call", ["results"]],
  ["shell_call", ["environment"]]
])

const toolUse: ReadonlyArray<string> = ["input"]

/** The members of an object in a request that refer to nothing, by its type. */
const ignoredMembersOf = (type: unknown): ReadonlyArray<string> | undefined =>
  typeof type === "string" ? (type.endsWith("tool_use") ? toolUse : echoed.get(type)) : undefined

/** Objects in a request that are references, by their type: their `id` is that of an object of the kind. */
const referringTypes: ReadonlyMap<unknown, string> = new Map([
  ["item_reference", "item"],
  ["file_id", "file"]
])

/** A body names an object only where one of the members is in its text; an escape may hide one. */
const referencePattern = new RegExp(
  `"(?:${[...topKinds.keys(), ...referringTypes.keys(), "audio", "data_source"].join("|")})"|\\\\u`
)

/** An item of the input that is nothing but an id stands for the item of that id. */
const untypedItems = (body: unknown): ReadonlyArray<UpstreamObject> =>
  (isRecord(body) ? listOf(body["input"]) : []).flatMap((item) =>
    isRecord(item) && typeof item["id"] === "string" && item["type"] == null && item["role"] == null
      ? [{ kind: "item", id: item["id"] }]
      : []
  )

/** Evaluations can read all that an upstream has kept, whoever asked for it: nobody owns that. */
const keptByAll: ReadonlySet<unknown> = new Set(["logs", "responses", "stored_completions"])

const sourcesIn = (body: unknown): ReadonlyArray<UpstreamObject> => {
  const data = isRecord(body) ? body["data_source"] : undefined
  return [data, isRecord(data) ? data["source"] : undefined].flatMap((source) =>
    isRecord(source) && keptByAll.has(source["type"]) ? [{ kind: "data_source", id: String(source["type"]) }] : []
  )
}

/** More than any honest request refers to. */
export const maxReferences = 256

/**
 * The objects that the JSON `body` of a request refers to, which `text` was parsed to, each once; beyond `maxReferences`
 * the rest is not looked for. Some upstreams lay `extra_body` over the request.
 */
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
      // a request has no type, and one that claims to be a call is read all the same
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

/** `auto` is a container that does not exist yet. */
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

/** The ids that a list answers, in its order; `undefined` where the answer is no list. */
export const listedIds = (text: string): ReadonlyArray<string> | undefined => {
  const answer = parsed(text)
  if (!isRecord(answer) || !Array.isArray(answer["data"])) return undefined
  const ids = answer["data"].map((item: unknown) =>
    isRecord(item) && typeof item["id"] === "string" ? item["id"] : ""
  )
  return ids
}

/**
 * The list with those of its items that `keep` has, by their place. Where more follows, `last_id` stays the upstream's:
 * it is where the next page begins, and says nothing that a 404 would not.
 */
export const filteredList = (text: string, keep: ReadonlyArray<boolean>): string => {
  const answer = parsed(text)
  if (!isRecord(answer) || !Array.isArray(answer["data"])) return text
  const data: ReadonlyArray<unknown> = answer["data"].filter((_, index) => keep[index] === true)
  const idOf = (item: unknown) => (isRecord(item) ? item["id"] : null) ?? null
  const rewritten: Record<string, unknown> = { ...answer, data }
  if ("first_id" in answer) rewritten["first_id"] = idOf(data[0])
  if ("last_id" in answer && answer["has_more"] !== true) rewritten["last_id"] = idOf(data.at(-1))
  if (typeof answer["total"] === "number") rewritten["total"] = data.length
  return JSON.stringify(rewritten)
}
