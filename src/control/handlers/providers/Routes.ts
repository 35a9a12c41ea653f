import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { Family, RouteId } from "../../../policy/routes/CanonicalRoute.ts"
import { ControlApi } from "../../api/ControlApi.ts"
import type { Route, RoutePatch } from "../../api/providers/RoutesApi.ts"
import { Routes } from "../../providers/Routes.ts"

interface Named {
  readonly params: { readonly route_id: RouteId }
}

export const all = HttpApiBuilder.group(
  ControlApi,
  "routes",
  Effect.fn(function* (handlers) {
    const routes = yield* Routes
    return handlers.handle("config", ({ payload }) => routes.configureAll(payload))
  })
)

/** Both families answer alike. */
const handlersOf = (family: Family) =>
  Effect.map(Routes, (routes) => ({
    list: () => routes.list(family),
    enable: ({ params }: Named) => routes.enable(params.route_id),
    disable: ({ params }: Named) => routes.disable(params.route_id),
    mode: ({ params, payload }: Named & { readonly payload: Pick<Route, "mode"> }) =>
      routes.setMode(params.route_id, payload.mode),
    config: ({ params, payload }: Named & { readonly payload: RoutePatch }) =>
      routes.configure(params.route_id, payload)
  }))

export const familyA = HttpApiBuilder.group(
  ControlApi,
  "family-a-routes",
  Effect.fn(function* (handlers) {
    return handlers.handleAll(yield* handlersOf("a"))
  })
)

export const familyB = HttpApiBuilder.group(
  ControlApi,
  "family-b-routes",
  Effect.fn(function* (handlers) {
    return handlers.handleAll(yield* handlersOf("b"))
  })
)
