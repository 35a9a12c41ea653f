import { Effect, Schema, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { AuthSettings } from "../../policy/AuthSettings.ts"
import { StreamMode, WindowChars } from "../../policy/Guardrail.ts"
import { GuardrailPolicyPatch } from "../../policy/GuardrailPolicy.ts"
import { KeyPolicyInput } from "../../policy/KeyPolicy.ts"
import { LayerKind } from "../../policy/PolicyLayer.ts"
import { Ownership } from "../../policy/routes/Ownership.ts"
import { Passthrough, UnenforceablePolicy } from "../../policy/routes/Passthrough.ts"
import { Endpoint, EndpointPricingRule, PricingRule, ServiceMethod } from "../../policy/routes/Service.ts"
import { Vendor } from "../../policy/routes/Vendor.ts"
import { SharedLimitsPatch } from "../../policy/SharedLimits.ts"
import { Key, OwnerType, TeamId } from "./keys/KeysApi.ts"
import { Description, Guardrail, Modes, timeoutBounds } from "./policies/GuardrailsApi.ts"
import { LayerScopeId } from "./policies/PolicyLayersApi.ts"
import { ModelPrice, PricedModel } from "./providers/ModelPricesApi.ts"
import { Provider } from "./providers/ProvidersApi.ts"
import { Route } from "./providers/RoutesApi.ts"
import { refusals } from "./schema/Errors.ts"
import { Id, Timestamp } from "./schema/Fields.ts"
import { MaxBodyBytes, operation } from "./schema/Security.ts"
import { listOf, Service, ServiceNames, serviceBounds } from "./services/ServicesApi.ts"

export const ProjectEntry = Schema.Struct({ name: Schema.String })
export type ProjectEntry = typeof ProjectEntry.Type

/** A guardrail, identified by its name. A configuration document neither creates nor deletes a built-in guardrail. */
export const GuardrailEntry = Guardrail.mapFields(
  Struct.omit(["endpoint_configured", "token_configured", "updated_at"])
).pipe(
  Schema.fieldsAssign({
    description: Description,
    modes: Modes,
    timeout_ms: Schema.NullOr(Schema.Int.check(Schema.isBetween(timeoutBounds))),
    /** Documents of older versions lack these settings. An HTTP guardrail then gets the defaults. */
    stream_mode: Schema.NullOr(StreamMode).pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed(null))),
    window_chars: Schema.NullOr(WindowChars).pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed(null)))
  })
)
export type GuardrailEntry = typeof GuardrailEntry.Type

/** A service, identified by its name. It has the operators' settings and the endpoints from its OpenAPI document. */
export const ServiceEntry = Service.mapFields(
  Struct.omit([
    "project_id",
    "credential_configured",
    "openapi_schema_hash",
    "openapi_synced_at",
    "source",
    "sync_status",
    "last_synced_at",
    "disabled_at",
    "created_at",
    "updated_at",
    "missing_runtime_fields"
  ])
).pipe(
  Schema.fieldsAssign({
    project: Schema.NullOr(Schema.String),
    allowed_methods: listOf(ServiceMethod, serviceBounds.allowed_methods),
    pricing_rules: listOf(PricingRule, serviceBounds.pricing_rules),
    openapi_endpoints: listOf(Endpoint, serviceBounds.openapi_endpoints),
    endpoint_pricing_rules: listOf(EndpointPricingRule, serviceBounds.endpoint_pricing_rules),
    fallback_services: listOf(Schema.String, serviceBounds.fallback_services)
  })
)
export type ServiceEntry = typeof ServiceEntry.Type

/** The services that a project's keys may call. If the list is empty, only policies restrict the services. */
export const ServiceLinksEntry = Schema.Struct({ project: Schema.String, service_names: ServiceNames })
export type ServiceLinksEntry = typeof ServiceLinksEntry.Type

/**
 * A policy layer, identified by its kind and scope. The scope is the name of a project, team or model, or a route. It
 * is `null` for the global layer. Omitted fields of the policies and the shared limits restrict nothing.
 */
