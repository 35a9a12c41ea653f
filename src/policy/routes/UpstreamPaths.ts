import { isPattern } from "./Path.ts"

export type Segments = ReadonlyArray<string>

const segmentsOf = (path: string): Segments => path.slice(1).split("/")

const group = (...paths: ReadonlyArray<string>): ReadonlyArray<Segments> => paths.map(segmentsOf)
const liesIn = (paths: ReadonlyArray<Segments>, segments: Segments): boolean =>
  paths.some((path) => path.every((part, index) => part === segments[index]))

/** The setting `ui_exposure` controls access to these paths. */
const uiPaths = group("/ui")
export const isUi = (segments: Segments): boolean => liesIn(uiPaths, segments)

/** Administration paths of LiteLLM and similar upstreams. */
const adminLikeNames = [
  ...["access_group", "add", "alerting", "api", "audit", "budget", "cache", "callbacks", "cloudzero", "compliance"],
  ...["config", "config_overrides", "cost", "credentials", "customer", "debug", "delete", "email", "fallback", "files"],
  ...["get", "global", "guardrails", "health", "invitation", "jwt", "key", "keys", "mcp", "mcp-rest"],
  ...["memory-usage-in-mem-cache", "memory-usage-in-mem-cache-items", "model", "model_hub", "model_hub_table"],
  ...["onboarding", "organization", "policies", "policy", "project", "prompts", "provider", "reload", "router", "scim"],
  ...["search_tools", "settings", "spend", "sso", "tag", "team", "update", "user", "utils", "v2", "v3", "vector_store"]
]

/** `/files` belongs to administrators, but clients use `/v1/files`. */
const clientNames: ReadonlySet<string> = new Set(["files"])

/** These paths return short-lived upstream credentials. With them, a client could bypass all gateway policies. */
const credentialPaths = [
  ...["/v1/chatkit/sessions", "/v1/realtime/client_secrets", "/v1/realtime/sessions"],
  "/v1/realtime/transcription_sessions"
]

/** `admin_api_exposure` controls access to these paths. Upstreams serve many of them at the root and below `/v1`. */
const adminLikePaths = group(
  ...adminLikeNames.map((name) => `/${name}`),
  ...adminLikeNames.filter((name) => !clientNames.has(name)).map((name) => `/v1/${name}`),
  ...["/v1/agents", "/v1/dashboard", "/v1/fine_tuning/checkpoints", "/v1/load_lora_adapter", "/v1/memory"],
  ...["/v1/organizations", "/v1/projects", "/v1/tool", "/v1/unload_lora_adapter", "/v1/workflows"],
  ...credentialPaths
)
export const isAdminLike = (segments: Segments): boolean => liesIn(adminLikePaths, segments)

export const isPublicApi = ([first]: Segments): boolean => first === "v1"

export const sensitiveGroup = (path: string): string | undefined => {
  const segments = foldedPath(path)
  const found = segments && [...uiPaths, ...adminLikePaths].find((one) => liesIn([one], segments))
  return found && `/${found.join("/")}`
}

/** The paths that the pages of the upstream's UI load: exact paths, and prefixes. */
export interface UiSupportPaths {
  readonly exact: ReadonlyArray<Segments>
  readonly below: ReadonlyArray<Segments>
}

export const defaultUiSupport: UiSupportPaths = {
  exact: group(
    ...["/", "/get_image", "/in_product_nudges", "/upstream/.well-known/upstream-ui-config", "/login", "/logout"],
    ...["/models", "/user/info", "/v2/login"]
  ),
  below: group(
    ...["/get", "/health", "/upstream-asset-prefix", "/model", "/model_group", "/public", "/schedule", "/v1/model"]
  )
}

/** Adds paths of this installation (`UPSTREAM_UI_PATHS`): exact paths and `/prefix/*`. */
export const uiSupportWith = (named: ReadonlyArray<string>): UiSupportPaths => {
  const below = named.filter((path) => path.endsWith("/*"))
  return {
    exact: [...defaultUiSupport.exact, ...group(...named.filter((path) => !path.endsWith("/*")))],
    below: [...defaultUiSupport.below, ...group(...below.map((path) => path.slice(0, -2)))]
  }
}

export const isUiSupport = ({ exact, below }: UiSupportPaths, segments: Segments): boolean =>
  exact.some((path) => path.length === segments.length && liesIn([path], segments)) ||
  below.some((path) => path.length < segments.length && liesIn([path], segments))

const signing = group("/login", "/logout", "/v2/login")
export const isSignInOrOut = (segments: Segments): boolean => liesIn(signing, segments)

/** Returns the reason why a path cannot be a UI path. A trusted ingress opens UI paths without a key. */
export const refusedUiPath = (path: string): string | undefined => {
  if (!isPattern(path)) {
    return "must be a path of letters, digits and - _ ~ . between single slashes; at its end it may have /*"
  }
  const [first, second] = segmentsOf(path)
  if (first === "admin-ui" || first === "services" || first === "providers" || (first === "v1" && second === "*")) {
    return "must not cover a path of the gateway"
  }
  const sensitive = path.endsWith("/*") ? sensitiveGroup(path) : undefined
  return sensitive === undefined
    ? undefined
    : `must not open everything below it, because ${sensitive} is sensitive: list the paths individually`
}

/** Normalizes a path as the most lenient upstream may read it. Returns `undefined` if the reading is uncertain. */
export const foldedPath = (path: string): Segments | undefined => {
  const text = plain(decodeURIComponent(path))
  if (/[\\?#%;]/.test(text)) return undefined
  const segments = segmentsOf(text).map(withoutBlanks)
  return segments.slice(0, -1).includes("") ? undefined : segments
}

export const foldedSegment = (segment: string): string => withoutBlanks(plain(segment))

const plain = (text: string): string =>
  text
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .toLowerCase()

const withoutBlanks = (segment: string): string => withoutEnd(segment.trim())

/** Removes dots and blanks at the end in linear time. A regular expression ending in `+$` would be quadratic. */
const withoutEnd = (segment: string): string => {
  let end = segment.length
  while (end > 0 && /[.\s]/.test(segment.charAt(end - 1))) end--
  return segment.slice(0, end)
}
