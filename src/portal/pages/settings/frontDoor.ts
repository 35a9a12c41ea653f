import type { BodyOf, ResponseOf } from "../../api/Endpoints.ts"

export type FrontDoorSettings = ResponseOf<"GET", "/admin-ui/admin/auth/front-door">
export type FrontDoorPatch = BodyOf<"PATCH", "/admin-ui/admin/auth/front-door">
export const path = "/admin-ui/admin/auth/front-door"

/** The names of a PATCH, which has no groups. */
export const flat = ({ identity_provider, svc_key_header, trusted_gateway }: FrontDoorSettings) => {
  const { enabled, ...identity } = identity_provider
  return {
    svc_key_header,
    identity_enabled: enabled,
    ...identity,
    trusted_gateway_header_enabled: trusted_gateway.trusted_header_enabled
  }
}

export type FlatSettings = ReturnType<typeof flat>
