import { Context, DateTime, Effect, Layer, Schema } from "effect"
import { Database } from "../../services/Database.ts"
import type { Change } from "../../state/Changes.ts"
import { Vault } from "../../state/Vault.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { isUnreadable, type Unreadable } from "../api/schema/Fields.ts"
import {
  Activation,
  type ImportRequest,
  Registration,
  RegistryDiff,
  type RegistryDraft,
  RegistrySnapshot,
  type ServiceSync
} from "../api/services/ServiceImportApi.ts"
import type { ChangedService } from "../api/services/ServicesApi.ts"
import { type Actor, Audit, Mutation, Snapshots } from "../audit/Audit.ts"
import * as CredentialOrigin from "../store/CredentialOrigin.ts"
import {
  type ColumnValues,
  Count,
  computedRows,
  lockProject,
  SkippedRows,
  type StoreFailure,
  storedRows,
  toStoreFailures
} from "../store/Rows.ts"
import * as RegistryPlan from "./RegistryPlan.ts"
import { linkedOwnerChanges } from "./ServiceLinks.ts"
import {
  credentialContext,
  failOnDuplicate,
  ServiceRow,
  serviceColumns,
  snapshots as serviceSnapshots,
  toService
} from "./Services.ts"

type Duplicate = Refused<"duplicate_service">
type Invalid = Refused<"invalid_service_payload" | "invalid_service_upstream" | "missing_project">
type Missing = Refused<"missing_service">

/** Imports single services from the studio, or replaces the whole list of services (the registry). */
export class ServiceImport extends Context.Service<
  ServiceImport,
  {
    /** Finds the service by `studio_service_id`, so importing twice is harmless. The audit event contains `action`. */
    readonly importOne: (
      request: ImportRequest,
      action: "import" | "sync"
    ) => Effect.Effect<ChangedService, Invalid | Duplicate | StoreFailure, Actor>
    readonly preview: (draft: RegistryDraft) => Effect.Effect<{ readonly diff: RegistryDiff }, StoreFailure>
    readonly activate: (
      draft: RegistryDraft
    ) => Effect.Effect<Activation, Refused<"invalid_service_payload"> | Duplicate | StoreFailure, Actor>
    readonly versions: (page: {
      readonly limit?: number
      readonly before?: number
    }) => Effect.Effect<ReadonlyArray<RegistrySnapshot>, StoreFailure>
    readonly rollback: (version: number) => Effect.Effect<Activation, Missing | Duplicate | StoreFailure, Actor>
    readonly status: (name: string) => Effect.Effect<ServiceSync, Missing | StoreFailure>
  }
>()("svc/control/ServiceImport") {
  static readonly layer = Layer.suspend(() => Layer.effect(ServiceImport, make))
}

