import { type CanonicalRoute, canonicalRoutes, type PolicyRoute } from "./CanonicalRoute.ts"
import type { CanonicalPath } from "./Path.ts"
import { builtInServices } from "./Service.ts"

export type RouteMatch =
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

/**
 * The canonical route that an upstream may serve at this path too, under another prefix: `/chat/completions`,
 * `/openai/deployments/m/chat/completions`, `/anthropic/v1/messages`. Through another door it would come without the
 * policies of that route.
 */
export const aliasOf = (method: string, segments: ReadonlyArray<string>): CanonicalRoute | undefined => {
  const wanted = withoutTrailingSlash(segments)
  return aliases.find(
    ({ alone, below, route }) =>
      route.methods.some((one) => one === method) &&
      (fits(alone, wanted) || (wanted.length > below.length && fits(below, wanted.slice(-below.length))))
  )?.route
}

/**
 * The model that a path below the list of models is about, whose name may have slashes; `undefined` for any other path.
 * It goes by the list's route.
 */
export const modelOf = (method: string, { segments }: CanonicalPath): string | undefined => {
  const [version, models, ...name] = segments
  return method === "GET" && version === "v1" && models === "models" && name.length > 0 && !name.includes("")
    ? decodeURIComponent(name.join("/"))
    : undefined
}

/** The route of a registered service's path, as policies and records name it. */
export const serviceRoute = (path: string): PolicyRoute => serviceRoutes.get(path) ?? "/services/*"

const serviceRoutes: ReadonlyMap<string, PolicyRoute> = new Map(builtInServices.map((name) => [`/${name}`, `/${name}`]))

/** No path fits two of them. */
const routes = canonicalRoutes.map((route) => ({ route, segments: route.pattern.slice(1).split("/") }))

/**
 * `alone`: the whole path. `below`: its end, after any prefix. `/v1/threads/t/messages` is another API, so that below a
 * prefix the second family's paths are told by their `/v1`. The list of models is no secret, and the upstream's UI reads
 * it at `/models`.
 */
const aliases = routes
  .filter(({ route }) => route.id !== "models")
  .map(({ route, segments }) => ({
    route,
    alone: segments.slice(1),
    below: route.family === "a" ? segments.slice(1) : segments
  }))

/** The route whose path is exactly `target`, as in nearly every request: nothing of it has to be looked at. */
export const matchExact = (method: string, target: string) => {
  const found = literals.get(target)
  return found?.route.methods.some((one) => one === method) ? found : undefined
}

const literals = new Map<string, (typeof routes)[number]>(
  routes.filter(({ segments }) => !segments.includes("*")).map((literal) => [literal.route.pattern, literal])
)

const routeOfPath = (segments: ReadonlyArray<string>): CanonicalRoute | undefined => {
  const wanted = withoutTrailingSlash(segments)
  return routes.find((route) => fits(route.segments, wanted))?.route
}

/** It is the same route: an upstream that ignores a trailing slash must not be a way around the route's policy. */
const withoutTrailingSlash = (segments: ReadonlyArray<string>): ReadonlyArray<string> =>
  segments.at(-1) === "" ? segments.slice(0, -1) : segments

const fits = (pattern: ReadonlyArray<string>, segments: ReadonlyArray<string>): boolean =>
  pattern.length === segments.length &&
  pattern.every((part, index) => (part === "*" ? segments[index] !== "" : part === segments[index]))