export const LayerEntry = Schema.Struct({
  kind: LayerKind,
  scope: Schema.NullOr(LayerScopeId),
  /** Documents of older versions lack it. */
  enabled: Schema.Boolean.pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed(true))),
  policy: KeyPolicyInput,
  shared: Schema.optionalKey(SharedLimitsPatch),
  guardrail_policy: GuardrailPolicyPatch
})
export type LayerEntry = typeof LayerEntry.Type

/** A gateway key, identified by its id. A plan ignores `key_prefix`. Omitted policy fields restrict nothing. */
export const KeyEntry = Schema.Struct({
  id: Id,
  key_prefix: Schema.optionalKey(Schema.String),
  name: Key.fields.name.pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed(null))),
  owner_type: OwnerType,
  project: Schema.NullOr(Schema.String),
  /** The services that an individual key may call. A key of a project uses the services of its project. */
  service_names: ServiceNames,
  team_id: Schema.NullOr(TeamId),
  disabled: Schema.Boolean,
  expires_at: Schema.NullOr(Timestamp),
  rotation_due_at: Schema.NullOr(Timestamp),
  policy: KeyPolicyInput,
  guardrail_policy: GuardrailPolicyPatch
})
export type KeyEntry = typeof KeyEntry.Type

/** A provider row, identified by its kind and name. */
export const ProviderEntry = Provider.mapFields(
  Struct.omit(["id", "credential_configured", "created_at", "updated_at"])
).pipe(
  Schema.fieldsAssign({ family: Schema.NullOr(Vendor).pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed(null))) })
)
export type ProviderEntry = typeof ProviderEntry.Type

/** A credential mapping, identified by its target. The target is the id of a key or the name of a project. */
export const MappingEntry = Schema.Struct({
  scope: Schema.Literals(["key", "project"]),
  target: Schema.String,
  enabled: Schema.Boolean
})
export type MappingEntry = typeof MappingEntry.Type

export const PriceEntry = ModelPrice.mapFields(Struct.omit(["updated_at"])).pipe(
  Schema.fieldsAssign({ model: PricedModel })
)
export type PriceEntry = typeof PriceEntry.Type

/** Documents of older versions lack the next three settings, so each of them has a default. */
const OwnershipEntry = Ownership.pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed("project" as const)))
const LimitsStreamsEntry = Schema.Boolean.pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed(false)))
const UnheldEntry = UnenforceablePolicy.pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed("refuse" as const)))

export const RouteEntry = Route.mapFields(Struct.omit(["route", "updated_at"])).pipe(
  Schema.fieldsAssign({ ownership: OwnershipEntry, limits_streams: LimitsStreamsEntry })
)
export type RouteEntry = typeof RouteEntry.Type

/** The stored address of the studio. If it is `null`, the address from the environment applies. */
export const StudioEntry = Schema.Struct({ base_url: Schema.NullOr(Schema.String) })
export type StudioEntry = typeof StudioEntry.Type

/** No section of a document has more entries. A key takes about 300 bytes, and a document at most 16 MiB. */
export const maxSectionEntries = 50_000

const section = <S extends Schema.Constraint>(entry: S) =>
  Schema.optionalKey(Schema.Array(entry).check(Schema.isMaxLength(maxSectionEntries)))

/**
 * The settings of operators, without secrets. An absent section keeps the stored entries. A present section deletes all
 * stored entries that it omits, except routes, keys and built-in guardrails. A document can neither create nor delete
 * these three. Stored credentials are unchanged. New entries have no credential. `front_door` holds the authentication
 * settings. It is absent until an operator stores it for the first time.
 */
export const Configuration = Schema.Struct({
  format: Schema.String.check(Schema.isPattern(/^svc-configuration\/1$/, { expected: '"svc-configuration/1"' })),
  projects: section(ProjectEntry),
  guardrails: section(GuardrailEntry),
  services: section(ServiceEntry),
  service_links: section(ServiceLinksEntry),
  keys: section(KeyEntry),
  policy_layers: section(LayerEntry),
  providers: section(ProviderEntry),
  credential_mappings: section(MappingEntry),
  model_prices: section(PriceEntry),
  routes: section(RouteEntry),
  upstream_passthrough: Schema.optionalKey(
    Passthrough.pipe(
      Schema.fieldsAssign({
        guardrails: UnheldEntry,
        body_policies: UnheldEntry,
        ownership: OwnershipEntry,
        limits_streams: LimitsStreamsEntry
      })
    )
  ),
  studio_connection: Schema.optionalKey(StudioEntry),
  front_door: Schema.optionalKey(AuthSettings)
})
export type Configuration = typeof Configuration.Type

