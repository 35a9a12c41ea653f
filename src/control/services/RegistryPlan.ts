import { Equal, Struct } from "effect"
import { defaultRoutePattern } from "../../policy/routes/Service.ts"
import type { Registration, RegistryDiff, RegistryEntry } from "../api/services/ServiceImportApi.ts"
import type { Service } from "../api/services/ServicesApi.ts"
import { validateOrigin } from "../store/Validation.ts"
import * as ServiceValidation from "./ServiceValidation.ts"

/** One service before and after the change. `before` is `undefined` for a new service. */
export interface RegistryStep {
  readonly before: Service | undefined
  readonly after: Registration
}

export interface Plan {
  readonly diff: RegistryDiff
  /** One step for every service that exists afterwards, including unchanged ones. */
  readonly steps: ReadonlyArray<RegistryStep>
}

type InvalidEntry = RegistryDiff["invalid"][number]

type ServiceIdentity = Pick<RegistryEntry, "name" | "studio_service_id">

const byStudio = (registry: ReadonlyArray<Service>, { studio_service_id }: ServiceIdentity): Service | undefined =>
  studio_service_id ? registry.find((service) => service.studio_service_id === studio_service_id) : undefined

const byName = (registry: ReadonlyArray<Service>, { name }: ServiceIdentity): Service | undefined =>
  registry.find((service) => service.name === name)

/** Returns the service with the studio service id of `entry`, or else the service with the name of `entry`. */
export const matchingService = (registry: ReadonlyArray<Service>, entry: ServiceIdentity): Service | undefined =>
  byStudio(registry, entry) ?? byName(registry, entry)

/** Returns the items of `all` that share neither the name nor the studio service id with an item of `others`. */
export const unrelatedTo = <A extends ServiceIdentity>(
  others: ReadonlyArray<ServiceIdentity>,
  all: ReadonlyArray<A>
): ReadonlyArray<A> =>
  all.filter(
    ({ name, studio_service_id }) =>
      !others.some(
        (other) => other.name === name || (studio_service_id && other.studio_service_id === studio_service_id)
      )
  )

/** Returns the first rule that the entry violates, without regard to other entries. */
export const findViolation = (
  entry: RegistryEntry,
  before: Service | undefined
): ServiceValidation.RuleViolation | undefined => {
  const { category: _, default_pricing, name, ...input } = entry
  const refusedName = ServiceValidation.refusedName(name)
  if (refusedName !== undefined) return { param: "name", reason: refusedName }
  const refusedUpstream = input.upstream_base_url ? validateOrigin(input.upstream_base_url) : undefined
  if (refusedUpstream !== undefined) return { param: "upstream_base_url", reason: refusedUpstream }
  const price = toRegistration(entry, before)
  const violation = ServiceValidation.findViolation(input, price)
  if (violation !== undefined) return violation
  const suggested = ServiceValidation.findViolation({ pricing_rules: default_pricing?.pricing_rules ?? [] }, price)
  return suggested && { ...suggested, param: `default_pricing.${suggested.param}` }
}

/** Returns a violation if the entry takes the name of a service that it does not describe. */
export const nameConflict = (
  registry: ReadonlyArray<Service>,
  { name, studio_service_id }: ServiceIdentity,
  before: Service | undefined
): ServiceValidation.RuleViolation | undefined => {
  const owner = registry.find((service) => service.name === name)
  if (owner === undefined) return undefined
  if (owner === before && (!studio_service_id || owner.studio_service_id === studio_service_id)) return undefined
  return {
    param: "name",
    reason:
      owner.studio_service_id === null
        ? "belongs to a service that is not linked to the studio: set its studio_service_id, or import under another name"
        : "belongs to a service that is linked to another studio service: import under another name"
  }
}

export const toRegistration = (entry: RegistryEntry, before: Service | undefined): Registration => {
  if (before === undefined) return mergedRegistration(entry, newRegistration(entry))
  return entry.studio_service_id
    ? reimportedRegistration(entry, before)
    : mergedRegistration(entry, registrationOf(before))
}

