import { Result } from "effect"
import * as Path from "./Path.ts"
import * as RouteTable from "./RouteTable.ts"
import * as UpstreamPaths from "./UpstreamPaths.ts"

/**
 * Where an upstream's API is. Vendors publish base URLs for their SDKs, so one rule covers them all: where the path of
 * the base names an API version (`/api/v1`, `/v1beta/openai`, `/api/paas/v4`), it takes the place of the gateway's `/v1`;
 * where it names none, the gateway's path follows it.
 */
export interface UpstreamBase {
  /** Scheme, host and port: the part that credentials belong to. */
  readonly origin: string
  /** The beginning of every path there. */
  readonly prefix: string
  /** The beginning of the gateway's path in whose place `prefix` stands; empty where it stands before the whole path. */
  readonly replaced: "" | "/v1"
  /** What follows the version in `prefix`: `/openai` of `/v1beta/openai`. */
  readonly belowVersion: string
}

/** An upstream at the root of its host. */
export const atRoot = (origin: string): UpstreamBase => ({ origin, prefix: "", replaced: "", belowVersion: "" })

/** Of an address that `refused` lets pass. */
export const of = (address: string): UpstreamBase => {
  const { origin, pathname } = new URL(address)
  const path = withoutEndSlash(pathname)
  const segments = path.split("/").slice(1)
  const version = segments.findLastIndex((segment) => isVersion.test(segment))
  if (version === -1) return { ...atRoot(origin), prefix: path }
  // the gateway's own path brings this version again
  if (path.endsWith("/v1")) return { ...atRoot(origin), prefix: path.slice(0, -3) }
  const below = segments.slice(version + 1)
  return { origin, prefix: path, replaced: "/v1", belowVersion: below.length === 0 ? "" : `/${below.join("/")}` }
}

const isVersion = /^v\d+(?:(?:alpha|beta)\d*)?$/i

/** The address as it is stored and compared: as the URL parser writes it, without a slash at its end. */
export const normalized = (address: string): string => {
  const { origin, pathname } = new URL(address)
  return origin + withoutEndSlash(pathname)
}

/** For people: where the gateway's `/v1` is. */
export const addressOf = (base: UpstreamBase): string => base.origin + targetAt(base, "/v1")

const withoutEndSlash = (path: string): string => (path.endsWith("/") ? path.slice(0, -1) : path)

/** The parser resolves dot segments, and reads more than one spelling: the text itself must be the plain one. */
const plainAddress = /^https?:\/\/[^/?#\\\s]+((?:\/[A-Za-z0-9_~.-]+)*)\/?$/i

/** Why an address cannot be an upstream's base, for whoever typed it; `undefined` where it can. */
export const refusedAddress = (address: string): string | undefined => {
  const url = address.length <= maxLength && URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === "") {
    return "must be an http or https URL with a host"
  }
  if (url.username + url.password !== "") {
    return "must not carry a user or password: the credential has a place of its own"
  }
  if (/[?#]/.test(address)) return "must not carry a query or a fragment: paths are added at its end"
  const path = plainAddress.exec(address)?.[1]
  if (path === undefined || /\/\.{1,2}(?:\/|$)/.test(path)) {
    return "must have a plain path: letters, digits and - _ ~ . between single slashes, without dot segments or escapes"
  }
  const segments = path.split("/").slice(1)
  const route = RouteTable.aliasOf("POST", segments)
  if (route !== undefined) return `must end before the path of a route (${route.pattern}): requests bring it`
  return undefined
}

const maxLength = 2048

/** The upstream's path and query for one of the gateway, byte for byte but for the base; `undefined`: it has no place. */
export const targetAt = ({ prefix, replaced }: UpstreamBase, target: string): string | undefined => {
  if (replaced === "") return prefix === "" ? target : prefix + target
  const rest = belowV1(target)
  return rest === undefined ? undefined : prefix + rest
}

/** What follows `/v1`, however that is written; `undefined` for a path that begins otherwise. */
const belowV1 = (target: string): string | undefined => {
  const length = target.slice(1).search(/[/?]/)
  const first = length === -1 ? target.slice(1) : target.slice(1, 1 + length)
  // the target has been canonicalised: its escapes can be decoded
  return (first.includes("%") ? decodeURIComponent(first) : first) === "v1" ? target.slice(1 + first.length) : undefined
}

/**
 * Whether the base makes of an ungoverned path one that must not be reached so: one of the upstream's UI or
 * administration, or that of a governed route. The path by itself has been judged before.
 */
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