const { format: _, ...sections } = Configuration.fields
export const Section = Schema.Literals(Struct.keys(sections))
export type Section = typeof Section.Type

export const ConfigurationChange = Schema.Struct({
  section: Schema.String,
  id: Schema.String,
  action: Schema.Literals(["create", "update", "delete"]),
  before: Schema.Json,
  after: Schema.Json,
  /** The fields that differ, by path, such as `policy.rpm_limit`. */
  fields: Schema.Array(Schema.Struct({ path: Schema.String, before: Schema.Json, after: Schema.Json })),
  /** One sentence about the permissions that a key or policy layer gains or loses. */
  summary: Schema.NullOr(Schema.String)
})
export type ConfigurationChange = typeof ConfigurationChange.Type

/** `base_hash` identifies the configuration from which the plan was computed. */
export const ConfigurationPlan = Schema.Struct({
  base_hash: Schema.String,
  changes: Schema.Array(ConfigurationChange)
})
export type ConfigurationPlan = typeof ConfigurationPlan.Type

/** `changes_since` counts up to this number. */
export const maxChangesSince = 1000

/** The last document that was applied, and what was changed without one since. */
export const AppliedConfiguration = Schema.Struct({
  /** `null` if the audit log has no apply. */
  applied: Schema.NullOr(
    Schema.Struct({
      /** The number of its audit event. */
      sequence: Schema.Int,
      at: Timestamp,
      /** The name of the operator token. */
      by: Schema.NullOr(Schema.String),
      /** The number of entries that it changed. */
      changes: Schema.Int
    })
  ),
  /** Audit events since then that changed something that a document has, 1,000 at most. `null` without an apply. */
  changes_since: Schema.NullOr(Schema.Int)
}).annotate({ identifier: "AppliedConfiguration" })
export type AppliedConfiguration = typeof AppliedConfiguration.Type

const maxDocumentBytes = 16_777_216

export const ConfigurationApi = HttpApiGroup.make("configuration")
  .annotate(OpenApi.Description, "The whole configuration as one document, without secrets.")
  .add(
    HttpApiEndpoint.get("export", "/", {
      query: { omit: Schema.optionalKey(Schema.Array(Section).check(Schema.isMaxLength(Section.literals.length))) },
      success: Configuration,
      error: refusals("configuration_too_large")
    })
      .annotateMerge(operation("Export the configuration", "operators:manage"))
      .annotate(
        OpenApi.Description,
        "`omit=keys` leaves the keys out; repeat it for each section to leave out. A document without a section keeps what is stored."
      ),
    HttpApiEndpoint.get("applied", "/applied", { success: AppliedConfiguration })
      .annotateMerge(operation("Show whether something was changed since a document was applied", "operators:manage"))
      .annotate(
        OpenApi.Description,
        "Counts the changes by their audit events, so a change that was taken back counts twice. `plan` compares the documents themselves."
      ),
    HttpApiEndpoint.post("plan", "/plan", {
      payload: Configuration,
      success: ConfigurationPlan,
      error: refusals("invalid_configuration_document")
    })
      .annotateMerge(operation("Show what a document would change", "operators:manage"))
      .annotate(
        OpenApi.Description,
        "A dry run: changes nothing. The response describes what each key or policy layer loses or gains."
      )
      .annotate(MaxBodyBytes, maxDocumentBytes),
    HttpApiEndpoint.post("apply", "/apply", {
      payload: Schema.Struct({ base_hash: Schema.String, document: Configuration }),
      success: ConfigurationPlan,
      error: refusals("invalid_configuration_document", "configuration_changed")
    })
      // A document may change every kind of setting, so only tokens with all scopes may apply it.
      .annotateMerge(operation("Apply a document", "*"))
      .annotate(
        OpenApi.Description,
        "Applies the document only if the configuration still has the `base_hash` of the plan. Otherwise nothing changes."
      )
      .annotate(MaxBodyBytes, maxDocumentBytes)
  )
  .prefix("/configuration")
