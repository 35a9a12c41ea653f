import { Result } from "effect"
import * as Path from "./Path.ts"
import * as RouteTable from "./RouteTable.ts"
import * as UpstreamPaths from "./UpstreamPaths.ts"

/**
 * If the base URL contains an API version (`/v1beta/openai`), its path replaces `/v1` of the gateway's path. Otherwise
 * the gateway's path is appended. This suits the base URLs that vendors publish.
 */
export interface UpstreamBase {
  /** Scheme, host and port. A credential is stored for one origin. */
  readonly origin: string
  readonly prefix: string
  /** The part of the gateway's path that `prefix` replaces. Empty if `prefix` precedes the whole path. */
  readonly replaced: "" | "/v1"
  /** The part of `prefix` after the version, such as `/openai` of `/v1beta/openai`. */
  readonly belowVersion: string
}

export const atRoot = (origin: string): UpstreamBase => ({ origin, prefix: "", replaced: "", belowVersion: "" })

export const of = (address: string): UpstreamBase => {
  const { origin, pathname } = new URL(address)
  const path = withoutEndSlash(pathname)
  const segments = path.split("/").slice(1)
  const version = segments.findLastIndex((segment) => isVersion.test(segment))
  if (version === -1) return { ...atRoot(origin), prefix: path }
  // The gateway's path adds this version again.
  if (path.endsWith("/v1")) return { ...atRoot(origin), prefix: path.slice(0, -3) }
  const below = segments.slice(version + 1)
  return { origin, prefix: path, replaced: "/v1", belowVersion: below.length === 0 ? "" : `/${below.join("/")}` }
}

const isVersion = /^v\d+(?:(?:alpha|beta)\d*)?$/i

export const normalized = (address: string): string => {
  const { origin, pathname } = new URL(address)
  return origin + withoutEndSlash(pathname)
}

export const addressOf = (base: UpstreamBase): string => base.origin + targetAt(base, "/v1")

const withoutEndSlash = (path: string): string => (path.endsWith("/") ? path.slice(0, -1) : path)

/** Checks the text, because a URL parser would already have resolved dot segments and other spellings. */
const plainAddress = /^https?:\/\/[^/?#\\\s]+((?:\/[A-Za-z0-9_~.-]+)*)\/?$/i

export const refusedAddress = (address: string): string | undefined => {
  const url = address.length <= maxLength && URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === "") {
    return "must be an http or https URL with a host"
  }
  if (url.username + url.password !== "") {
    return "must not carry a user or password: store the credential in its own field"
  }
  if (/[?#]/.test(address)) return "must not carry a query or a fragment: the gateway appends paths"
  const path = plainAddress.exec(address)?.[1]
  if (path === undefined || /\/\.{1,2}(?:\/|$)/.test(path)) {
    return "must have a plain path: letters, digits and - _ ~ . between single slashes, without dot segments or escapes"
  }
  const segments = path.split("/").slice(1)
  const route = RouteTable.aliasOf("POST", segments)
  if (route !== undefined) return `must end before the path of a route (${route.pattern}): the gateway appends it`
  return undefined
}

const maxLength = 2048

export const targetAt = ({ prefix, replaced }: UpstreamBase, target: string): string | undefined => {
  if (replaced === "") return prefix === "" ? target : prefix + target
  const rest = belowV1(target)
  return rest === undefined ? undefined : prefix + rest
}

const belowV1 = (target: string): string | undefined => {
  const length = target.slice(1).search(/[/?]/)
  const first = length === -1 ? target.slice(1) : target.slice(1, 1 + length)
  // This cannot throw, because escapes were checked when the path became canonical.
  return (first.includes("%") ? decodeURIComponent(first) : first) === "v1" ? target.slice(1 + first.length) : undefined
}

/** True if the upstream would serve its UI, its administration or a governed route for this passthrough path. */
export const reachesForbiddenPath = ({ belowVersion }: UpstreamBase, target: string): boolean => {
  if (belowVersion === "") return false
  const rest = belowV1(target.split("?", 1)[0]!)
  const path = rest === undefined ? undefined : Path.canonicalise(`/v1${belowVersion}${rest}`)
  if (path === undefined || Result.isFailure(path)) return true
  const segments = UpstreamPaths.foldedPath(path.success.path)
  return (
    segments === undefined ||
    UpstreamPaths.isUi(segments) ||
    UpstreamPaths.isAdminLike(segments) ||
    RouteTable.aliasOf("POST", segments) !== undefined
  )
}