const defaultSource = "admin-api"
const defaultVersions = 20

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const vault = yield* Vault
  const columns = sql.literal(serviceColumns)
  const snapshotColumns = sql.literal(
    "version, source, diff, services_json, activated_at, rolled_back_from_version, created_at"
  )

  /** Services whose rows this version cannot decode stay unchanged. The response names these services. */
  const readRegistry = Effect.gen(function* () {
    const names: Array<string> = []
    const statement = sql`SELECT ${columns} FROM service_registrations ORDER BY name`
    const stored = yield* Effect.provideService(serviceRows.all(statement), SkippedRows, names)
    const unreadable =
      names.length === 0
        ? []
        : yield* unreadableServices.all(
            sql`SELECT name, studio_service_id FROM service_registrations WHERE ${sql.in("name", names)}`
          )
    const answered = yield* SkippedRows
    answered?.push(...names.filter((name) => !answered.includes(name)))
    return { services: stored.map(toService), unreadable }
  })
  /** Blocks changes to services until the commit. Call `lockProject` before this, never after, to prevent deadlocks. */
  const lockRegistry = Effect.andThen(sql`LOCK TABLE service_registrations IN SHARE ROW EXCLUSIVE MODE`, readRegistry)

  const knownProjects = (ids: ReadonlyArray<string | null | undefined>) => {
    const distinctIds = [...new Set(ids.filter((id) => typeof id === "string"))]
    return distinctIds.length === 0
      ? Effect.succeed(new Set<string>())
      : Effect.map(
          sql<{ readonly id: string }>`SELECT id FROM projects WHERE ${sql.in("id", distinctIds)} FOR KEY SHARE`,
          (projects) => new Set(projects.map(({ id }) => id))
        )
  }

  /** After a rename, updates fallback lists and encrypts the credential again under the new name. */
  const renameReferences = Effect.fnUntraced(function* (from: string, to: string) {
    const { write } = yield* Mutation
    yield* write`
      UPDATE service_registrations SET fallback_services = array_replace(fallback_services, ${from}, ${to}), updated_at = now()
      WHERE ${from} = ANY(fallback_services)`
    const [row] = yield* sql<{ readonly sealed: string | null }>`
      SELECT sealed_credential AS sealed FROM service_registrations WHERE name = ${to}`
    if (row !== undefined && row.sealed !== null) {
      // A credential that cannot be decrypted is removed here. It was already unusable before the rename.
      const sealed = yield* vault.open(row.sealed, credentialContext(from)).pipe(
        Effect.map((credential) => vault.seal(credential, credentialContext(to))),
        Effect.catchTag("UnreadableSecret", () => Effect.succeed(null))
      )
      yield* write`UPDATE service_registrations SET sealed_credential = ${sealed} WHERE name = ${to}`
    }
    return yield* linkedOwnerChanges(sql, to)
  })

  /** Decides whether the credential may stay when the address changes. */
  const credentialAfter = Effect.fnUntraced(function* (
    before: NonNullable<RegistryPlan.RegistryStep["before"]>,
    address: string | null
  ) {
    const stored = yield* CredentialOrigin.stored(
      sql`SELECT credential_origin FROM service_registrations WHERE name = ${before.name}`,
      { address: before.upstream_base_url, configured: before.credential_configured }
    )
    return CredentialOrigin.outcomeOf({ before: stored, address, sealed: undefined })
  })

  /** Writes one service. Returns notices for linked keys and projects, and whether the credential was removed. */
  const applyStep = Effect.fnUntraced(function* (step: RegistryPlan.RegistryStep, now: Date) {
    const { write } = yield* Mutation
    const { after, before } = step
    const touched = after.source === "studio" && after.sync_status !== "stale" ? { last_synced_at: now } : {}
    if (before === undefined) {
      yield* write`INSERT INTO service_registrations ${sql.insert({ ...columnsOf(after), ...enabledColumns(step, now), ...touched })}`
      return { changes: [], cleared: false }
    }
    const moves = before.upstream_base_url !== after.upstream_base_url
    const { cleared, stored } = moves
      ? yield* credentialAfter(before, after.upstream_base_url)
      : { cleared: false, stored: undefined }
    const credential = stored && { sealed_credential: stored.sealed, credential_origin: stored.credential_origin }
    yield* write`
      UPDATE service_registrations
      SET ${sql.update({ ...columnsOf(after), ...enabledColumns(step, now), ...touched, ...credential })}, updated_at = now()
      WHERE name = ${before.name}`
    return { changes: before.name === after.name ? [] : yield* renameReferences(before.name, after.name), cleared }
  }, failOnDuplicate)

  const importOne = Effect.fn("ServiceImport.one")(function* (request: ImportRequest, action: "import" | "sync") {
    return yield* audit.mutate(function* () {
      yield* lockProject(sql, request.project_id)
      const { services: all, unreadable } = yield* lockRegistry
      const entry = withoutNulls(request)
      if (RegistryPlan.unrelatedTo(unreadable, [entry]).length === 0) return yield* unreadableService
      const before = RegistryPlan.matchingService(all, entry)
      const conflict = RegistryPlan.nameConflict(all, entry, before)
      const violation = RegistryPlan.findViolation(entry, conflict === undefined ? before : undefined)
      if (violation !== undefined) return yield* violationError(violation.param, violation.reason)
      if (conflict !== undefined)
        return yield* new ControlError("duplicate_service", `name ${conflict.reason}.`, { param: "name" })
      if (entry.project_id && !(yield* knownProjects([entry.project_id])).has(entry.project_id)) {
        return yield* new ControlError("missing_project", "There is no project with this id.", {
          param: "project_id"
        })
      }
      const after = RegistryPlan.toRegistration(entry, before)
      const { changes, cleared } = yield* applyStep({ before, after }, yield* now)
      const service = withClearedFlag(
        toService(
          yield* serviceRows.only(sql`SELECT ${columns} FROM service_registrations WHERE name = ${after.name}`)
        ),
        cleared
      )
      return {
        result: service,
        auditAction: { target: "service", action: `services:${action}` } as const,
        targetId: service.name,
        snapshots: yield* serviceSnapshots(before ?? null, service),
        changes: [configuration, ...changes]
      }
    })
  })

  /** Writes all steps and stores the resulting list of services as the next version. */
  const applyPlan = Effect.fnUntraced(function* (
    plan: RegistryPlan.Plan,
    version: { readonly source: string; readonly rolledBackFrom: number | null }
  ) {
    const { write } = yield* Mutation
    const at = yield* now
    const steps = yield* Effect.forEach(plan.steps.filter(mustWrite), (step) =>
      Effect.map(applyStep(step, at), (done) => ({ ...done, name: step.after.name }))
    )
    const cleared = new Set(steps.flatMap((step) => (step.cleared ? [step.name] : [])))
    const { services: after } = yield* readRegistry
    const snapshot = yield* snapshotRows.only(write`
      INSERT INTO service_registry_snapshots ${sql.insert({
        source: version.source,
        diff: JSON.stringify(yield* encodeDiff(plan.diff)),
        services_json: JSON.stringify(yield* encodeRegistrations(after.map(RegistryPlan.registrationOf))),
        rolled_back_from_version: version.rolledBackFrom
      })} RETURNING ${snapshotColumns}`)
    const activation = {
      snapshot,
      services: after.map((service) => withClearedFlag(service, cleared.has(service.name)))
    }
    return { activation, changes: [configuration, ...steps.flatMap((step) => step.changes)] }
  })

  const latest = Effect.map(
    snapshotRows.firstOrUnreadable(
      sql`SELECT ${snapshotColumns} FROM service_registry_snapshots ORDER BY version DESC LIMIT 1`
    ),
    (snapshot) => snapshot ?? null
  )

  const activate = Effect.fn("ServiceImport.activate")(({ services: entries, source = defaultSource }: RegistryDraft) =>
    audit.mutate(function* () {
      const projects = yield* knownProjects(entries.map(({ project_id }) => project_id))
      const { services: before, unreadable } = yield* lockRegistry
      const plan = RegistryPlan.ofEntries(before, RegistryPlan.unrelatedTo(unreadable, entries), projects)
      const [firstInvalid] = plan.diff.invalid
      if (firstInvalid !== undefined) {
        const others = plan.diff.invalid.length - 1
        return yield* new ControlError(
          "invalid_service_payload",
          `${firstInvalid.service_name}: ${firstInvalid.message}${others === 0 ? "" : ` ${others} more entries are invalid: see the preview.`}`,
          { param: firstInvalid.field }
        )
      }
      const previousSnapshot = yield* latest
      const { activation, changes } = yield* applyPlan(plan, { source, rolledBackFrom: null })
      return {
        result: activation,
        auditAction: { target: "service_registry", action: "services:import_activate" },
        targetId: String(activation.snapshot.version),
        snapshots: yield* activationSnapshots(previousActivation(previousSnapshot, before), activation),
        changes
      }
    })
  )

  const rollback = Effect.fn("ServiceImport.rollback")((version: number) =>
    audit.mutate(function* () {
      const target = yield* snapshotRows.first(
        sql`SELECT ${snapshotColumns} FROM service_registry_snapshots WHERE version = ${version}`
      )
      if (target === undefined) {
        return yield* new ControlError("missing_service", "There is no registry version with this number.")
      }
      const projects = yield* knownProjects(target.services_json.map(({ project_id }) => project_id))
      const { services: before, unreadable } = yield* lockRegistry
      const plan = RegistryPlan.ofSnapshot(before, RegistryPlan.unrelatedTo(unreadable, target.services_json), projects)
      const previousSnapshot = yield* latest
      const { activation, changes } = yield* applyPlan(plan, { source: target.source, rolledBackFrom: version })
      return {
        result: activation,
        auditAction: { target: "service_registry", action: "services:import_rollback" },
        targetId: String(activation.snapshot.version),
        snapshots: yield* activationSnapshots(previousActivation(previousSnapshot, before), activation),
        changes
      }
    })
  )

  return ServiceImport.of({
    importOne,
    preview: Effect.fn("ServiceImport.preview")(function* ({ services: entries }) {
      const projects = yield* knownProjects(entries.map(({ project_id }) => project_id))
      const { services, unreadable } = yield* readRegistry
      return { diff: RegistryPlan.ofEntries(services, RegistryPlan.unrelatedTo(unreadable, entries), projects).diff }
    }, toStoreFailures),
    activate,
    versions: Effect.fn("ServiceImport.versions")(
      ({ before = Number.MAX_SAFE_INTEGER, limit = defaultVersions }) =>
        snapshotRows.all(sql`
          SELECT ${snapshotColumns} FROM service_registry_snapshots WHERE version < ${before}
          ORDER BY version DESC LIMIT ${limit}`),
      toStoreFailures
    ),
    rollback,
    status: Effect.fn("ServiceImport.status")(function* (name) {
      const row = yield* toStoreFailures(
        serviceRows.first(sql`SELECT ${columns} FROM service_registrations WHERE name = ${name}`)
      )
      if (row === undefined) {
        return yield* new ControlError("missing_service", "There is no service of this name.")
      }
      const { missing_runtime_fields, openapi_schema_hash, openapi_source_path, openapi_synced_at, ...service } =
        toService(row)
      const { last_synced_at, source, studio_service_id, sync_status } = service
      return {
        service_name: name,
        source,
        studio_service_id,
        sync_status,
        last_synced_at,
        missing_runtime_fields,
        openapi_source_path,
        openapi_schema_hash,
        openapi_synced_at
      }
    })
  })
})

