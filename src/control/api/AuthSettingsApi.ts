import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { AuthSettings as Settings } from "../../policy/AuthSettings.ts"
import { Credential } from "./providers/ProvidersApi.ts"
import { refusals } from "./schema/Errors.ts"
import { expectedUpdateOrNull, Timestamp } from "./schema/Fields.ts"
import { operation } from "./schema/Security.ts"

const {
  identity_enabled,
  svc_key_header,
  trusted_gateway_header_enabled,
  accepted_algorithms,
  allowed_groups,
  audience,
  clock_skew_seconds,
  issuer,
  jwks_cache_ttl_seconds,
  oidc_discovery_url,
  required_role,
  required_scope,
  tenant_id
} = Settings.fields

/** The settings that authenticate callers of the proxy. Stored settings replace all settings from the environment. */
export const AuthSettings = Schema.Struct({
  source: Schema.Literals(["persisted", "environment", "unset"]),
  updated_at: Schema.NullOr(Timestamp),
  svc_key_header,
  identity_provider: Schema.Struct({
    enabled: identity_enabled,
    tenant_id,
    audience,
    issuer,
    oidc_discovery_url,
    required_scope,
    required_role,
    allowed_groups,
    accepted_algorithms,
    jwks_cache_ttl_seconds,
    clock_skew_seconds
  }),
  trusted_gateway: Schema.Struct({
    trusted_header_enabled: trusted_gateway_header_enabled,
    secret_configured: Schema.Boolean
  })
})
export type AuthSettings = typeof AuthSettings.Type

const orNull = <S extends Schema.Top>(field: S) => Schema.optionalKey(Schema.NullOr(field))

/** An absent field keeps its current value. `null` resets the field to its default. */
export const AuthSettingsPatch = Schema.Struct({
  svc_key_header: orNull(svc_key_header),
  identity_enabled: Schema.optionalKey(identity_enabled),
  tenant_id: Schema.optionalKey(tenant_id),
  audience: Schema.optionalKey(audience),
  issuer: Schema.optionalKey(issuer),
  oidc_discovery_url: Schema.optionalKey(oidc_discovery_url),
  required_scope: Schema.optionalKey(required_scope),
  required_role: Schema.optionalKey(required_role),
  allowed_groups: orNull(allowed_groups),
  accepted_algorithms: orNull(accepted_algorithms),
  jwks_cache_ttl_seconds: orNull(jwks_cache_ttl_seconds),
  clock_skew_seconds: orNull(clock_skew_seconds),
  trusted_gateway_header_enabled: Schema.optionalKey(trusted_gateway_header_enabled),
  trusted_gateway_header_secret: orNull(Credential),
  ...expectedUpdateOrNull
})
export type AuthSettingsPatch = typeof AuthSettingsPatch.Type

export const AuthSettingsApi = HttpApiGroup.make("front-door")
  .annotate(
    OpenApi.Description,
    "Authentication of callers at the proxy listener: identity provider, trusted gateway and the header of the gateway key."
  )
  .add(
    HttpApiEndpoint.get("get", "/", { success: AuthSettings }).annotateMerge(
      operation("Show the authentication settings", "operators:manage")
    ),
    HttpApiEndpoint.patch("update", "/", {
      payload: AuthSettingsPatch,
      success: AuthSettings,
      error: refusals("invalid_configuration", "changed_since_read")
    })
      .annotateMerge(operation("Change the authentication settings", "settings:update"))
      .annotate(
        OpenApi.Description,
        "The settings apply from the next request on. They replace all settings from the environment. `trusted_gateway_header_secret`, `issuer` and `oidc_discovery_url` decide whose identities the gateway trusts. Setting one of them requires the scope `*`."
      )
  )
  .prefix("/auth/front-door")
