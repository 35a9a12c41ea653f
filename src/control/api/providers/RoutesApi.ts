import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import {
  BodyBytes,
  maxBodyBytes,
  maxTimeoutMs,
  PolicyRoute,
  RouteId,
  RouteMode,
  TimeoutMs
} from "../../../policy/routes/CanonicalRoute.ts"
import { Ownership } from "../../../policy/routes/Ownership.ts"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import { expectedUpdate, orUnreadable, Timestamp, upTo } from "../schema/Fields.ts"
import { operation, skipsUnreadable } from "../schema/Security.ts"
import { limitsStreams, ownership } from "./UpstreamPassthroughApi.ts"

export const Route = Schema.Struct({
  route_id: RouteId,
  route: PolicyRoute,
  enabled: Schema.Boolean,
  mode: RouteMode,
  timeout_ms: TimeoutMs,
  max_request_body_bytes: BodyBytes,
  max_response_body_bytes: BodyBytes,
  limits_streams: Schema.Boolean,
  ownership: Ownership,
  updated_at: Timestamp
}).annotate({ identifier: "Route" })
export type Route = typeof Route.Type

/** An absent field keeps its value. A number outside its range is refused with `invalid_provider_config_payload`. */
export const RoutePatch = Schema.Struct({
  mode: Schema.optionalKey(RouteMode),
  timeout_ms: Schema.optionalKey(upTo(maxTimeoutMs, "Milliseconds")),
  max_request_body_bytes: Schema.optionalKey(upTo(maxBodyBytes, "Bytes")),
  max_response_body_bytes: Schema.optionalKey(upTo(maxBodyBytes, "Bytes")),
  limits_streams: Schema.optionalKey(Schema.Boolean.annotate({ description: limitsStreams })),
  ownership: Schema.optionalKey(Schema.String.annotate({ description: ownership }))
})
export type RoutePatch = typeof RoutePatch.Type

export const SingleRoutePatch = RoutePatch.pipe(Schema.fieldsAssign(expectedUpdate))
export type SingleRoutePatch = typeof SingleRoutePatch.Type

export const AllRoutesPatch = RoutePatch.pipe(
  Schema.fieldsAssign({
    expected_updated_at: Schema.optionalKey(Schema.Record(Schema.String, Timestamp)).annotate({
      description:
        "The `updated_at` of each route as you read it, by its `route_id`. If one of them was changed since, nothing changes, and the response is 409 `changed_since_read`."
    })
  })
)
export type AllRoutesPatch = typeof AllRoutesPatch.Type

const group = <const Name extends string>(name: Name, description: string, ids: ReadonlyArray<typeof RouteId.Type>) => {
  const params = { route_id: Schema.Literals(ids) }
  return HttpApiGroup.make(name)
    .annotate(OpenApi.Description, description)
    .add(
      HttpApiEndpoint.get("list", "/", { success: Schema.Array(Route) })
        .annotateMerge(skipsUnreadable)
        .annotateMerge(operation("List the routes", "usage:read")),
      HttpApiEndpoint.post("enable", "/:route_id/enable", { params, success: Route })
        .annotateMerge(operation("Enable a route", "policies:update"))
        .annotate(OpenApi.Description, "The other routes stay as they are."),
      HttpApiEndpoint.post("disable", "/:route_id/disable", { params, success: orUnreadable(Route) })
        .annotateMerge(operation("Disable a route", "policies:update"))
        .annotate(OpenApi.Description, "Requests to the route are refused with `route_disabled`."),
      HttpApiEndpoint.patch("mode", "/:route_id/mode", {
        params,
        payload: Schema.Struct({ mode: RouteMode }),
        success: Route
      })
        .annotateMerge(operation("Change the mode of a route", "policies:update"))
        .annotate(
          OpenApi.Description,
          "`managed_by_gateway`: requests use gateway keys and the gateway's credentials. `direct_upstream_passthrough`: clients may send their own upstream credentials."
        )
        .annotateMerge(bodyExample({ mode: "managed_by_gateway" })),
      HttpApiEndpoint.patch("config", "/:route_id/config", {
        params,
        payload: SingleRoutePatch,
        success: Route,
        error: refusals("invalid_provider_config_payload", "changed_since_read")
      })
        .annotateMerge(operation("Change the mode and the limits of a route", "policies:update"))
        .annotate(OpenApi.Description, "Absent fields stay unchanged. Limits are in bytes and milliseconds.")
        .annotateMerge(bodyExample({ timeout_ms: 600_000, max_request_body_bytes: 33_554_432 }))
    )
    .prefix(`/${name}`)
}

export const RoutesApi = HttpApiGroup.make("routes")
  .annotate(OpenApi.Description, "Settings of all ten routes at once.")
  .add(
    HttpApiEndpoint.patch("config", "/config", {
      payload: AllRoutesPatch,
      success: Schema.Array(Route),
      error: refusals("invalid_provider_config_payload", "changed_since_read")
    })
      .annotateMerge(operation("Change the mode and the limits of all routes", "policies:update"))
      .annotate(OpenApi.Description, "Changes all routes or, if one of them cannot be changed, none.")
  )
  .prefix("/routes")

export const FamilyARoutesApi = group(
  "family-a-routes",
  "The routes of the OpenAI protocol: whether they are enabled, their mode and their limits.",
  ["chat-completions", "responses", "embeddings"]
)

/** Clients of both families request `/v1/models`. Its settings belong to this group. */
export const FamilyBRoutesApi = group("family-b-routes", "The routes of the Anthropic protocol, and `/v1/models`.", [
  "messages",
  "messages-count-tokens",
  "message-batches",
  "message-batch",
  "message-batch-results",
  "message-batch-cancel",
  "models"
])
