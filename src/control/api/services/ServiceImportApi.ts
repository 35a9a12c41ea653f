import { Schema, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { CostMode, EstimatedCost, ServiceMethod } from "../../../policy/routes/Service.ts"
import { refusals } from "../schema/Errors.ts"
import { Id, Timestamp } from "../schema/Fields.ts"
import { operation, requires, skipsUnreadable } from "../schema/Security.ts"
import {
  ChangedService,
  HealthMethod,
  NewService,
  PricingRuleInput,
  Service,
  ServiceSource,
  SyncStatus
} from "./ServicesApi.ts"

const Text = Schema.NullOr(Schema.String)

/** The prices that the studio (an external catalogue) suggests. A repeated import applies only `pricing_rules`. */
const DefaultPricing = Schema.Struct({
  cost_mode: Schema.optionalKey(CostMode),
  estimated_cost_usd: Schema.optionalKey(EstimatedCost),
  pricing_rules: Schema.optionalKey(Schema.Array(PricingRuleInput).check(Schema.isMaxLength(50)))
})

const suggested = {
  /** The gateway ignores the category of the studio. */
  category: Schema.optionalKey(Text),
  default_pricing: Schema.optionalKey(Schema.NullOr(DefaultPricing))
}

/** A service of the studio, as `GET /studio/services` suggests it. `null` has the effect of an absent field. */
export const ImportRequest = Schema.Struct({
  studio_service_id: Schema.String,
  name: Schema.String,
  project_id: Schema.optionalKey(Schema.NullOr(Id)),
  route_pattern: Schema.optionalKey(Text),
  upstream_base_url: Schema.optionalKey(Text),
  health_check_path: Schema.optionalKey(Text),
  health_check_method: Schema.optionalKey(Schema.NullOr(HealthMethod)),
  allowed_methods: Schema.optionalKey(Schema.NullOr(Schema.Array(ServiceMethod).check(Schema.isMaxLength(5)))),
  ...suggested
})
export type ImportRequest = typeof ImportRequest.Type

/**
 * One service of the registry (the list of all services). If its `studio_service_id` exists, only the name and the
 * pricing rules change. Otherwise all given fields are set. Entries contain no credentials.
 */
export const RegistryEntry = NewService.mapFields(Struct.omit(["credential"])).pipe(Schema.fieldsAssign(suggested))
export type RegistryEntry = typeof RegistryEntry.Type

/** The complete list of services. Activating it disables all other services and marks them as `stale`. */
export const RegistryDraft = Schema.Struct({
  source: Schema.optionalKey(Schema.String.check(Schema.isBetweenLength(1, 120))),
  services: Schema.Array(RegistryEntry).check(Schema.isMaxLength(500))
})
export type RegistryDraft = typeof RegistryDraft.Type

const Names = Schema.Array(Schema.String)

/** The names of the services that an activation adds, changes or removes, and the changed fields of each service. */
export const RegistryDiff = Schema.Struct({
  added: Names,
  changed: Names,
  removed: Names,
  changed_fields: Schema.Record(Schema.String, Names),
  invalid: Schema.Array(Schema.Struct({ service_name: Schema.String, field: Schema.String, message: Schema.String }))
})
export type RegistryDiff = typeof RegistryDiff.Type

export const Registration = Service.mapFields(
  Struct.omit([
    "credential_configured",
    "missing_runtime_fields",
    "last_synced_at",
    "disabled_at",
    "created_at",
    "updated_at"
  ])
)
export type Registration = typeof Registration.Type

export const RegistrySnapshot = Schema.Struct({
  version: Schema.Int,
  source: Schema.String,
  diff: RegistryDiff,
  services_json: Schema.Array(Registration),
  activated_at: Timestamp,
  rolled_back_from_version: Schema.NullOr(Schema.Int),
  created_at: Timestamp
})
export type RegistrySnapshot = typeof RegistrySnapshot.Type

export const Activation = Schema.Struct({ snapshot: RegistrySnapshot, services: Schema.Array(ChangedService) })
export type Activation = typeof Activation.Type

export const ServiceSync = Schema.Struct({
  service_name: Schema.String,
  source: ServiceSource,
  studio_service_id: Text,
  sync_status: SyncStatus,
  last_synced_at: Schema.NullOr(Timestamp),
  missing_runtime_fields: Service.fields.missing_runtime_fields,
  openapi_source_path: Text,
  openapi_schema_hash: Text,
  openapi_synced_at: Schema.NullOr(Timestamp)
})
export type ServiceSync = typeof ServiceSync.Type

const Version = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }))

const refused = ["invalid_service_payload", "invalid_service_upstream", "missing_project", "duplicate_service"] as const
const imported = { payload: ImportRequest, success: ChangedService, error: refusals(...refused) }

export const ServiceImportApi = HttpApiGroup.make("service-import")
  .annotate(
    OpenApi.Description,
    "Imports of services from a studio or from a list, and rollbacks to an earlier version of the registry."
  )
  .add(
    HttpApiEndpoint.post("import", "/import", imported)
      .annotate(OpenApi.Summary, "Import a service of the studio")
      .annotate(
        OpenApi.Description,
        "A repeated import updates the fields that the studio owns (name and pricing rules) and keeps all others."
      ),
    HttpApiEndpoint.post("sync", "/sync", imported)
      .annotate(OpenApi.Summary, "Import a service of the studio again")
      .annotate(OpenApi.Description, "Equivalent to `import`."),
    HttpApiEndpoint.post("preview", "/import/preview", {
      payload: RegistryDraft,
      success: Schema.Struct({ diff: RegistryDiff })
    })
      .annotateMerge(skipsUnreadable)
      .annotate(OpenApi.Summary, "Show what a list of services would change"),
    HttpApiEndpoint.post("activate", "/import/activate", {
      payload: RegistryDraft,
      success: Activation,
      error: refusals("invalid_service_payload", "duplicate_service")
    })
      .annotateMerge(skipsUnreadable)
      .annotate(OpenApi.Summary, "Replace the registry by a list of services"),
    HttpApiEndpoint.get("versions", "/import/versions", {
      query: {
        limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 50 }))),
        before: Schema.optionalKey(Version)
      },
      success: Schema.Array(RegistrySnapshot)
    })
      .annotateMerge(skipsUnreadable)
      .annotate(OpenApi.Summary, "List versions of the registry, newest first")
      .annotate(OpenApi.Description, "For the next page, pass the last version of this page as `before`."),
    HttpApiEndpoint.post("rollback", "/import/rollback/:version", {
      params: { version: Version },
      success: Activation,
      error: refusals("missing_service", "duplicate_service")
    })
      .annotateMerge(skipsUnreadable)
      .annotate(OpenApi.Summary, "Restore an earlier version of the registry")
      .annotate(OpenApi.Description, "The restored registry becomes a new version.")
  )
  .annotateEndpointsMerge(requires("services:update"))
  .add(
    HttpApiEndpoint.get("status", "/:name/sync-status", {
      params: { name: Schema.String },
      success: ServiceSync,
      error: refusals("missing_service")
    }).annotateMerge(operation("Show when a service was last synchronised", "operators:manage"))
  )
  .prefix("/services")
