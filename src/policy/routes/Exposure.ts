import type { Passthrough } from "./Passthrough.ts"
import { type CanonicalPath, matches } from "./Path.ts"
import * as RouteTable from "./RouteTable.ts"
import * as UpstreamPaths from "./UpstreamPaths.ts"

/** What a request by the wildcard asks of its caller. */
export type WildcardAccess =
  /** Not routable, whoever asks. */
  | "closed"
  /** A gateway key. */
  | "key"
  /** A gateway key and, beside it, an identity that a provider or a trusted gateway vouches for. */
  | "identity"
  /** Nothing: the ingress in front has seen to it. */
  | "open"

export type CallerKind = "nobody" | "key" | "identified"

/**
 * - `unsupported`: there is no such route, which is said before anybody is authenticated.
 * - `unauthenticated`: come again with a gateway key.
 * - `forbidden`: the key alone is not enough.
 */
export type ExposureDecision = "forward" | "unsupported" | "unauthenticated" | "forbidden"

/** The specification's table of exposure modes, by who calls. */
export const decide = (access: WildcardAccess, caller: CallerKind): ExposureDecision => {
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
export const accessOf = (
  settings: Passthrough,
  support: UpstreamPaths.UiSupportPaths,
  method: string,
  path: CanonicalPath
): WildcardAccess => {
  const { admin_api_exposure, allowed_methods, allowed_paths, enabled, ui_exposure } = settings
  const matchingPaths = allowed_methods.includes(method)
    ? allowed_paths.filter((pattern) => matches(pattern, path.path))
    : []
  if (!enabled || matchingPaths.length === 0) return "closed"
  const segments = UpstreamPaths.foldedPath(path.path)
  // not a way around a route of the gateway's own, either
  if (segments === undefined || RouteTable.match(method, pathOf(segments))._tag !== "Unrouted") return "closed"
  if (RouteTable.aliasOf(method, segments) !== undefined) return "closed"
  if (ui_exposure === "trusted_ingress" && isOpen(admin_api_exposure, support, method, path.segments)) {
    return "open"
  }
  if (UpstreamPaths.isUi(segments)) return accessByExposure[ui_exposure]
  if (UpstreamPaths.isAdminLike(segments)) return accessByExposure[admin_api_exposure]
  const loadedByUi = ui_exposure !== "disabled" && UpstreamPaths.isUiSupport(support, segments)
  return UpstreamPaths.isPublicApi(segments) || loadedByUi || matchingPaths.some(namesFirstSegment) ? "key" : "closed"
}

/**
 * Upstreams keep much at their root that no list of ours knows. Outside the public API, and beside what an exposed UI
 * loads, a path is open only where its first segment is written out: `/rerank` and `/rerank/*` name a place, `/*` and
 * `/r*` do not.
 */
const namesFirstSegment = (pattern: string): boolean => !/^\/[^/]*\*$/.test(pattern)

/** Behind a trusted ingress. Without a credential goes only what is written as it is listed. */
const isOpen = (
  admin: Passthrough["admin_api_exposure"],
  support: UpstreamPaths.UiSupportPaths,
  method: string,
  written: UpstreamPaths.Segments
): boolean => {
  if (UpstreamPaths.isUi(written)) return true
  const supports = UpstreamPaths.isUiSupport(support, written)
  if (supports && isBrowserSafe(method, written)) return true
  return admin === "explicitly_exposed" && (supports || UpstreamPaths.isAdminLike(written))
}

/** Signing in and out sends forms; all else that a browser may do without a credential is reading. */
const isBrowserSafe = (method: string, written: UpstreamPaths.Segments): boolean =>
  method === "GET" ||
  method === "HEAD" ||
  method === "OPTIONS" ||
  (method === "POST" && UpstreamPaths.isSignInOrOut(written))

/** What is left of `trusted_ingress` here are the UI's paths in another writing. */
const accessByExposure = {
  disabled: "closed",
  operator_only: "identity",
  explicitly_exposed: "key",
  trusted_ingress: "closed"
} as const

const pathOf = (segments: UpstreamPaths.Segments): CanonicalPath => ({ path: `/${segments.join("/")}`, segments })
