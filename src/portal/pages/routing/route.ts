import { call } from "../../api/control.ts"
import type { BodyOf, ResponseOf } from "../../api/Endpoints.ts"

export type Route = ResponseOf<"GET", "/admin-ui/admin/family-a-routes">[number]
export type SingleRoutePatch = BodyOf<"PATCH", "/admin-ui/admin/family-a-routes/:route_id/config">
export type RoutePatch = BodyOf<"PATCH", "/admin-ui/admin/routes/config">

export const families = {
  a: { group: "family-a-routes", title: "OpenAI protocol", audit: "family_a_route" },
  b: { group: "family-b-routes", title: "Anthropic protocol, and models", audit: "family_b_route" }
} as const
export type Family = keyof typeof families

export const configure = (family: Family, route_id: string, body: SingleRoutePatch) =>
  family === "a"
    ? call("PATCH", "/admin-ui/admin/family-a-routes/:route_id/config", { params: { route_id }, body })
    : call("PATCH", "/admin-ui/admin/family-b-routes/:route_id/config", { params: { route_id }, body })

export const modes = ["managed_by_gateway", "direct_upstream_passthrough"] as const

export const modeSentences = {
  managed_by_gateway: "Requests use gateway keys and the gateway’s credentials.",
  direct_upstream_passthrough: "Clients may send their own upstream credentials."
} as const

export const limitNames = ["timeout_ms", "max_request_body_bytes", "max_response_body_bytes"] as const