const configuration: Change = { _tag: "Configuration" }

const serviceRows = storedRows(ServiceRow, { table: "service_registrations", key: ["name"] })
const unreadableServices = computedRows(
  Schema.Struct({ name: Schema.String, studio_service_id: Schema.NullOr(Schema.String) })
)

const withClearedFlag = (service: ChangedService, cleared: boolean): ChangedService =>
  cleared ? { ...service, credential_cleared: true } : service

const snapshotRows = storedRows(
  RegistrySnapshot.pipe(
    Schema.fieldsAssign({
      version: Count,
      rolled_back_from_version: Schema.NullOr(Count),
      services_json: Schema.toCodecJson(Schema.Array(Registration)),
      activated_at: Schema.DateTimeUtcFromDate,
      created_at: Schema.DateTimeUtcFromDate
    })
  ),
  { table: "service_registry_snapshots", key: ["version"] }
)

const encodeDiff = Schema.encodeEffect(RegistryDiff)
const encodeRegistrations = Schema.encodeEffect(Schema.toCodecJson(Schema.Array(Registration)))
const activationSnapshots = Snapshots.of(Activation)

/** Returns the previous state for the audit event, or `null` if there was no version. */
const previousActivation = (
  version: RegistrySnapshot | Unreadable | null,
  services: (typeof Activation.Type)["services"]
) => (version === null || isUnreadable(version) ? version : { snapshot: version, services })