/** A new service is disabled, because it has no credential yet and an operator should review it first. */
const newRegistration = ({ default_pricing, name, studio_service_id }: RegistryEntry): Registration => ({
  name,
  project_id: null,
  studio_service_id: studio_service_id ?? null,
  route_pattern: defaultRoutePattern(name),
  upstream_base_url: null,
  health_check_path: null,
  health_check_method: "GET",
  enabled: false,
  allowed_methods: ["POST"],
  timeout_ms: 60_000,
  max_body_bytes: 2_097_152,
  cost_mode: default_pricing?.cost_mode ?? "none",
  estimated_cost_usd: default_pricing?.estimated_cost_usd ?? null,
  pricing_rules: (default_pricing?.pricing_rules ?? []).map(ServiceValidation.toPricingRule),
  openapi_source_path: null,
  openapi_schema_hash: null,
  openapi_synced_at: null,
  openapi_endpoints: [],
  endpoint_pricing_rules: [],
  fallback_services: [],
  source: studio_service_id ? "studio" : "gateway",
  sync_status: studio_service_id ? "incomplete" : "local"
})

/** The studio sets the name and the pricing rules. Operators set all other fields. */
const reimportedRegistration = ({ default_pricing, name }: RegistryEntry, before: Service): Registration => ({
  ...registrationOf(before),
  name,
  pricing_rules: default_pricing?.pricing_rules?.map(ServiceValidation.toPricingRule) ?? before.pricing_rules,
  source: "studio",
  sync_status: before.missing_runtime_fields.length === 0 ? "synced" : "incomplete"
})

/** Replaces the fields that `entry` contains. `null` resets a field to its value in a new service. */
const mergedRegistration = (entry: RegistryEntry, base: Registration): Registration => {
  const initial = newRegistration(entry)
  const { allowed_methods, endpoint_pricing_rules, fallback_services, openapi_endpoints, pricing_rules } = entry
  const value = <Field extends keyof Registration>(
    field: Field,
    given: Registration[Field] | null | undefined
  ): Registration[Field] => (given === undefined ? base[field] : (given ?? initial[field]))
  return {
    ...base,
    project_id: value("project_id", entry.project_id),
    route_pattern: value("route_pattern", entry.route_pattern),
    upstream_base_url: value("upstream_base_url", entry.upstream_base_url && originOf(entry.upstream_base_url)),
    health_check_path: value("health_check_path", entry.health_check_path),
    health_check_method: value("health_check_method", entry.health_check_method),
    enabled: value("enabled", entry.enabled),
    allowed_methods: value("allowed_methods", allowed_methods),
    timeout_ms: value("timeout_ms", entry.timeout_ms),
    max_body_bytes: value("max_body_bytes", entry.max_body_bytes),
    cost_mode: value("cost_mode", entry.cost_mode),
    estimated_cost_usd: value("estimated_cost_usd", entry.estimated_cost_usd),
    pricing_rules: value("pricing_rules", mapNullable(pricing_rules, ServiceValidation.toPricingRule)),
    openapi_source_path: value("openapi_source_path", entry.openapi_source_path),
    openapi_endpoints: value("openapi_endpoints", mapNullable(openapi_endpoints, ServiceValidation.toEndpoint)),
    endpoint_pricing_rules: value(
      "endpoint_pricing_rules",
      mapNullable(endpoint_pricing_rules, ServiceValidation.toEndpointPricingRule)
    ),
    fallback_services: value("fallback_services", fallback_services)
  }
}

const mapNullable = <A, B>(
  list: ReadonlyArray<A> | null | undefined,
  as: (item: A) => B
): ReadonlyArray<B> | null | undefined => (list === null || list === undefined ? list : list.map(as))

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url)

export const registrationOf = ({
  created_at: _c,
  credential_configured: _k,
  disabled_at: _d,
  last_synced_at: _l,
  missing_runtime_fields: _m,
  updated_at: _u,
  ...registration
}: Service): Registration => registration

