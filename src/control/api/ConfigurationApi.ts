import { Schema, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { KeyPolicyPatch } from "../../gateway/model/KeyPolicy.ts"
import { refusals } from "./Errors.ts"
import { Id, Timestamp } from "./Fields.ts"
import { OwnerType } from "./KeysApi.ts"
import { ModelName, ModelPrice } from "./ModelPricesApi.ts"
import { Provider } from "./ProvidersApi.ts"
import { Route } from "./RoutesApi.ts"
import { MaxBodyBytes, requires } from "./Security.ts"

/** Known by its name. */
export const ProjectEntry = Schema.Struct({ name: Schema.String })
export type ProjectEntry = typeof ProjectEntry.Type

/**
 * Known by its id. `key_prefix` tells people which key it is and is not compared: a rotation changes it. What the policy
 * does not say restricts nothing.
 */
export const KeyEntry = Schema.Struct({
  id: Id,
  key_prefix: Schema.optionalKey(Schema.String),
  owner_type: OwnerType,
  /** The name of the project. */
  project: Schema.NullOr(Schema.String),
  disabled: Schema.Boolean,
  expires_at: Schema.NullOr(Timestamp),
  rotation_due_at: Schema.NullOr(Timestamp),
  policy: KeyPolicyPatch
})
export type KeyEntry = typeof KeyEntry.Type

/** Known by its kind and its name. */
export const ProviderEntry = Provider.mapFields(
  Struct.omit(["id", "credential_configured", "created_at", "updated_at"])
)
export type ProviderEntry = typeof ProviderEntry.Type

/** Known by its target: the id of a key, or the name of a project. */
export const MappingEntry = Schema.Struct({
  scope: Schema.Literals(["key", "project"]),
  target: Schema.String,
  enabled: Schema.Boolean
})
export type MappingEntry = typeof MappingEntry.Type

export const PriceEntry = ModelPrice.mapFields(Struct.omit(["updated_at"])).pipe(
  Schema.fieldsAssign({ model: ModelName })
)
export type PriceEntry = typeof PriceEntry.Type

export const RouteEntry = Route.mapFields(Struct.omit(["route", "updated_at"]))
export type RouteEntry = typeof RouteEntry.Type

const section = <S extends Schema.Constraint>(entry: S) =>
  Schema.optionalKey(Schema.Array(entry).check(Schema.isMaxLength(50_000)))

/**
 * What operators decided, without a secret. A section that a document leaves out stays as it is; a section that is there
 * is all that there is to be, but for routes and keys: they are neither made nor removed here, and those that a section
 * does not name stay as they are. Credentials stay where they are, and what is made here has none yet.
 */
export const Configuration = Schema.Struct({
  format: Schema.String.check(Schema.isPattern(/^svc-configuration\/1$/, { expected: '"svc-configuration/1"' })),
  projects: section(ProjectEntry),
  keys: section(KeyEntry),
  providers: section(ProviderEntry),
  credential_mappings: section(MappingEntry),
  model_prices: section(PriceEntry),
  routes: section(RouteEntry)
})
export type Configuration = typeof Configuration.Type

export const ConfigurationChange = Schema.Struct({
  section: Schema.String,
  id: Schema.String,
  action: Schema.Literals(["create", "update", "delete"]),
  before: Schema.Json,
  after: Schema.Json,
  /** Which fields differ, by their path: `policy.rpm_limit`. */
  fields: Schema.Array(Schema.Struct({ path: Schema.String, before: Schema.Json, after: Schema.Json })),
  /** What a key loses or gains, in a sentence. */
  summary: Schema.NullOr(Schema.String)
})
export type ConfigurationChange = typeof ConfigurationChange.Type

/** `base_hash` stands for the configuration that the plan was made against. */
export const ConfigurationPlan = Schema.Struct({
  base_hash: Schema.String,
  changes: Schema.Array(ConfigurationChange)
})
export type ConfigurationPlan = typeof ConfigurationPlan.Type

const maxDocumentBytes = 16_777_216

export const ConfigurationApi = HttpApiGroup.make("configuration")
  .add(
    HttpApiEndpoint.get("export", "/", { success: Configuration }).annotateMerge(requires("operators:manage")),
    HttpApiEndpoint.post("plan", "/plan", {
      payload: Configuration,
      success: ConfigurationPlan,
      error: refusals("invalid_configuration_document")
    })
      .annotateMerge(requires("operators:manage"))
      .annotate(MaxBodyBytes, maxDocumentBytes),
    HttpApiEndpoint.post("apply", "/apply", {
      payload: Schema.Struct({ base_hash: Schema.String, document: Configuration }),
      success: ConfigurationPlan,
      error: refusals("invalid_configuration_document", "configuration_changed")
    })
      // It may change everything, so it takes a token that may.
      .annotateMerge(requires("*"))
      .annotate(MaxBodyBytes, maxDocumentBytes)
  )
  .prefix("/configuration")
