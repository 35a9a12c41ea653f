import type { Passthrough } from "./model/Passthrough.ts"
import type { CanonicalPath } from "./model/Path.ts"
import * as RouteTable from "./model/RouteTable.ts"

/** What a request by the wildcard asks of its caller. */
export type Access =
  /** Not routable, whoever asks. */
  | "closed"
  /** A gateway key. */
  | "key"
  /** A gateway key and, beside it, an identity that a provider or a trusted gateway vouches for. */
  | "identity"
  /** Nothing: the ingress in front has seen to it. */
  | "open"

export type Caller = "nobody" | "key" | "identified"

/**
 * - `unsupported`: there is no such route, which is said before anybody is authenticated.
 * - `unauthenticated`: come again with a gateway key.
 * - `forbidden`: the key alone is not enough.
 */
export type Decision = "forward" | "unsupported" | "unauthenticated" | "forbidden"

/** The specification's table of exposure modes, by who calls. */
export const decide = (access: Access, caller: Caller): Decision => {
  switch (access) {
    case "closed":
      return "unsupported"
    case "open":
      return "forward"
    case "key":
      return caller === "nobody" ? "unauthenticated" : "forward"
    case "identity":
      return caller === "nobody" ? "unauthenticated" : caller === "key" ? "forbidden" : "forward"
  }
}

/**
 * Whom the settings let in, for a request that no other route has taken. Allowlists are read strictly, on the canonical
 * path; sensitive groups are recognised generously, on what a lax upstream might take the path for.
 */
export const accessOf = (settings: Passthrough, method: string, path: CanonicalPath): Access => {
  const { admin_api_exposure, allowed_methods, allowed_paths, enabled, ui_exposure } = settings
  const allowed = allowed_methods.includes(method) && allowed_paths.some((pattern) => matches(pattern, path.path))
  if (!enabled || !allowed) return "closed"
  const segments = folded(path.path)
  // not a way around a route of the gateway's own, either
  if (segments === undefined || RouteTable.match(method, pathOf(segments))._tag !== "Unrouted") return "closed"
  if (ui_exposure === "trusted_ingress" && isOpen(admin_api_exposure, method, path.segments)) return "open"
  if (liesIn(uiPaths, segments)) return accessBy[ui_exposure]
  return liesIn(adminLikePaths, segments) ? accessBy[admin_api_exposure] : "key"
}

/** Behind a trusted ingress. Without a credential goes only what is written as it is listed. */
const isOpen = (admin: Passthrough["admin_api_exposure"], method: string, written: Segments): boolean => {
  if (liesIn(uiPaths, written)) return true
  const supports = isSupport(written)
  if (supports && isBrowserSafe(method, written)) return true
  return admin === "explicitly_exposed" && (supports || liesIn(adminLikePaths, written))
}

/** What is left of `trusted_ingress` here are the UI's paths in another writing. */
const accessBy = {
  disabled: "closed",
  operator_only: "identity",
  explicitly_exposed: "key",
  trusted_ingress: "closed"
} as const

/** Reference §11.2: a trailing `*` is a test of the text before it. */
const matches = (pattern: string, path: string): boolean =>
  pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern

type Segments = ReadonlyArray<string>

const segmentsOf = (path: string): Segments => path.slice(1).split("/")
const pathOf = (segments: Segments): CanonicalPath => ({ path: `/${segments.join("/")}`, segments })

/** Each path of a group, and whatever lies below it. */
const group = (...paths: ReadonlyArray<string>): ReadonlyArray<Segments> => paths.map(segmentsOf)
const liesIn = (paths: ReadonlyArray<Segments>, segments: Segments): boolean =>
  paths.some((path) => path.every((part, index) => part === segments[index]))

/** Governed by `ui_exposure`. */
export const uiPaths = group("/ui")

/** Governed by `admin_api_exposure`: the specification's sensitive groups joined with the reference's (§11.3). */
export const adminLikePaths = group(
  ...["/alerting", "/api", "/audit", "/budget", "/cache", "/callbacks", "/cloudzero", "/config", "/config_overrides"],
  ...["/credentials", "/customer", "/email", "/files", "/global", "/guardrails", "/health", "/key", "/keys", "/mcp"],
  ...["/mcp-rest", "/model_hub", "/model_hub_table", "/organization", "/policies", "/project", "/prompts", "/provider"],
  ...["/reload", "/router", "/search_tools", "/spend", "/sso", "/tag", "/team", "/user", "/utils", "/v2", "/v3"],
  ...["/v1/agents", "/v1/mcp", "/v1/memory", "/v1/tool", "/v1/workflows"]
)

/** What the pages of the UI load beside themselves (reference §11.3): these alone, and what lies below those. */
export const supportPaths = {
  alone: group(
    ...["/", "/get_image", "/in_product_nudges", "/upstream/.well-known/upstream-ui-config", "/login", "/logout"],
    ...["/models", "/user/info", "/v2/login"]
  ),
  below: group(
    ...["/get", "/health", "/upstream-asset-prefix", "/model", "/model_group", "/public", "/schedule", "/v1/model"]
  )
}

const isSupport = (segments: Segments): boolean =>
  supportPaths.alone.some((path) => path.length === segments.length && liesIn([path], segments)) ||
  supportPaths.below.some((path) => path.length < segments.length && liesIn([path], segments))

/** Signing in and out sends forms; all else that a browser may do without a credential is reading. */
const signing = group("/login", "/logout", "/v2/login")
const isBrowserSafe = (method: string, segments: Segments): boolean =>
  method === "GET" || method === "HEAD" || method === "OPTIONS" || (method === "POST" && liesIn(signing, segments))

/**
 * The path as the laxest upstream might read it: decoded, without regard to case, width and invisible characters, dots and
 * blanks at a segment's end gone. `undefined`: there is no telling how it would be read.
 */
const folded = (path: string): Segments | undefined => {
  const text = decodeURIComponent(path)
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .toLowerCase()
  if (/[\\?#%;]/.test(text)) return undefined
  const segments = segmentsOf(text).map((segment) => segment.trim().replace(/[.\s]+$/, ""))
  return segments.slice(0, -1).includes("") ? undefined : segments
}
