import { type CanonicalRoute, canonicalRoutes, type PolicyRoute } from "./CanonicalRoute.ts"
import type { CanonicalPath } from "./Path.ts"
import { builtInServices } from "./Service.ts"

type RouteMatch =
  /** Only the control listener serves `/admin-ui…`. */
  | { readonly _tag: "Control" }
  /** `/services…`, or a POST on one of four built-in paths. These paths never match another route. */
  | { readonly _tag: "Service"; readonly name: string }
  | { readonly _tag: "Canonical"; readonly route: CanonicalRoute }
  /** `rest` is the path below `/providers/compat`. `like` is the gateway's own route with the path `rest`. */
  | { readonly _tag: "Compat"; readonly rest: string; readonly like?: CanonicalRoute }
  | { readonly _tag: "Unrouted"; readonly allowed: ReadonlyArray<string> }

/** Returns the first route that matches. The order of the checks matters. */
export const match = (method: string, { path, segments }: CanonicalPath): RouteMatch => {
  const [first, second] = segments
  if (first === "admin-ui") return { _tag: "Control" }
  if (first === "services") return { _tag: "Service", name: second ?? "" }
  const onPath = routeOfPath(segments)
  if (onPath?.methods.some((one) => one === method)) return { _tag: "Canonical", route: onPath }
  if (first === "providers" && second === "compat") {
    if (method !== "POST") return { _tag: "Unrouted", allowed: ["POST"] }
    const like = canonicalRoute(method, segments.slice(2))
    const rest = path.slice("/providers/compat".length) || "/"
    return like === undefined ? { _tag: "Compat", rest } : { _tag: "Compat", rest, like }
  }
  if (method === "POST" && segments.length === 1 && builtInServices.some((name) => name === first)) {
    return { _tag: "Service", name: first ?? "" }
  }
  return { _tag: "Unrouted", allowed: onPath?.methods ?? [] }
}

export const canonicalRoute = (method: string, segments: ReadonlyArray<string>): CanonicalRoute | undefined => {
  const route = routeOfPath(segments)
  return route?.methods.some((one) => one === method) ? route : undefined
}

/** Finds a gateway route that the upstream may also serve at this path. Passthrough must not bypass its policies. */
export const aliasOf = (method: string, segments: ReadonlyArray<string>): CanonicalRoute | undefined => {
  const trimmed = withoutTrailingSlash(segments)
  return aliases.find(
    ({ alone, below, route }) =>
      route.methods.some((one) => one === method) &&
      (fits(alone, trimmed) || (trimmed.length > below.length && fits(below, trimmed.slice(-below.length))))
  )?.route
}

/** Returns the model's name in `GET /v1/models/<name>`. It may contain slashes. */
export const modelOf = (method: string, { segments }: CanonicalPath): string | undefined => {
  const [version, models, ...name] = segments
  return method === "GET" && version === "v1" && models === "models" && name.length > 0 && !name.includes("")
    ? decodeURIComponent(name.join("/"))
    : undefined
}

export const serviceRoute = (path: string): PolicyRoute => serviceRoutes.get(path) ?? "/services/*"

const serviceRoutes: ReadonlyMap<string, PolicyRoute> = new Map(builtInServices.map((name) => [`/${name}`, `/${name}`]))

/** No path matches two of these routes. */
const routes = canonicalRoutes.map((route) => ({ route, segments: route.pattern.slice(1).split("/") }))

/** `below` is the end of a path. For Anthropic it has `/v1`, because `/v1/threads/t/messages` is another API. */
const aliases = routes
  .filter(({ route }) => route.id !== "models")
  .map(({ route, segments }) => ({
    route,
    alone: segments.slice(1),
    below: route.family === "a" ? segments.slice(1) : segments
  }))

export const matchExact = (method: string, target: string) => {
  const found = literals.get(target)
  return found?.route.methods.some((one) => one === method) ? found : undefined
}

const literals = new Map<string, (typeof routes)[number]>(
  routes.filter(({ segments }) => !segments.includes("*")).map((literal) => [literal.route.pattern, literal])
)

const routeOfPath = (segments: ReadonlyArray<string>): CanonicalRoute | undefined => {
  const trimmed = withoutTrailingSlash(segments)
  return routes.find((route) => fits(route.segments, trimmed))?.route
}

/** Upstreams may ignore a slash at the end, so it must not bypass the route's policy. */
const withoutTrailingSlash = (segments: ReadonlyArray<string>): ReadonlyArray<string> =>
  segments.at(-1) === "" ? segments.slice(0, -1) : segments

const fits = (pattern: ReadonlyArray<string>, segments: ReadonlyArray<string>): boolean =>
  pattern.length === segments.length &&
  pattern.every((part, index) => (part === "*" ? segments[index] !== "" : part === segments[index]))
