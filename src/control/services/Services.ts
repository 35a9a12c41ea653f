import { Context, DateTime, Effect, Layer, Schema, Struct } from "effect"
import { defaultRoutePattern, missingRuntimeFields } from "../../policy/routes/Service.ts"
import { originOf } from "../../policy/routes/StoredCredential.ts"
import { Database } from "../../services/Database.ts"
import type { Change } from "../../state/Changes.ts"
import { Vault } from "../../state/Vault.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { isUnreadable, type Unreadable } from "../api/schema/Fields.ts"
import { ChangedService, type NewService, Service, type ServicePatch } from "../api/services/ServicesApi.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import * as CredentialOrigin from "../store/CredentialOrigin.ts"
import { requireUnchanged } from "../store/Precondition.ts"
import {
  type ColumnValues,
  lockProject,
  onDuplicate,
  rowTimestamps,
  type StoreFailure,
  storedRows,
  toStoreFailures
} from "../store/Rows.ts"
import { validateCredential, validateOrigin } from "../store/Validation.ts"
import { linkedOwnerChanges, refuseLastLinks } from "./ServiceLinks.ts"
import * as ServiceValidation from "./ServiceValidation.ts"

type Missing = Refused<"missing_service">
type Invalid = Refused<"invalid_service_payload" | "invalid_service_upstream" | "missing_project">
type Duplicate = Refused<"duplicate_service">

/** Stores services: the upstreams of `/services/<name>/*` and of custom routes, and the prices of their requests. */
export class Services extends Context.Service<
  Services,
  {
    readonly list: Effect.Effect<ReadonlyArray<Service>, StoreFailure>
    readonly get: (name: string) => Effect.Effect<Service, Missing | StoreFailure>
    /** The service is enabled by default. While required fields are missing, its requests are refused. */
    readonly create: (service: NewService) => Effect.Effect<Service, Invalid | Duplicate | StoreFailure, Actor>
    readonly update: (
      name: string,
      patch: ServicePatch
    ) => Effect.Effect<
      ChangedService,
      Missing | Invalid | Duplicate | Refused<"changed_since_read"> | StoreFailure,
      Actor
    >
    /**
     * Also deletes the links to the service. Fails if the service is the only link of a project or key, because without
     * links it could call every service. With `allowLastLinks` the caller must check this.
     */
    readonly remove: (
      name: string,
      options?: { readonly allowLastLinks?: boolean }
    ) => Effect.Effect<void, Missing | Refused<"service_in_use"> | StoreFailure, Actor>
    readonly enable: (name: string) => Effect.Effect<Service, Missing | StoreFailure, Actor>
    /** Also disables a service whose row this version cannot decode. */
    readonly disable: (name: string) => Effect.Effect<Service | Unreadable, Missing | StoreFailure, Actor>
  }
>()("svc/control/Services") {
  static readonly layer = Layer.suspend(() => Layer.effect(Services, make))
}

export const serviceColumns = `name, project_id, studio_service_id, route_pattern, upstream_base_url, health_check_path, health_check_method,
   enabled, allowed_methods, timeout_ms, max_body_bytes, cost_mode, estimated_cost_usd, pricing_rules, openapi_source_path,
   openapi_endpoints, endpoint_pricing_rules, fallback_services, sealed_credential IS NOT NULL AS credential_configured,
   openapi_schema_hash, openapi_synced_at, source, sync_status, last_synced_at, disabled_at, created_at, updated_at`

