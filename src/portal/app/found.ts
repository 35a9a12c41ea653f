import type { ResponseOf } from "../api/Endpoints.ts"
import { useApi } from "../api/queries.ts"
import { allows } from "../api/session.ts"

type FindResult = ResponseOf<"GET", "/admin-ui/find">
type Found = FindResult["found"][number]
type Kind = Found["kind"]

/** The page that shows what was found. */
const pageOf: Readonly<Record<Kind, (id: string) => string>> = {
  request: (id) => `/requests/${id}`,
  key: (id) => `/keys/${id}`,
  project: (id) => `/projects/${id}`,
  session: (id) => `/requests?session_id=${id}`,
  audit_event: (id) => `/audit?open=${id}`,
  task: (id) => `/tasks/${id}`,
  dead_letter: (id) => `/dead-letters/${id}`,
  replay: (id) => `/dead-letters/replays/${id}`,
  cancellation: (id) => `/tasks/cancellations/${id}`
}

export const kindWords: Readonly<Record<Kind, string>> = {
  request: "request",
  key: "key",
  project: "project",
  session: "session",
  audit_event: "audit event",
  task: "task",
  dead_letter: "dead letter",
  replay: "replay",
  cancellation: "cancellation"
}

export const addressOfFound = ({ id, kind }: Found): string => pageOf[kind](encodeURIComponent(id))

/** Says which stores know nothing of an id, and since when they remember. */
export const searchedSentence = (searched: FindResult["searched"]): string => {
  const asked = searched
    .filter(({ state }) => state === "searched")
    .map(({ kind, since }) => `${kindWords[kind]}s${since === null ? "" : ` since ${since.slice(0, 10)}`}`)
  const others = searched
    .filter(({ state }) => state !== "searched")
    .map(({ detail, kind }) => `${kindWords[kind]}s: ${detail ?? "not searched"}`)
  const where = asked.length === 0 ? "" : ` No such id among ${asked.join(", ")}.`
  const isRequestsAsked = searched.some(({ kind, state }) => kind === "request" && state === "searched")
  // such a request has an id in its response all the same
  const without = isRequestsAsked ? " Requests to unknown paths, or with an unknown key, are not recorded." : ""
  return [`No page, action or id is called so.${where}${without}`, ...others].join(" ")
}

/** Shorter words are in too many names. */
const leastWord = 2
const mostOfKind = 5

/** Something that has a name. `to`: its page, below `/admin-ui`. */
export interface Named {
  readonly kind: "key" | "project" | "model"
  readonly id: string
  readonly label: string
  readonly to: string
}

interface Answer<Row> {
  readonly data: ReadonlyArray<Row> | undefined
  readonly isPlaceholderData: boolean
}

/** An answer to the word before would offer what nobody has asked for. */
const current = <Row>({ data, isPlaceholderData }: Answer<Row>): ReadonlyArray<Row> =>
  isPlaceholderData ? [] : (data ?? [])

/** Finds keys, projects and models by what they are called: one call per kind, where the token may read it. */
export const useNamed = (word: string, scopes: ReadonlyArray<string>): ReadonlyArray<Named> => {
  const isLongEnough = word.length >= leastWord
  const maySeeUsage = isLongEnough && allows(scopes, ["usage:read"])
  const query = { q: word, limit: mostOfKind }
  const mayGovern = allows(scopes, ["operators:manage"])
  const keys = useApi("/admin-ui/admin/keys", { query }, { enabled: isLongEnough && mayGovern })
  const projects = useApi("/admin-ui/admin/projects", { query }, { enabled: maySeeUsage })
  // the models that were used are few, and are read once for all words
  const models = useApi("/admin-ui/admin/models", { query: { limit: 500 } }, { enabled: maySeeUsage })
  const lower = word.toLowerCase()
  if (!isLongEnough) return []
  return [
    ...current(keys).map(
      ({ id, key_prefix, name }): Named => ({
        kind: "key",
        id,
        label: name === null ? key_prefix : `${name} (${key_prefix})`,
        to: `/keys/${id}`
      })
    ),
    ...current(projects).map(
      ({ id, name }): Named => ({
        kind: "project",
        id,
        label: name,
        to: mayGovern ? `/projects/${id}` : `/projects?q=${encodeURIComponent(name)}`
      })
    ),
    ...(models.data?.models ?? [])
      .filter(({ model }) => model.toLowerCase().includes(lower))
      .slice(0, mostOfKind)
      .map(
        ({ model }): Named => ({
          kind: "model",
          id: model,
          label: model,
          to: `/models?q=${encodeURIComponent(model)}`
        })
      )
  ]
}
