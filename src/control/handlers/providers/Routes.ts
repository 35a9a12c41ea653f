import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { Family, RouteId } from "../../../policy/routes/CanonicalRoute.ts"
import { ControlApi } from "../../api/ControlApi.ts"
import type { Route, SingleRoutePatch } from "../../api/providers/RoutesApi.ts"
import { Routes } from "../../providers/Routes.ts"

interface RouteParams {
  readonly params: { readonly route_id: RouteId }
}

export const allRoutes = HttpApiBuilder.group(
  ControlApi,
  "routes",
  Effect.fn(function* (handlers) {
    const routes = yield* Routes
    return handlers.handle("config", ({ payload }) => routes.configureAll(payload))
  })
)

const handlersOf = (family: Family) =>
  Effect.map(Routes, (routes) => ({
    list: () => routes.list(family),
    enable: ({ params }: RouteParams) => routes.enable(params.route_id),
    disable: ({ params }: RouteParams) => routes.disable(params.route_id),
    mode: ({ params, payload }: RouteParams & { readonly payload: Pick<Route, "mode"> }) =>
      routes.setMode(params.route_id, payload.mode),
    config: ({ params, payload }: RouteParams & { readonly payload: SingleRoutePatch }) =>
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
