import * as Path from "./Path.ts"
import * as RouteTable from "./RouteTable.ts"
import * as UpstreamPaths from "./UpstreamPaths.ts"

/** Of the direct compatible upstream, until an operator names other paths (`DIRECT_COMPAT_ALLOWED_PATHS`). */
export const defaultPaths: ReadonlyArray<string> = ["/v1/*"]

/**
 * Whether a POST to `path` of the direct compatible upstream may go there, with the credential that the gateway keeps
 * for it. The upstream's UI and its administration are never open. A path that a lax upstream would take for one of the
 * canonical routes has to be written as that route.
 */
export const isOpen = (allowed: ReadonlyArray<string>, path: string): boolean => {
  if (!allowed.some((pattern) => Path.matches(pattern, path))) return false
  const segments = UpstreamPaths.folded(path)
  if (segments === undefined || UpstreamPaths.isUi(segments) || UpstreamPaths.isAdminLike(segments)) return false
  const taken = RouteTable.canonicalRoute("POST", segments)
  return taken === undefined || taken === RouteTable.canonicalRoute("POST", path.slice(1).split("/"))
}
