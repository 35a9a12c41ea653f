import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { BodyBytes, TimeoutMs } from "../../../policy/routes/CanonicalRoute.ts"
import {
  CostMode,
  Endpoint,
  EndpointMethod,
  EndpointPricingRule,
  EstimatedCost,
  PricingRule,
  RuntimeField,
  ServiceMethod,
  ServiceName
} from "../../../policy/routes/Service.ts"
import { Credential } from "../providers/ProvidersApi.ts"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import { CredentialCleared, expectedUpdate, Id, orUnreadable, Timestamp, timestamps } from "../schema/Fields.ts"
import { operation, skipsUnreadable } from "../schema/Security.ts"

export const HealthMethod = Schema.Literals(["GET", "HEAD"])
export const ServiceSource = Schema.Literals(["gateway", "studio"])
export const SyncStatus = Schema.Literals(["local", "synced", "incomplete", "stale", "failed"])

const Text = Schema.NullOr(Schema.String)
export const listOf = <S extends Schema.Constraint>(item: S, maxLength: number) =>
  Schema.Array(item).check(Schema.isMaxLength(maxLength))

/** A registered service. Responses never contain its credential, only `credential_configured`. */
export const Service = Schema.Struct({
  name: Schema.String,
  project_id: Schema.NullOr(Id),
  studio_service_id: Text,
  route_pattern: Schema.String,
  upstream_base_url: Text,
  health_check_path: Text,
  health_check_method: HealthMethod,
  enabled: Schema.Boolean,
  allowed_methods: Schema.Array(ServiceMethod),
  timeout_ms: TimeoutMs,
  max_body_bytes: BodyBytes,
  cost_mode: CostMode,
  estimated_cost_usd: EstimatedCost,
  pricing_rules: Schema.Array(PricingRule),
  openapi_source_path: Text,
  openapi_endpoints: Schema.Array(Endpoint),
  endpoint_pricing_rules: Schema.Array(EndpointPricingRule),
  fallback_services: Schema.Array(Schema.String),
  credential_configured: Schema.Boolean,
  openapi_schema_hash: Text,
  openapi_synced_at: Schema.NullOr(Timestamp),
  source: ServiceSource,
  sync_status: SyncStatus,
  last_synced_at: Schema.NullOr(Timestamp),
  disabled_at: Schema.NullOr(Timestamp),
  ...timestamps,
  missing_runtime_fields: Schema.Array(RuntimeField)
}).annotate({ identifier: "Service" })
export type Service = typeof Service.Type

export const ChangedService = Service.pipe(Schema.fieldsAssign({ credential_cleared: CredentialCleared }))
export type ChangedService = typeof ChangedService.Type

/** `path` is an alias of `json_pointer`. In `equals`, a number or boolean matches its text form. */
export const PricingRuleInput = Schema.Struct({
  name: Schema.optionalKey(Text),
  json_pointer: Schema.optionalKey(Schema.String),
  path: Schema.optionalKey(Schema.String),
  equals: Schema.Union([Schema.String, Schema.Finite, Schema.Boolean]),
  cost_mode: CostMode,
  estimated_cost_usd: Schema.optionalKey(EstimatedCost)
})
export type PricingRuleInput = typeof PricingRuleInput.Type

const endpoint = {
  method: EndpointMethod,
  path_template: Schema.String,
  operation_id: Schema.optionalKey(Text)
}

export const EndpointInput = Schema.Struct({
  ...endpoint,
  summary: Schema.optionalKey(Text),
  svc_default: Schema.optionalKey(Schema.Boolean)
})
export type EndpointInput = typeof EndpointInput.Type

export const EndpointPricingRuleInput = Schema.Struct({
  ...endpoint,
  cost_mode: CostMode,
  estimated_cost_usd: Schema.optionalKey(EstimatedCost)
})
export type EndpointPricingRuleInput = typeof EndpointPricingRuleInput.Type

export const serviceBounds = {
  allowed_methods: 5,
  pricing_rules: 50,
  openapi_endpoints: 500,
  endpoint_pricing_rules: 500,
  fallback_services: 50
}

