import type { Passthrough } from "./Passthrough.ts"
import { type CanonicalPath, matches } from "./Path.ts"
import * as RouteTable from "./RouteTable.ts"
import * as UpstreamPaths from "./UpstreamPaths.ts"

export type WildcardAccess =
  | "closed"
  | "key"
  /** The client needs a gateway key and an identity from an identity provider or a trusted gateway. */
  | "identity"
  /** The client needs no credential, because a trusted ingress has authenticated it. */
  | "open"

type CallerKind = "nobody" | "key" | "identified"

/** `unsupported` is decided before authentication. `forbidden` means that a key alone is not enough. */
export type ExposureDecision = "forward" | "unsupported" | "unauthenticated" | "forbidden"

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

/** Allowed paths match exactly. Sensitive paths match every spelling that a lenient upstream may accept. */
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
  // Passthrough must not bypass a route of the gateway.
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

/** Outside the public API, a pattern must spell out its first segment. `/rerank/*` opens paths, `/r*` does not. */
const namesFirstSegment = (pattern: string): boolean => !/^\/[^/]*\*$/.test(pattern)

/** Without a credential, only exact spellings of the UI's paths are forwarded. */
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

/** Without administration access, a browser may only read, and sign in or out by POST. */
const isBrowserSafe = (method: string, written: UpstreamPaths.Segments): boolean =>
  method === "GET" ||
  method === "HEAD" ||
  method === "OPTIONS" ||
  (method === "POST" && UpstreamPaths.isSignInOrOut(written))

/** With `trusted_ingress`, exact UI paths are already open here. Other spellings of UI paths stay closed. */
const accessByExposure = {
  disabled: "closed",
  operator_only: "identity",
  explicitly_exposed: "key",
  trusted_ingress: "closed"
} as const

const pathOf = (segments: UpstreamPaths.Segments): CanonicalPath => ({ path: `/${segments.join("/")}`, segments })
