import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { credentialSources } from "../../../policy/routes/UpstreamChoice.ts"
import { Vendor } from "../../../policy/routes/Vendor.ts"
import { Credential } from "../providers/ProvidersApi.ts"
import { refusals } from "../schema/Errors.ts"
import { Id, orUnreadable, timestamps } from "../schema/Fields.ts"
import { operation, skipsUnreadable } from "../schema/Security.ts"

const CredentialSource = Schema.Literals(credentialSources)

/** Assigns an upstream credential to one gateway key, or to all keys of one project. */
export const CredentialMapping = Schema.Struct({
  id: Id,
  scope: Schema.Literals(["key", "project"]),
  target_id: Id,
  /** The key's prefix or the project's name. */
  target_label: Schema.String,
  enabled: Schema.Boolean,
  credential_configured: Schema.Boolean,
  credential_origin: Schema.NullOr(Schema.String).annotate({
    description:
      "The origin of the upstream that was in use when the credential was stored. The credential is sent only there. null means the origin of UPSTREAM_BASE_URL."
  }),
  ...timestamps
})
export type CredentialMapping = typeof CredentialMapping.Type

/** Each key or project has at most one mapping. An absent or `null` credential keeps the stored credential. */
export const CredentialMappingUpsert = Schema.Struct({
  scope: Schema.Literals(["key", "project"]),
  target_id: Id,
  enabled: Schema.optionalKey(Schema.Boolean),
  credential: Schema.optionalKey(Schema.NullOr(Credential)),
  family: Schema.optionalKey(Vendor).annotateKey({
    description: "The API family whose upstream accepts the credential. Required if each family has its own upstream."
  })
})
export type CredentialMappingUpsert = typeof CredentialMappingUpsert.Type

/** Which upstream credential the requests of a key carry, for one API family. */
export const CredentialOfKey = Schema.Struct({
  family: Vendor,
  /** The upstream that receives the requests. `null` if there is none, or if its row cannot be decoded. */
  upstream: Schema.NullOr(
    Schema.Struct({
      origin: Schema.String,
      /** The id of the provider row. `null` if a variable sets the upstream. */
      provider_id: Schema.NullOr(Id),
      /** The name of the provider row or of the variable. */
      name: Schema.String,
      /** The header that carries the credential. */
      header: Schema.String
    })
  ),
  state: Schema.Literals([
    "sent",
    "missing",
    "unreadable",
    "of_other_address",
    "no_upstream",
    "unreadable_upstream"
  ]).annotate({ description: "Requests are refused in every state but `sent`." }),
  /** Whose credential decides. `null` if there is none. */
  source: Schema.NullOr(CredentialSource),
  explanation: Schema.String,
  /** Every place where the gateway looks for a credential, in this order. The first with a credential decides. */
  places: Schema.Array(
    Schema.Struct({
      source: CredentialSource,
      state: Schema.Literals(["decides", "none", "disabled", "for_other_upstream", "not_reached"])
    })
  )
})
export type CredentialOfKey = typeof CredentialOfKey.Type

const params = { id: Id }
const missing = refusals("missing_provider_config")

export const CredentialMappingsApi = HttpApiGroup.make("upstream-credentials")
  .annotate(
    OpenApi.Description,
    "Upstream credentials of one gateway key or one project. They take precedence over the provider's credential, and are never shown."
  )
  .add(
    HttpApiEndpoint.get("list", "/", { success: Schema.Array(CredentialMapping) })
      .annotateMerge(skipsUnreadable)
      .annotateMerge(operation("List credential mappings", "usage:read")),
    HttpApiEndpoint.get("get", "/:id", { params, success: CredentialMapping, error: missing }).annotateMerge(
      operation("Show a credential mapping", "usage:read")
    ),
    HttpApiEndpoint.post("upsert", "/", {
      payload: CredentialMappingUpsert,
      success: CredentialMapping,
      error: refusals("invalid_provider_config_payload")
    })
      .annotateMerge(operation("Set the credential of a key or a project", "providers:update"))
      .annotate(
        OpenApi.Description,
        "Each target has one mapping. An absent or null credential keeps the stored one. The credential belongs to the scheme, host and port of the current upstream (`credential_origin`). While another upstream is in use, requests that need the credential are refused. If each family has its own upstream, `family` selects one of them. Requests to the other upstream do not use the credential."
      ),
    HttpApiEndpoint.delete("remove", "/:id", {
      params,
      success: HttpApiSchema.NoContent,
      error: missing
    }).annotateMerge(operation("Delete a credential mapping", "providers:update")),
    HttpApiEndpoint.post("enable", "/:id/enable", {
      params,
      success: CredentialMapping,
      error: missing
    }).annotateMerge(operation("Enable a credential mapping", "providers:update")),
    HttpApiEndpoint.post("disable", "/:id/disable", {
      params,
      success: orUnreadable(CredentialMapping),
      error: missing
    })
      .annotateMerge(operation("Disable a credential mapping", "providers:update"))
      .annotate(
        OpenApi.Description,
        "Requests then use the next applicable credential: the mapping of the key's project, then the credential of the provider or the environment."
      )
  )
  .prefix("/providers/upstream-credentials")
