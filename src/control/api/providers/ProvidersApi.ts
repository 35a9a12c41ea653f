import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { HeaderMode, HeaderValueFormat } from "../../../policy/routes/CredentialStyle.ts"
import { Vendor } from "../../../policy/routes/Vendor.ts"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import { CredentialCleared, expectedUpdate, Id, orUnreadable, timestamps } from "../schema/Fields.ts"
import { operation, skipsUnreadable } from "../schema/Security.ts"

export const ProviderKind = Schema.Literals(["upstream", "internal-service"])

/** A credential is write-only. Responses show only whether one is configured. */
export const Credential = Schema.RedactedFromValue(Schema.String)

const BaseUrl = Schema.String.annotate({
  description:
    "The base URL that the vendor documents for its SDKs. If its path names an API version (/api/v1, /v1beta/openai), that path replaces the gateway's /v1. Otherwise the gateway's path is appended."
})

/** The API family (OpenAI or Anthropic) whose requests go to this upstream. */
const Serves = Schema.NullOr(Vendor).annotate({
  description:
    "openai: chat completions, responses and embeddings. anthropic: messages, token counts and batches. For /v1/models and the wildcard the anthropic-version header of the request decides. null: both families, unless another enabled row has the family."
})

export const Provider = Schema.Struct({
  id: Id,
  provider: ProviderKind,
  name: Schema.String,
  base_url: BaseUrl,
  family: Serves,
  enabled: Schema.Boolean,
  credential_configured: Schema.Boolean,
  credential_header_mode: HeaderMode,
  credential_header_name: Schema.NullOr(Schema.String),
  credential_header_value_format: HeaderValueFormat,
  ...timestamps
}).annotate({ identifier: "Provider" })
export type Provider = typeof Provider.Type

export const ChangedProvider = Provider.pipe(Schema.fieldsAssign({ credential_cleared: CredentialCleared }))
export type ChangedProvider = typeof ChangedProvider.Type

const optional = {
  family: Schema.optionalKey(Serves),
  enabled: Schema.optionalKey(Schema.Boolean),
  credential: Schema.optionalKey(Schema.NullOr(Credential)),
  credential_header_mode: Schema.optionalKey(HeaderMode),
  credential_header_name: Schema.optionalKey(Schema.NullOr(Schema.String)),
  credential_header_value_format: Schema.optionalKey(HeaderValueFormat)
}

export const NewProvider = Schema.Struct({
  provider: ProviderKind,
  name: Schema.String,
  base_url: BaseUrl,
  ...optional
})
export type NewProvider = typeof NewProvider.Type

export const ProviderPatch = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  base_url: Schema.optionalKey(BaseUrl),
  ...optional,
  ...expectedUpdate
})
export type ProviderPatch = typeof ProviderPatch.Type

const params = { id: Id }
const missing = refusals("missing_provider_config")

export const ProvidersApi = HttpApiGroup.make("providers")
  .annotate(
    OpenApi.Description,
    "Upstreams with their address and credential. At most one row for each family and one for both families is enabled. An enabled row takes precedence over the environment and the simulator."
  )
  .add(
    HttpApiEndpoint.post("create", "/", {
      payload: NewProvider,
      success: Provider,
      error: refusals("invalid_provider_config_payload", "duplicate_provider_config")
    })
      .annotateMerge(operation("Add a provider", "providers:update"))
      .annotate(
        OpenApi.Description,
        "An enabled row takes precedence over the environment and the simulator. The credential is sealed at rest, never shown, and sent only to the scheme, host and port of this address."
      )
      .annotateMerge(
        bodyExample({
          provider: "upstream",
          name: "openai",
          family: "openai",
          base_url: "https://api.openai.com/v1",
          credential: "sk-example"
        })
      ),
    HttpApiEndpoint.get("list", "/", { success: Schema.Array(Provider) })
      .annotateMerge(skipsUnreadable)
      .annotateMerge(operation("List providers", "usage:read")),
    HttpApiEndpoint.get("get", "/:id", { params, success: Provider, error: missing }).annotateMerge(
      operation("Show a provider", "operators:manage")
    ),
    HttpApiEndpoint.patch("update", "/:id", {
      params,
      payload: ProviderPatch,
      success: ChangedProvider,
      error: refusals(
        "missing_provider_config",
        "invalid_provider_config_payload",
        "duplicate_provider_config",
        "changed_since_read"
      )
    })
      .annotateMerge(operation("Change a provider", "providers:update"))
      .annotate(
        OpenApi.Description,
        "A stored credential belongs to the scheme, host and port that it was stored for. If `base_url` moves to another scheme, host or port without a new credential, the stored credential is removed. The response then contains `credential_cleared`. Credential mappings of keys and projects stay. Requests that need them are refused until the mappings are stored again or the former address is restored."
      ),
    HttpApiEndpoint.delete("remove", "/:id", {
      params,
      success: HttpApiSchema.NoContent,
      error: missing
    }).annotateMerge(operation("Delete a provider", "providers:update")),
    HttpApiEndpoint.post("enable", "/:id/enable", {
      params,
      success: Provider,
      error: refusals("missing_provider_config", "duplicate_provider_config")
    })
      .annotateMerge(operation("Enable a provider", "providers:update"))
      .annotate(OpenApi.Description, "Refused while another row for the same family is enabled."),
    HttpApiEndpoint.post("disable", "/:id/disable", { params, success: orUnreadable(Provider), error: missing })
      .annotateMerge(operation("Disable a provider", "providers:update"))
      .annotate(
        OpenApi.Description,
        "Requests then use the upstream of the environment, or are refused if there is none."
      )
  )
  .prefix("/providers")