const now = Effect.map(DateTime.now, DateTime.toDateUtc)

/** Services of the studio are written even if unchanged, to record the time of the synchronisation. */
const mustWrite = (step: RegistryPlan.RegistryStep): boolean =>
  RegistryPlan.isChange(step) || (step.after.source === "studio" && step.after.sync_status !== "stale")

/** In an import request `null` has the same effect as an absent field. */
const withoutNulls = ({ default_pricing, name, studio_service_id, ...rest }: ImportRequest) => ({
  name,
  studio_service_id,
  ...(default_pricing && { default_pricing }),
  ...(rest.project_id && { project_id: rest.project_id }),
  ...(rest.route_pattern && { route_pattern: rest.route_pattern }),
  ...(rest.upstream_base_url && { upstream_base_url: rest.upstream_base_url }),
  ...(rest.health_check_path && { health_check_path: rest.health_check_path }),
  ...(rest.health_check_method && { health_check_method: rest.health_check_method }),
  ...(rest.allowed_methods && { allowed_methods: rest.allowed_methods })
})

const columnsOf = ({
  enabled: _,
  endpoint_pricing_rules,
  openapi_endpoints,
  openapi_synced_at,
  pricing_rules,
  ...plain
}: Registration): ColumnValues => ({
  ...plain,
  openapi_synced_at: openapi_synced_at && DateTime.toDateUtc(openapi_synced_at),
  openapi_endpoints: JSON.stringify(openapi_endpoints),
  pricing_rules: JSON.stringify(pricing_rules),
  endpoint_pricing_rules: JSON.stringify(endpoint_pricing_rules)
})

/** Disabling a service again does not change `disabled_at`. */
const enabledColumns = ({ after: { enabled }, before }: RegistryPlan.RegistryStep, now: Date): ColumnValues => {
  if (enabled) return { enabled, disabled_at: null }
  return before === undefined || before.enabled ? { enabled, disabled_at: now } : { enabled }
}

const violationError = (param: string, reason: string) =>
  param === "upstream_base_url"
    ? new ControlError("invalid_service_upstream", `${param} ${reason}.`, { param })
    : new ControlError("invalid_service_payload", `${param} ${reason}.`, { param })

const unreadableService = new ControlError(
  "store_unavailable",
  "This version of the gateway cannot decode the stored service with this name or studio_service_id. A newer version may have written it. Import with that version."
)
