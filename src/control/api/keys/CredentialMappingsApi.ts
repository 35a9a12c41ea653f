import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Vendor } from "../../../policy/routes/Vendor.ts"
import { Credential } from "../providers/ProvidersApi.ts"
import { refusals } from "../schema/Errors.ts"
import { Id, orUnreadable, timestamps } from "../schema/Fields.ts"
import { requires, skipsUnreadable } from "../schema/Security.ts"

/** The upstream credential of one gateway key, or of one project's keys. */
export const CredentialMapping = Schema.Struct({
  id: Id,
  scope: Schema.Literals(["key", "project"]),
  target_id: Id,
  /** The prefix of the key, or the name of the project. */
  target_label: Schema.String,
  enabled: Schema.Boolean,
  credential_configured: Schema.Boolean,
  credential_origin: Schema.NullOr(Schema.String).annotate({
    description:
      "The upstream that was in force when the credential was stored, and the only one that it is sent to. null: that of UPSTREAM_BASE_URL."
  }),
  ...timestamps
})
export type CredentialMapping = typeof CredentialMapping.Type

/** One mapping for each target. A credential that is absent or `null` keeps the stored one. */
export const CredentialMappingUpsert = Schema.Struct({
  scope: Schema.Literals(["key", "project"]),
  target_id: Id,
  enabled: Schema.optionalKey(Schema.Boolean),
  credential: Schema.optionalKey(Schema.NullOr(Credential)),
  family: Schema.optionalKey(Vendor).annotateKey({
    description: "Whose upstream the credential is for; needed where each family has one of its own."
  })
})
export type CredentialMappingUpsert = typeof CredentialMappingUpsert.Type

const params = { id: Id }
const missing = refusals("missing_provider_config")

export const CredentialMappingsApi = HttpApiGroup.make("upstream-credentials")
  .annotate(
    OpenApi.Description,
    "Upstream credentials of one gateway key or one project, ahead of the provider's own. Their values are never shown."
  )
  .add(
    HttpApiEndpoint.get("list", "/", { success: Schema.Array(CredentialMapping) })
      .annotateMerge(skipsUnreadable)
      .annotate(OpenApi.Summary, "List credential mappings")
      .annotateMerge(requires("usage:read")),
    HttpApiEndpoint.get("get", "/:id", { params, success: CredentialMapping, error: missing })
      .annotate(OpenApi.Summary, "Show a credential mapping")
      .annotateMerge(requires("usage:read")),
    HttpApiEndpoint.post("upsert", "/", {
      payload: CredentialMappingUpsert,
      success: CredentialMapping,
      error: refusals("invalid_provider_config_payload")
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Set the credential of a key or a project",
          description:
            "There is one mapping for each target; a credential that is absent or null keeps the stored one. It belongs to the scheme, host and port of the upstream in force (`credential_origin`): while the upstream is another, requests that need it are refused. Where each family has an upstream of its own, `family` says which one it is for; requests to the other one go without it."
        })
      )
      .annotateMerge(requires("providers:update")),
    HttpApiEndpoint.delete("remove", "/:id", {
      params,
      success: HttpApiSchema.NoContent,
      error: missing
    })
      .annotate(OpenApi.Summary, "Delete a credential mapping")
      .annotateMerge(requires("providers:update")),
    HttpApiEndpoint.post("enable", "/:id/enable", {
      params,
      success: CredentialMapping,
      error: missing
    })
      .annotate(OpenApi.Summary, "Enable a credential mapping")
      .annotateMerge(requires("providers:update")),
    HttpApiEndpoint.post("disable", "/:id/disable", {
      params,
      success: orUnreadable(CredentialMapping),
      error: missing
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Disable a credential mapping",
          description: "Requests fall through to the next credential in the order of resolution."
        })
      )
      .annotateMerge(requires("providers:update"))
  )
  .prefix("/providers/upstream-credentials")