export const ofEntries = (
  registry: ReadonlyArray<Service>,
  entries: ReadonlyArray<RegistryEntry>,
  knownProjects: ReadonlySet<string>
): Plan => {
  const matches = entries.map((entry) => ({ entry, before: matchingService(registry, entry) }))
  const invalid = matches.flatMap(({ before, entry }, at): ReadonlyArray<InvalidEntry> => {
    const violation =
      findViolation(entry, before) ??
      nameConflict(registry, entry, before) ??
      unknownProject(entry, knownProjects) ??
      duplicateEntry(matches.slice(0, at), entry, before)
    return violation === undefined
      ? []
      : [{ service_name: entry.name, field: violation.param, message: `${violation.param} ${violation.reason}.` }]
  })
  return planOf(
    registry,
    matches.map(({ before, entry }) => ({ before, after: toRegistration(entry, before) })),
    invalid
  )
}

/** Plans the change from `registry` back to the services of a snapshot, without references to deleted projects. */
export const ofSnapshot = (
  registry: ReadonlyArray<Service>,
  snapshot: ReadonlyArray<Registration>,
  knownProjects: ReadonlySet<string>
): Plan => {
  const studioMatches = snapshot.map((after) => byStudio(registry, after))
  // A service that was renamed since the snapshot must not also match another entry by its new name.
  const claimed = new Set(studioMatches)
  const unclaimed = registry.filter((service) => !claimed.has(service))
  return planOf(
    registry,
    snapshot.map((after, at) => ({
      before: studioMatches[at] ?? byName(unclaimed, after),
      after: after.project_id === null || knownProjects.has(after.project_id) ? after : { ...after, project_id: null }
    })),
    []
  )
}

const unknownProject = (
  { project_id }: RegistryEntry,
  knownProjects: ReadonlySet<string>
): ServiceValidation.RuleViolation | undefined =>
  project_id && !knownProjects.has(project_id)
    ? { param: "project_id", reason: "does not name an existing project" }
    : undefined

const duplicateEntry = (
  earlier: ReadonlyArray<{ readonly entry: RegistryEntry; readonly before: Service | undefined }>,
  { name, studio_service_id }: RegistryEntry,
  before: Service | undefined
): ServiceValidation.RuleViolation | undefined => {
  if (earlier.some(({ entry }) => entry.name === name)) return { param: "name", reason: "is listed twice" }
  const isRepeated = earlier.some(
    (other) =>
      (before !== undefined && other.before === before) ||
      (studio_service_id && other.entry.studio_service_id === studio_service_id)
  )
  return isRepeated ? { param: "studio_service_id", reason: "is listed twice" } : undefined
}

const planOf = (
  registry: ReadonlyArray<Service>,
  steps: ReadonlyArray<RegistryStep>,
  invalid: ReadonlyArray<InvalidEntry>
): Plan => {
  const matched = new Set(steps.map(({ before }) => before))
  const disableSteps = registry
    .filter((service) => !matched.has(service))
    .map(
      (before): RegistryStep => ({ before, after: { ...registrationOf(before), enabled: false, sync_status: "stale" } })
    )
  const changes = steps.flatMap(({ after, before }) => {
    const fields = before === undefined ? [] : changedFields(registrationOf(before), after)
    return fields.length === 0 ? [] : [{ name: after.name, fields }]
  })
  return {
    diff: {
      added: steps.flatMap(({ after, before }) => (before === undefined ? [after.name] : [])),
      changed: changes.map(({ name }) => name),
      removed: disableSteps.filter(isChange).map(({ after }) => after.name),
      changed_fields: Object.fromEntries(changes.map(({ fields, name }) => [name, fields])),
      invalid
    },
    // Renames run before inserts, so that an insert can use the old name of a renamed service.
    steps: [...steps, ...disableSteps].sort((a, b) => Number(a.before === undefined) - Number(b.before === undefined))
  }
}

export const isChange = ({ after, before }: RegistryStep): boolean =>
  before === undefined || changedFields(registrationOf(before), after).length > 0

const changedFields = (before: Registration, after: Registration): ReadonlyArray<string> =>
  Struct.keys(before).filter((field) => !Equal.equals(before[field], after[field]))
