import type { ResponseOf } from "../api/Endpoints.ts"

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
  replay: (id) => `/dead-letters/replays/${id}`
}

export const kindWords: Readonly<Record<Kind, string>> = {
  request: "request",
  key: "key",
  project: "project",
  session: "session",
  audit_event: "audit event",
  task: "task",
  dead_letter: "dead letter",
  replay: "replay"
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
