import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ServiceMethod } from "../../../policy/routes/Service.ts"
import { Credential } from "../providers/ProvidersApi.ts"
import { refusals } from "../schema/Errors.ts"
import { CredentialCleared, Id, Timestamp } from "../schema/Fields.ts"
import { requires } from "../schema/Security.ts"
import { HealthMethod } from "./ServicesApi.ts"

const Text = Schema.NullOr(Schema.String)

/** The studio that services are imported from: the stored connection, or else that of the environment. */
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
 * Changes the effective connection and stores it as a whole. The environment's token is sent only to the environment's
 * address. `base_url: null` deletes the stored connection with its token, so that of the environment applies again.
 */
export const StudioConnectionPatch = Schema.Struct({
  base_url: Schema.optionalKey(Text),
  token: Schema.optionalKey(Schema.NullOr(Credential))
})
export type StudioConnectionPatch = typeof StudioConnectionPatch.Type

/** The suggested registration of a studio service: the body of `POST /services/import`. */
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
  .annotate(OpenApi.Description, "The studio that services can be imported from.")
  .add(
    HttpApiEndpoint.get("connection", "/connection", { success: StudioConnection })
      .annotate(OpenApi.Summary, "Show the studio connection")
      .annotateMerge(requires("operators:manage")),
    HttpApiEndpoint.patch("connect", "/connection", {
      payload: StudioConnectionPatch,
      success: ChangedStudioConnection,
      error: refusals("invalid_studio_connection_payload")
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Change the studio connection",
          description:
            "The stored connection takes precedence over the environment; a null `base_url` deletes it. A stored token belongs to its address: moving `base_url` to another scheme, host or port without a `token` removes it, and the response contains `credential_cleared`."
        })
      )
      .annotateMerge(requires("settings:update")),
    HttpApiEndpoint.post("test", "/connection/test", {
      success: Schema.Struct({ ok: Schema.Literal(true), service_count: Schema.Int }),
      error: unavailable
    })
      .annotate(OpenApi.Summary, "Try the studio connection")
      .annotateMerge(requires("operators:manage")),
    HttpApiEndpoint.get("services", "/services", {
      success: Schema.Array(StudioService),
      error: unavailable
    })
      .annotate(OpenApi.Summary, "List what the studio exports, ready for import")
      .annotateMerge(requires("operators:manage"))
  )
  .prefix("/studio")
