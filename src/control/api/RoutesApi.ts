import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { BodyBytes, PolicyRoute, RouteId, RouteMode, TimeoutMs } from "../../gateway/model/CanonicalRoute.ts"
import { Timestamp } from "./Fields.ts"
import { requires } from "./Security.ts"

export const Route = Schema.Struct({
  route_id: RouteId,
  route: PolicyRoute,
  enabled: Schema.Boolean,
  mode: RouteMode,
  timeout_ms: TimeoutMs,
  max_request_body_bytes: BodyBytes,
  max_response_body_bytes: BodyBytes,
  updated_at: Timestamp
})
export type Route = typeof Route.Type

export const RoutePatch = Schema.Struct({
  mode: Schema.optionalKey(RouteMode),
  timeout_ms: Schema.optionalKey(TimeoutMs),
  max_request_body_bytes: Schema.optionalKey(BodyBytes),
  max_response_body_bytes: Schema.optionalKey(BodyBytes)
})
export type RoutePatch = typeof RoutePatch.Type

const group = <const Name extends string>(name: Name, ids: ReadonlyArray<typeof RouteId.Type>) => {
  const params = { route_id: Schema.Literals(ids) }
  return HttpApiGroup.make(name)
    .add(
      HttpApiEndpoint.get("list", "/", { success: Schema.Array(Route) }).annotateMerge(requires("usage:read")),
      HttpApiEndpoint.post("enable", "/:route_id/enable", { params, success: Route }).annotateMerge(
        requires("policies:update")
      ),
      HttpApiEndpoint.post("disable", "/:route_id/disable", { params, success: Route }).annotateMerge(
        requires("policies:update")
      ),
      HttpApiEndpoint.patch("mode", "/:route_id/mode", {
        params,
        payload: Schema.Struct({ mode: RouteMode }),
        success: Route
      }).annotateMerge(requires("policies:update")),
      HttpApiEndpoint.patch("config", "/:route_id/config", {
        params,
        payload: RoutePatch,
        success: Route
      }).annotateMerge(requires("policies:update"))
    )
    .prefix(`/${name}`)
}

export const FamilyARoutesApi = group("family-a-routes", ["chat-completions", "responses", "embeddings"])

/** `models` belongs to both families on the wire and is configured here. */
export const FamilyBRoutesApi = group("family-b-routes", [
  "messages",
  "messages-count-tokens",
  "message-batches",
  "message-batch",
  "message-batch-results",
  "message-batch-cancel",
  "models"
])
