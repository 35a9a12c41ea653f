import { Schema } from "effect"
import * as UpstreamPaths from "./UpstreamPaths.ts"

/** Who may use an object that a key created at the upstream: its project, the key alone, or every key. */
export const Ownership = Schema.Literals(["project", "key", "shared"])
export type Ownership = typeof Ownership.Type

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
  | { readonly _tag: "Use"; readonly kind: string; readonly id: string }
  /** A request to a collection that creates nothing which is remembered; its body may refer to objects. */
  | { readonly _tag: "BodyOnly" }
  /** The path may be one of an object, and it cannot be told of which. */
  | { readonly _tag: "Unclear" }

export const unused: ObjectUse = { _tag: "None" }

/** The canonical routes that create, list or use objects. */
export const withObjects: ReadonlySet<string> = new Set([
  ...["responses", "message-batches", "message-batch", "message-batch-results", "message-batch-cancel"]
])

/** Where the objects of each kind are created and listed, below `/v1` or what stands in its place. */
const collections: ReadonlyArray<readonly [kind: string, path: ReadonlyArray<string>]> = [
  ["message_batch", ["messages", "batches"]],
  ["chat_completion", ["chat", "completions"]],
  ["fine_tuning_job", ["fine_tuning", "jobs"]],
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
 * that ends with `v1` (`/openai/v1/files`); the id is taken as it is written.
 */
export const useOf = (method: string, segments: ReadonlyArray<string>): ObjectUse => {
  const folded = UpstreamPaths.folded(`/${segments.join("/")}`)
  if (folded === undefined || folded.length !== segments.length) return { _tag: "Unclear" }
  const below = folded.lastIndexOf("v1") + 1
  const names = folded.slice(below)
  const found = collections.find(([, path]) => path.every((name, index) => name === names[index]))
  if (found === undefined) return unused
  const [kind, path] = found
  const id = segments[below + path.length]
  if (id === undefined || id === "") {
    // a completion is only kept where its request says so, and is not remembered
    if (method === "POST") return kind === "chat_completion" ? bodyOnly : { _tag: "Create", kind }
    return method === "GET" || method === "HEAD" ? { _tag: "List", kind } : { _tag: "Unclear" }
  }
  return actions.has(`${kind}/${id}`) ? bodyOnly : { _tag: "Use", kind, id }
}

const bodyOnly: ObjectUse = { _tag: "BodyOnly" }

/** The kinds whose contents are uploaded as forms (`multipart/form-data`). */
const uploadedKinds: ReadonlySet<string> = new Set(["container", "file", "skill", "upload", "video"])

/** Whether a form that is sent there is an upload: it brings contents, and refers to no object. */
export const takesUploads = (use: ObjectUse): boolean =>
  (use._tag === "Create" || use._tag === "Use") && uploadedKinds.has(use.kind)

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isId = (value: unknown): value is string => typeof value === "string" && /^[\x21-\x7e]{1,256}$/.test(value)

/** The members of an answer that name files which the upstream made for the object. */
const fileMembers = ["output_file_id", "error_file_id"]

/**
 * The objects that an answer about `kind` makes known to its client: itself, where the request created something, and
 * the files that the upstream made for it. A stream's event holds the response in `response`.
 */
export const madeKnown = (kind: string, answer: unknown, created: boolean): ReadonlyArray<UpstreamObject> => {
  if (!isRecord(answer)) return []
  const about = isRecord(answer["response"]) ? answer["response"] : answer
  const objects: Array<UpstreamObject> = []
  if (created && isId(about["id"])) objects.push({ kind, id: about["id"] })
  const { conversation, file, result_files: results } = about
  for (const name of fileMembers) if (isId(about[name])) objects.push({ kind: "file", id: about[name] })
  if (isRecord(file) && isId(file["id"])) objects.push({ kind: "file", id: file["id"] })
  if (Array.isArray(results)) for (const id of results) if (isId(id)) objects.push({ kind: "file", id })
  if (created && isRecord(conversation) && isId(conversation["id"])) {
    objects.push({ kind: "conversation", id: conversation["id"] })
  }
  return objects
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
  vector_store_id: "vector_store",
  vector_store_ids: "vector_store"
}

const deepKinds: ReadonlyMap<string, string> = new Map(Object.entries(deepMembers))
const topKinds: ReadonlyMap<string, string> = new Map(Object.entries({ ...topMembers, ...deepMembers }))

/** What clients and models write there has names of its own. */
const ownWords: ReadonlySet<string> = new Set(["parameters", "input_schema", "json_schema", "schema", "metadata"])

/** A body names an object only where one of the members is in its text; an escape may hide one. */
const mayRefer = new RegExp(`"(?:${[...topKinds.keys()].join("|")})"|\\\\u`)

/** More than any honest request refers to. */
export const maxReferences = 256

/**
 * The objects that the JSON `body` of a request refers to, which `text` was parsed to, each once; beyond `maxReferences`
 * the rest is not looked for. Some upstreams lay `extra_body` over the request.
 */
export const referredTo = (text: string, body: unknown): ReadonlyArray<UpstreamObject> => {
  if (!mayRefer.test(text)) return none
  const extra = isRecord(body) ? body["extra_body"] : undefined
  const found = new Map<string, UpstreamObject>()
  const pending: Array<unknown> = [body]
  while (pending.length > 0 && found.size <= maxReferences) {
    const value = pending.pop()
    if (Array.isArray(value)) for (const item of value) pending.push(item)
    else if (isRecord(value)) {
      const kinds = value === body || value === extra ? topKinds : deepKinds
      const called = typeof value["type"] === "string" && value["type"].endsWith("tool_use")
      for (const [name, member] of Object.entries(value)) {
        const kind = kinds.get(name)
        if (kind !== undefined) for (const id of idsIn(member)) found.set(`${kind}/${id}`, { kind, id })
        if (!ownWords.has(name) && !(called && name === "input")) pending.push(member)
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
export const listed = (text: string): ReadonlyArray<string> | undefined => {
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
export const filtered = (text: string, keep: ReadonlyArray<boolean>): string => {
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