export const credentialContext = (name: string): string => `service_registrations/${name}`

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const vault = yield* Vault
  const columns = sql.literal(serviceColumns)

  /** Returns the columns that `input` sets. The price rules apply to the merged row, not to `input` alone. */
  const columnsOf = Effect.fnUntraced(function* (
    name: string,
    input: Settings,
    before: Pick<Service, "cost_mode" | "estimated_cost_usd" | "enabled">,
    currentCredential: CredentialOrigin.CredentialChange["before"]
  ) {
    const price = {
      cost_mode: input.cost_mode === undefined ? before.cost_mode : (input.cost_mode ?? "none"),
      estimated_cost_usd: input.estimated_cost_usd === undefined ? before.estimated_cost_usd : input.estimated_cost_usd
    }
    const violation = ServiceValidation.findViolation(input, price)
    if (violation !== undefined) return yield* invalid(violation.param, violation.reason)
    if (input.project_id) {
      const [project] = yield* sql`SELECT 1 FROM projects WHERE id = ${input.project_id} FOR KEY SHARE`
      if (project === undefined) {
        return yield* new ControlError("missing_project", "There is no project with this id.", { param: "project_id" })
      }
    }
    const { credential, upstream_base_url } = input
    const set: Record<string, ColumnValues[string]> = {}
    if (upstream_base_url !== undefined) {
      const refusal = upstream_base_url === null ? undefined : validateOrigin(upstream_base_url)
      if (refusal !== undefined) {
        return yield* new ControlError("invalid_service_upstream", `upstream_base_url ${refusal}.`, {
          param: "upstream_base_url"
        })
      }
      set["upstream_base_url"] = upstream_base_url && originOf(upstream_base_url)
    }
    if (credential) {
      const refusal = validateCredential(credential)
      if (refusal !== undefined) return yield* invalid("credential", refusal)
    }
    const { cleared, stored } = CredentialOrigin.outcomeOf({
      before: currentCredential,
      address: upstream_base_url,
      sealed: credential && vault.seal(credential, credentialContext(name))
    })
    if (stored !== undefined) {
      set["sealed_credential"] = stored.sealed
      set["credential_origin"] = stored.credential_origin
    }
    if (input.enabled !== undefined) Object.assign(set, yield* enabledColumns(before.enabled, input.enabled))
    return { cleared, set: { ...set, ...settingsColumns(name, input) } }
  })

  const readCredential = ({ credential_configured, name, upstream_base_url }: Service) =>
    CredentialOrigin.stored(sql`SELECT credential_origin FROM service_registrations WHERE name = ${name}`, {
      address: upstream_base_url,
      configured: credential_configured
    })

  const lock = (name: string) =>
    Effect.flatMap(
      serviceRows.first(sql`SELECT ${columns} FROM service_registrations WHERE name = ${name} FOR UPDATE`),
      orNotFound
    )

  /** Locks the row even if this version cannot decode it. */
  const lockAny = (name: string) =>
    Effect.map(
      Effect.flatMap(
        serviceRows.firstOrUnreadable(
          sql`SELECT ${columns} FROM service_registrations WHERE name = ${name} FOR UPDATE`
        ),
        orNotFound
      ),
      toServiceOrUnreadable
    )

  const create = Effect.fn("Services.create")(function* ({ name, ...input }: NewService) {
    const refusal = ServiceValidation.refusedName(name)
    if (refusal !== undefined) return yield* invalid("name", refusal)
    return yield* audit.mutate(function* ({ write }) {
      const { set } = yield* columnsOf(
        name,
        { route_pattern: null, ...input, enabled: input.enabled ?? true },
        { cost_mode: "none", estimated_cost_usd: null, enabled: true },
        undefined
      )
      const service = toService(
        yield* serviceRows
          .only(write`INSERT INTO service_registrations ${sql.insert({ name, ...set })} RETURNING ${columns}`)
          .pipe(failOnDuplicate)
      )
      return {
        result: service,
        auditAction: { target: "service", action: "services:create" },
        targetId: name,
        snapshots: yield* snapshots(null, service),
        changes: [configuration]
      }
    })
  })

  const change = <E, R>(
    name: string,
    action: "services:update" | "services:enable",
    assignments: (before: Service) => Effect.Effect<Assignments, E, R>,
    projectId: string | null | undefined = undefined
  ) =>
    audit.mutate(function* ({ write }) {
      yield* lockProject(sql, projectId)
      const before = toService(yield* lock(name))
      const { cleared, set } = yield* assignments(before)
      const changed =
        Object.keys(set).length === 0
          ? before
          : toService(
              yield* serviceRows
                .only(write`
                  UPDATE service_registrations SET ${sql.update(set)}, updated_at = now()
                  WHERE name = ${name} RETURNING ${columns}`)
                .pipe(failOnDuplicate)
            )
      const after: ChangedService = cleared ? { ...changed, credential_cleared: true } : changed
      return {
        result: after,
        auditAction: { target: "service", action },
        targetId: name,
        snapshots: yield* snapshots(before, after),
        changes: [configuration]
      }
    })

  const enable = (name: string) =>
    Effect.catchIf(
      change(name, "services:enable", (before) =>
        Effect.map(enabledColumns(before.enabled, true), (set) => ({ cleared: false, set }))
      ),
      (error) => error.code === "duplicate_service",
      Effect.die
    )

  const disable = (name: string) =>
    audit.mutate(function* ({ write }) {
      const before = yield* lockAny(name)
      const now = DateTime.toDateUtc(yield* DateTime.now)
      const disabled = yield* serviceRows.firstOrUnreadable(write`
        UPDATE service_registrations SET enabled = false, updated_at = now(),
          disabled_at = CASE WHEN enabled THEN ${now}::timestamptz ELSE disabled_at END
        WHERE name = ${name} RETURNING ${columns}`)
      const after = disabled === undefined ? before : toServiceOrUnreadable(disabled)
      return {
        result: after,
        auditAction: { target: "service", action: "services:disable" },
        targetId: name,
        snapshots: yield* snapshots(before, after),
        changes: [configuration]
      }
    })

  return Services.of({
    list: serviceRows.all(sql`SELECT ${columns} FROM service_registrations ORDER BY name`).pipe(
      Effect.map((services) => services.map(toService)),
      toStoreFailures,
      Effect.withSpan("Services.list")
    ),
    get: Effect.fn("Services.get")(function* (name) {
      const row = yield* toStoreFailures(
        serviceRows.first(sql`SELECT ${columns} FROM service_registrations WHERE name = ${name}`)
      )
      return toService(yield* orNotFound(row))
    }),
    create,
    update: Effect.fn("Services.update")((name, { expected_updated_at, ...patch }) =>
      change(
        name,
        "services:update",
        Effect.fnUntraced(function* (before) {
          yield* requireUnchanged(expected_updated_at, before)
          return yield* columnsOf(name, patch, before, yield* readCredential(before))
        }),
        patch.project_id
      )
    ),
    remove: Effect.fn("Services.remove")((name, { allowLastLinks = false } = {}) =>
      audit.mutate(function* ({ write }) {
        const before = yield* lockAny(name)
        if (!allowLastLinks) yield* refuseLastLinks(sql, name)
        const linkChanges = yield* linkedOwnerChanges(sql, name)
        yield* write`DELETE FROM service_registrations WHERE name = ${name}`
        return {
          result: undefined,
          auditAction: { target: "service", action: "services:delete" },
          targetId: name,
          snapshots: yield* snapshots(before, null),
          changes: [configuration, ...linkChanges]
        }
      })
    ),
    enable: Effect.fn("Services.enable")(enable),
    disable: Effect.fn("Services.disable")(disable)
  })
})

