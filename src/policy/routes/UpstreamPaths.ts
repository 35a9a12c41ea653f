import { isPattern } from "./Path.ts"

/**
 * What the upstream keeps at its paths, as far as the gateway has to know it: its UI, what it lets administrators do,
 * and what the UI's pages load. One table for the wildcard's exposure, the operator's UI and the registration of
 * services.
 */
export type Segments = ReadonlyArray<string>

const segmentsOf = (path: string): Segments => path.slice(1).split("/")

/** Each path of a group, and whatever lies below it. */
const group = (...paths: ReadonlyArray<string>): ReadonlyArray<Segments> => paths.map(segmentsOf)
const liesIn = (paths: ReadonlyArray<Segments>, segments: Segments): boolean =>
  paths.some((path) => path.every((part, index) => part === segments[index]))

/** Governed by `ui_exposure`. */
const uiPaths = group("/ui")
export const isUi = (segments: Segments): boolean => liesIn(uiPaths, segments)

/** The management API of a LiteLLM-like upstream: users, keys, teams, models, configuration, spend. */
const adminLikeNames = [
  ...["access_group", "add", "alerting", "api", "audit", "budget", "cache", "callbacks", "cloudzero", "compliance"],
  ...["config", "config_overrides", "cost", "credentials", "customer", "debug", "delete", "email", "fallback", "files"],
  ...["get", "global", "guardrails", "health", "invitation", "jwt", "key", "keys", "mcp", "mcp-rest"],
  ...["memory-usage-in-mem-cache", "memory-usage-in-mem-cache-items", "model", "model_hub", "model_hub_table"],
  ...["onboarding", "organization", "policies", "policy", "project", "prompts", "provider", "reload", "router", "scim"],
  ...["search_tools", "settings", "spend", "sso", "tag", "team", "update", "user", "utils", "v2", "v3", "vector_store"]
]

/** `/files` is an administrator's, and `/v1/files` is where clients keep theirs. */
const clientNames: ReadonlySet<string> = new Set(["files"])

/** They answer with a short-lived credential of the upstream, which works there past every policy of the gateway. */
const credentialPaths = [
  ...["/v1/chatkit/sessions", "/v1/realtime/client_secrets", "/v1/realtime/sessions"],
  "/v1/realtime/transcription_sessions"
]

/**
 * Governed by `admin_api_exposure`: what administrators call, at the root and below `/v1`, where upstreams serve many of
 * these paths a second time; and what only stands below `/v1`, such as the organization APIs of the providers.
 */
const adminLikePaths = group(
  ...adminLikeNames.map((name) => `/${name}`),
  ...adminLikeNames.filter((name) => !clientNames.has(name)).map((name) => `/v1/${name}`),
  ...["/v1/agents", "/v1/dashboard", "/v1/fine_tuning/checkpoints", "/v1/load_lora_adapter", "/v1/memory"],
  ...["/v1/organizations", "/v1/projects", "/v1/tool", "/v1/unload_lora_adapter", "/v1/workflows"],
  ...credentialPaths
)
export const isAdminLike = (segments: Segments): boolean => liesIn(adminLikePaths, segments)

/** The part of an upstream's paths that is its public API, whoever made it. */
export const isPublicApi = ([first]: Segments): boolean => first === "v1"

/** The sensitive group that a path lies in, however it is written. */
export const sensitiveGroup = (path: string): string | undefined => {
  const segments = foldedPath(path)
  const found = segments && [...uiPaths, ...adminLikePaths].find((one) => liesIn([one], segments))
  return found && `/${found.join("/")}`
}

/** What the pages of the UI load beside themselves: these paths alone, and what lies below those. */
export interface UiSupportPaths {
  readonly exact: ReadonlyArray<Segments>
  readonly below: ReadonlyArray<Segments>
}

/** Reference §11.3. */
export const defaultUiSupport: UiSupportPaths = {
  exact: group(
    ...["/", "/get_image", "/in_product_nudges", "/upstream/.well-known/upstream-ui-config", "/login", "/logout"],
    ...["/models", "/user/info", "/v2/login"]
  ),
  below: group(
    ...["/get", "/health", "/upstream-asset-prefix", "/model", "/model_group", "/public", "/schedule", "/v1/model"]
  )
}

/**
 * With the names that a deployment knows its upstream's paths by (`UPSTREAM_UI_PATHS`): exact ones, and `/prefix/*`.
 */
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

/**
 * Why a path cannot be named as one of the UI's, or `undefined`: each is read without a key behind a trusted ingress.
 */
export const refusedUiPath = (path: string): string | undefined => {
  if (!isPattern(path)) {
    return "must be a path of letters, digits and - _ ~ . between single slashes; at its end it may have /*"
  }
  const [first, second] = segmentsOf(path)
  if (first === "admin-ui" || first === "services" || first === "providers" || (first === "v1" && second === "*")) {
    return "must not take what is the gateway's own"
  }
  const sensitive = path.endsWith("/*") ? sensitiveGroup(path) : undefined
  return sensitive === undefined
    ? undefined
    : `must not open all that is below it, because ${sensitive} is sensitive: name the paths one by one`
}

/**
 * The path as the laxest upstream might read it: decoded, without regard to case, width and invisible characters, dots
 * and blanks at a segment's end gone. `undefined`: there is no telling how it would be read.
 */
export const foldedPath = (path: string): Segments | undefined => {
  const text = plain(decodeURIComponent(path))
  if (/[\\?#%;]/.test(text)) return undefined
  const segments = segmentsOf(text).map(withoutBlanks)
  return segments.slice(0, -1).includes("") ? undefined : segments
}

/** One decoded segment, or a name, as the laxest upstream might read it. */
export const foldedSegment = (segment: string): string => withoutBlanks(plain(segment))

const plain = (text: string): string =>
  text
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .toLowerCase()

const withoutBlanks = (segment: string): string => withoutEnd(segment.trim())

/** Without the dots and blanks at its end, taken one by one: a pattern that ends with `+$` starts anew at each dot. */
const withoutEnd = (segment: string): string => {
  let end = segment.length
  while (end > 0 && /[.\s]/.test(segment.charAt(end - 1))) end--
  return segment.slice(0, end)
}
