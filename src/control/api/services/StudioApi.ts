import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ServiceMethod } from "../../../policy/routes/Service.ts"
import { Credential } from "../providers/ProvidersApi.ts"
import { refusals } from "../schema/Errors.ts"
import { CredentialCleared, expectedUpdateOrNull, Id, Timestamp } from "../schema/Fields.ts"
import { operation } from "../schema/Security.ts"
import { HealthMethod } from "./ServicesApi.ts"

const Text = Schema.NullOr(Schema.String)

/** The connection to the studio, an external catalogue of services. A stored connection overrides the environment. */
export const StudioConnection = Schema.Struct({
  base_url: Text,
  token_configured: Schema.Boolean,
  source: Schema.Literals(["persisted", "environment", "unset"]),
  updated_at: Schema.NullOr(Timestamp)
})
export type StudioConnection = typeof StudioConnection.Type

export const ChangedStudioConnection = StudioConnection.pipe(
  Schema.fieldsAssign({ credential_cleared: CredentialCleared })
)
export type ChangedStudioConnection = typeof ChangedStudioConnection.Type

/**
 * Changes fields of the current connection and stores the result. The token from the environment is sent only to the
 * address from the environment. `base_url: null` deletes the stored connection.
 */
export const StudioConnectionPatch = Schema.Struct({
  base_url: Schema.optionalKey(Text),
  token: Schema.optionalKey(Schema.NullOr(Credential)),
  ...expectedUpdateOrNull
})
export type StudioConnectionPatch = typeof StudioConnectionPatch.Type

/** The body for `POST /services/import` that registers this service of the studio. */
const SuggestedImport = Schema.Struct({
  studio_service_id: Schema.String,
  name: Schema.String,
  project_id: Schema.NullOr(Id),
  route_pattern: Schema.String,
  upstream_base_url: Text,
  health_check_path: Text,
  health_check_method: HealthMethod,
  allowed_methods: Schema.Array(ServiceMethod),
  category: Text,
  default_pricing: Schema.Json
})

export const StudioService = Schema.Struct({
  studio_service_id: Schema.String,
  name: Schema.String,
  display_name: Text,
  environment: Text,
  status: Text,
  base_url: Text,
  tags: Schema.Array(Schema.String),
  route_pattern: Schema.String,
  import_request: SuggestedImport
})
export type StudioService = typeof StudioService.Type

const unavailable = refusals("studio_unconfigured", "studio_unavailable")

export const StudioApi = HttpApiGroup.make("studio")
  .annotate(
    OpenApi.Description,
    "The connection to the studio, an external catalogue from which services are imported."
  )
  .add(
    HttpApiEndpoint.get("connection", "/connection", { success: StudioConnection }).annotateMerge(
      operation("Show the studio connection", "operators:manage")
    ),
    HttpApiEndpoint.patch("connect", "/connection", {
      payload: StudioConnectionPatch,
      success: ChangedStudioConnection,
      error: refusals("invalid_studio_connection_payload", "changed_since_read")
    })
      .annotateMerge(operation("Change the studio connection", "settings:update"))
      .annotate(
        OpenApi.Description,
        "The stored connection takes precedence over the environment. A null `base_url` deletes it. A stored token belongs to its address. If `base_url` moves to another scheme, host or port without a `token`, the stored token is removed. The response then contains `credential_cleared`."
      ),
    HttpApiEndpoint.post("test", "/connection/test", {
      success: Schema.Struct({ ok: Schema.Literal(true), service_count: Schema.Int }),
      error: unavailable
    }).annotateMerge(operation("Test the studio connection", "operators:manage")),
    HttpApiEndpoint.get("services", "/services", {
      success: Schema.Array(StudioService),
      error: unavailable
    }).annotateMerge(operation("List the services of the studio, as import requests", "operators:manage"))
  )
  .prefix("/studio")