type Settings = Omit<NewService, "name"> & Omit<ServicePatch, "expected_updated_at">

/** `cleared` is true if the credential is removed, because the service's new address must not receive it. */
interface Assignments {
  readonly set: ColumnValues
  readonly cleared: boolean
}

const configuration: Change = { _tag: "Configuration" }

/** `null` in a request resets a field to its default here. */
const defaults = {
  health_check_method: "GET",
  timeout_ms: 60_000,
  max_body_bytes: 2_097_152,
  cost_mode: "none",
  allowed_methods: ["POST"]
} as const

const settingsColumns = (name: string, input: Settings): ColumnValues => {
  const set: Record<string, ColumnValues[string]> = {}
  for (const field of ["project_id", "studio_service_id", "health_check_path", "openapi_source_path"] as const) {
    if (input[field] !== undefined) set[field] = input[field]
  }
  if (input.estimated_cost_usd !== undefined) set["estimated_cost_usd"] = input.estimated_cost_usd
  for (const field of ["health_check_method", "timeout_ms", "max_body_bytes", "cost_mode"] as const) {
    if (input[field] !== undefined) set[field] = input[field] ?? defaults[field]
  }
  if (input.route_pattern !== undefined) set["route_pattern"] = input.route_pattern ?? defaultRoutePattern(name)
  if (input.allowed_methods !== undefined) set["allowed_methods"] = input.allowed_methods ?? defaults.allowed_methods
  if (input.fallback_services !== undefined) set["fallback_services"] = input.fallback_services ?? []
  if (input.sync_status !== undefined) set["sync_status"] = input.sync_status
  if (input.pricing_rules !== undefined) {
    set["pricing_rules"] = JSON.stringify((input.pricing_rules ?? []).map(ServiceValidation.toPricingRule))
  }
  if (input.openapi_endpoints !== undefined) {
    set["openapi_endpoints"] = JSON.stringify((input.openapi_endpoints ?? []).map(ServiceValidation.toEndpoint))
  }
  if (input.endpoint_pricing_rules !== undefined) {
    set["endpoint_pricing_rules"] = JSON.stringify(
      (input.endpoint_pricing_rules ?? []).map(ServiceValidation.toEndpointPricingRule)
    )
  }
  return set
}

