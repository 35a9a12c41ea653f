import { type CanonicalRoute, canonicalRoutes, type PolicyRoute } from "./CanonicalRoute.ts"
import type { CanonicalPath } from "./Path.ts"
import { builtInServices } from "./Service.ts"

export type Route =
  /** `/admin-ui…`: the control listener's, never served or forwarded here. */
  | { readonly _tag: "Control" }
  /** `/services…`, and POST on the four services with a path of their own: never falls through to anything else. */
  | { readonly _tag: "Service"; readonly name: string }
  | { readonly _tag: "Canonical"; readonly route: CanonicalRoute }
  /**
   * `/providers/compat/…`: the direct compatible upstream. `rest` is the path there, `like` the gateway's own route of
   * it.
   */
  | { readonly _tag: "Compat"; readonly rest: string; readonly like?: CanonicalRoute }
  /** `allowed`: methods that the path has, when it has any. */
  | { readonly _tag: "Unrouted"; readonly allowed: ReadonlyArray<string> }

/** The specification's routing order, first match wins (Endpoints, proxy listener). */
export const match = (method: string, { path, segments }: CanonicalPath): Route => {
  const [first, second] = segments
  if (first === "admin-ui") return { _tag: "Control" }
  if (first === "services") return { _tag: "Service", name: second ?? "" }
  // One trailing slash is the same route: an upstream that ignores it must not be a way around the route's policy.
  const wanted = segments.at(-1) === "" ? segments.slice(0, -1) : segments
  const onPath = routeOn(wanted)
  if (onPath?.methods.some((one) => one === method)) return { _tag: "Canonical", route: onPath }
  if (first === "providers" && second === "compat") {
    if (method !== "POST") return { _tag: "Unrouted", allowed: ["POST"] }
    const like = routeOn(wanted.slice(2))
    const rest = path.slice("/providers/compat".length) || "/"
    return like?.methods.some((one) => one === method) ? { _tag: "Compat", rest, like } : { _tag: "Compat", rest }
  }
  if (method === "POST" && segments.length === 1 && builtInServices.some((name) => name === first)) {
    return { _tag: "Service", name: first ?? "" }
  }
  return { _tag: "Unrouted", allowed: onPath?.methods ?? [] }
}

/** The route of a registered service's path, as policies and records name it. */
export const serviceRoute = (path: string): PolicyRoute => serviceRoutes.get(path) ?? "/services/*"

const serviceRoutes: ReadonlyMap<string, PolicyRoute> = new Map(builtInServices.map((name) => [`/${name}`, `/${name}`]))

/** No path fits two of them. */
const routes = canonicalRoutes.map((route) => ({ route, segments: route.pattern.slice(1).split("/") }))

const routeOn = (segments: ReadonlyArray<string>): CanonicalRoute | undefined =>
  routes.find((route) => fits(route.segments, segments))?.route

const fits = (pattern: ReadonlyArray<string>, segments: ReadonlyArray<string>): boolean =>
  pattern.length === segments.length &&
  pattern.every((part, index) => (part === "*" ? segments[index] !== "" : part === segments[index]))