/** `null` clears a field or restores its default. */
const settings = {
  project_id: Schema.optionalKey(Schema.NullOr(Id)),
  studio_service_id: Schema.optionalKey(Text),
  route_pattern: Schema.optionalKey(Text),
  upstream_base_url: Schema.optionalKey(Text),
  health_check_path: Schema.optionalKey(Text),
  health_check_method: Schema.optionalKey(Schema.NullOr(HealthMethod)),
  enabled: Schema.optionalKey(Schema.Boolean),
  allowed_methods: Schema.optionalKey(Schema.NullOr(listOf(ServiceMethod, serviceBounds.allowed_methods))),
  credential: Schema.optionalKey(Schema.NullOr(Credential)),
  timeout_ms: Schema.optionalKey(Schema.NullOr(TimeoutMs)),
  max_body_bytes: Schema.optionalKey(Schema.NullOr(BodyBytes)),
  cost_mode: Schema.optionalKey(Schema.NullOr(CostMode)),
  estimated_cost_usd: Schema.optionalKey(EstimatedCost),
  pricing_rules: Schema.optionalKey(Schema.NullOr(listOf(PricingRuleInput, serviceBounds.pricing_rules))),
  openapi_source_path: Schema.optionalKey(Text),
  openapi_endpoints: Schema.optionalKey(Schema.NullOr(listOf(EndpointInput, serviceBounds.openapi_endpoints))),
  endpoint_pricing_rules: Schema.optionalKey(
    Schema.NullOr(listOf(EndpointPricingRuleInput, serviceBounds.endpoint_pricing_rules))
  ),
  fallback_services: Schema.optionalKey(Schema.NullOr(listOf(Schema.String, serviceBounds.fallback_services)))
}

export const NewService = Schema.Struct({ name: Schema.String, ...settings })
export type NewService = typeof NewService.Type

export const ServicePatch = Schema.Struct({
  ...settings,
  sync_status: Schema.optionalKey(SyncStatus),
  ...expectedUpdate
})
export type ServicePatch = typeof ServicePatch.Type

/** The services that the keys of a project, or one key, may call. A given list replaces the stored list. */
export const ServiceNames = listOf(ServiceName, 1000)

const params = { name: Schema.String }
const missing = refusals("missing_service")
const refused = ["invalid_service_payload", "invalid_service_upstream", "missing_project", "duplicate_service"] as const

export const ServicesApi = HttpApiGroup.make("services")
  .annotate(OpenApi.Description, "Services behind the proxy, at `/services/<name>/*` or at their own route patterns.")
  .add(
    HttpApiEndpoint.post("create", "/", {
      payload: NewService,
      success: Service,
      error: refusals(...refused)
    })
      .annotateMerge(operation("Register a service", "services:update"))
      .annotate(
        OpenApi.Description,
        "The proxy forwards `/services/<name>/*` to the service, with the service's own credential."
      )
      .annotateMerge(
        bodyExample({
          name: "search-index",
          upstream_base_url: "https://search.example.com",
          allowed_methods: ["GET", "POST"]
        })
      ),
    HttpApiEndpoint.get("list", "/", { success: Schema.Array(Service) })
      .annotateMerge(skipsUnreadable)
      .annotateMerge(operation("List services by name", "usage:read")),
    HttpApiEndpoint.get("get", "/:name", { params, success: Service, error: missing }).annotateMerge(
      operation("Show a service", "operators:manage")
    ),
    HttpApiEndpoint.patch("update", "/:name", {
      params,
      payload: ServicePatch,
      success: ChangedService,
      error: refusals("missing_service", "changed_since_read", ...refused)
    }).annotateMerge(operation("Change a service", "services:update")),
    HttpApiEndpoint.delete("remove", "/:name", {
      params,
      success: HttpApiSchema.NoContent,
      error: refusals("missing_service", "service_in_use")
    })
      .annotateMerge(operation("Delete a service", "services:update"))
      .annotate(
        OpenApi.Description,
        "Refused while the service is the only one that a project or key is linked to. Without links, the project or key could call every service."
      ),
    HttpApiEndpoint.post("enable", "/:name/enable", { params, success: Service, error: missing }).annotateMerge(
      operation("Enable a service", "services:update")
    ),
    HttpApiEndpoint.post("disable", "/:name/disable", {
      params,
      success: orUnreadable(Service),
      error: missing
    }).annotateMerge(operation("Disable a service", "services:update"))
  )
  .prefix("/services")