/** Disabling a service again does not change `disabled_at`. */
const enabledColumns = (before: boolean, enabled: boolean): Effect.Effect<ColumnValues> =>
  enabled
    ? Effect.succeed({ enabled, disabled_at: null })
    : Effect.map(DateTime.now, (now) => ({
        enabled,
        ...(before && { disabled_at: DateTime.toDateUtc(now) })
      }))

const Time = Schema.NullOr(Schema.DateTimeUtcFromDate)

export const ServiceRow = Service.mapFields(Struct.omit(["missing_runtime_fields"])).pipe(
  Schema.fieldsAssign({ ...rowTimestamps, openapi_synced_at: Time, last_synced_at: Time, disabled_at: Time })
)

const serviceRows = storedRows(ServiceRow, { table: "service_registrations", key: ["name"] })
export const snapshots = Snapshots.of(ChangedService)

/** A service with status `incomplete` is reported as `synced` once no required field is missing. */
export const toService = (row: typeof ServiceRow.Type): Service => {
  const missing_runtime_fields = missingRuntimeFields({
    upstream: row.upstream_base_url !== null,
    credential: row.credential_configured
  })
  const complete = row.sync_status === "incomplete" && missing_runtime_fields.length === 0
  return { ...row, sync_status: complete ? "synced" : row.sync_status, missing_runtime_fields }
}

const toServiceOrUnreadable = (row: typeof ServiceRow.Type | Unreadable) => (isUnreadable(row) ? row : toService(row))

const orNotFound = <A>(row: A | undefined): Effect.Effect<A, Missing> =>
  row === undefined
    ? Effect.fail(new ControlError("missing_service", "There is no service of this name."))
    : Effect.succeed(row)

const invalid = (param: string, reason: string) =>
  new ControlError("invalid_service_payload", `${param} ${reason}.`, { param })

export const failOnDuplicate = <A, E, R>(statement: Effect.Effect<A, E, R>) =>
  onDuplicate(statement, (constraint) =>
    constraint.includes("studio_service_id")
      ? new ControlError(
          "duplicate_service",
          "Another service has this studio_service_id. Change that service, or choose another id.",
          {
            param: "studio_service_id"
          }
        )
      : new ControlError("duplicate_service", "Another service has this name.", { param: "name" })
  )
