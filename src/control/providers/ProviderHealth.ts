import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { Provider } from "../../policy/routes/CanonicalRoute.ts"
import {
  authorizationBearer,
  credentialField,
  styleColumns,
  styleOf,
  styleOfFamily
} from "../../policy/routes/CredentialStyle.ts"
import { type ServedFamilies, type StartupUpstream, StartupUpstreams } from "../../policy/routes/StartupUpstreams.ts"
import { credentialFor, originOf } from "../../policy/routes/StoredCredential.ts"
import * as UpstreamBase from "../../policy/routes/UpstreamBase.ts"
import { servedFamilies, Vendor } from "../../policy/routes/Vendor.ts"
import { Database } from "../../services/Database.ts"
import { Upstream } from "../../services/Upstream.ts"
import { open } from "../../state/SealedCredential.ts"
import { Vault } from "../../state/Vault.ts"
import {
  HealthResults,
  HealthState,
  type NewHealthState,
  ObservedHealth,
  type ObservedQuery
} from "../api/providers/ProviderHealthApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { isUnreadable, type Unreadable } from "../api/schema/Fields.ts"
import type { Operator } from "../api/schema/Security.ts"
import { HealthMethod } from "../api/services/ServicesApi.ts"
import { type Actor, Audit, Mutation, Snapshots } from "../audit/Audit.ts"
import { credentialContext } from "../services/Services.ts"
import { BoundedQueries } from "../store/BoundedQueries.ts"
import { Count, computedRows, SkippedRows, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import * as HealthCheck from "./HealthCheck.ts"
import * as HealthMetrics from "./HealthMetrics.ts"

/** Reports the health of providers and services, from active checks and from usage records. */
export class ProviderHealth extends Context.Service<
  ProviderHealth,
  {
    /**
     * Counts the requests that were sent on, by service, or by provider without a service. What the gateway refused, or
     * did to a response, says nothing of them. Default range: the last 24 hours.
     */
    readonly observed: (
      query: ObservedQuery
    ) => Effect.Effect<ReadonlyArray<ObservedHealth>, Refused<"invalid_usage_query"> | StoreFailure, Operator>
    readonly states: Effect.Effect<ReadonlyArray<HealthState>, StoreFailure>
    readonly put: (state: NewHealthState) => Effect.Effect<HealthState, StoreFailure, Actor>
    /** Checks all enabled provider rows, enabled services and the upstreams from the environment that are in use. */
    readonly check: Effect.Effect<HealthResults, StoreFailure, Actor>
  }
>()("svc/control/ProviderHealth") {
  static readonly layer = Layer.suspend(() => Layer.effect(ProviderHealth, make))
}

const concurrentChecks = 32
const maxNames = 1000
const dayMs = 86_400_000

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const { runBounded } = yield* BoundedQueries
  const audit = yield* Audit
  const vault = yield* Vault
  const upstream = yield* Upstream
  const startup = yield* StartupUpstreams
  const recordMetrics = HealthMetrics.make()
  const columns = sql.literal(
    `name, provider, status, circuit_state, active_check_ok, passive_success_count, passive_failure_count,
     consecutive_failures, average_latency_ms, last_error_code, cooldown_until, checked_at, status_since, updated_at`
  )

  const lock = (provider: string, name: string) =>
    Effect.map(
      stateRows.firstOrUnreadable(
        sql`SELECT ${columns} FROM provider_health_states WHERE provider = ${provider} AND name = ${name} FOR UPDATE`
      ),
      (row) => row ?? null
    )

  const upsertState = Effect.fnUntraced(function* (state: WrittenState) {
    const { write } = yield* Mutation
    const { name, provider, ...rest } = state
    const set = {
      ...rest,
      cooldown_until: rest.cooldown_until && DateTime.toDateUtc(rest.cooldown_until),
      checked_at: rest.checked_at && DateTime.toDateUtc(rest.checked_at)
    }
    return yield* stateRows.only(write`
      INSERT INTO provider_health_states ${sql.insert({ name, provider, ...set })}
      ON CONFLICT (provider, name) DO UPDATE SET ${sql.update(set)}, updated_at = now()
      RETURNING ${columns}`)
  })

  /** Returns `undefined` if the credential cannot be decrypted or was stored for another origin. */
  const openCredential = Effect.fnUntraced(function* (row: Sealed, address: string | null, context: string) {
    if (address === null) return undefined
    const secret = yield* Effect.provideService(open(row.sealed_credential, context), Vault, vault)
    const resolved = credentialFor(originOf(address), { secret, origin: row.credential_origin })
    return resolved._tag === "Present" ? resolved.credential : undefined
  })

  const providers = Effect.gen(function* () {
    const enabledRows = yield* providerRows.all(sql`
      SELECT id, provider, name, base_url, family, sealed_credential, credential_origin, credential_header_mode, credential_header_name,
        credential_header_value_format FROM provider_configs WHERE enabled ORDER BY provider, name`)
    const rows = yield* Effect.forEach(enabledRows, (row) =>
      Effect.map(
        openCredential(row, row.base_url, `provider_configs/${row.id}`),
        (credential): CheckSubject => ({
          provider: row.provider,
          name: row.name,
          probe: {
            ...(row.provider === "upstream"
              ? modelListProbe(UpstreamBase.of(row.base_url), servedFamilies(row.family))
              : rootProbe),
            baseUrl: row.base_url,
            credential: credential === undefined ? [] : credentialField(styleOf(row), credential)
          }
        })
      )
    )
    const served = new Set(
      enabledRows.flatMap(({ family, provider }) => (provider === "upstream" ? [servedFamilies(family)] : []))
    )
    return [...rows, ...activeStartupUpstreams(served).map(([serves, upstream]) => startupSubject(serves, upstream))]
  })

  /** Returns the upstreams from the environment that no enabled provider row replaces. The simulator is left out. */
  const activeStartupUpstreams = (
    rows: ReadonlySet<ServedFamilies>
  ): ReadonlyArray<readonly [ServedFamilies, StartupUpstream]> => {
    const uncovered = (["a", "b"] as const).filter((family) => !rows.has(family) && !rows.has("both"))
    const withOwnUpstream = uncovered.filter((family) => Option.isSome(startup[family]))
    const servedFamilies: ReadonlyArray<ServedFamilies> =
      uncovered.length > withOwnUpstream.length ? ["both", ...withOwnUpstream] : withOwnUpstream
    return servedFamilies.flatMap((serves) =>
      Option.toArray(startup[serves])
        .filter(({ name }) => name !== "simulator")
        .map((upstream) => [serves, upstream] as const)
    )
  }

  const services = Effect.gen(function* () {
    const enabledRows = yield* serviceRows.all(sql`
      SELECT name, upstream_base_url, sealed_credential, credential_origin, health_check_path, health_check_method
      FROM service_registrations WHERE enabled ORDER BY name`)
    return yield* Effect.forEach(enabledRows, (row) =>
      Effect.map(
        openCredential(row, row.upstream_base_url, credentialContext(row.name)),
        (credential): CheckSubject => ({
          provider: "internal-service",
          name: row.name,
          probe: {
            baseUrl: row.upstream_base_url ?? undefined,
            method: row.health_check_method,
            path: row.health_check_path ?? "/",
            expects: row.health_check_path === null ? "answer" : "success",
            headers: [],
            credential: credential === undefined ? [] : credentialField(authorizationBearer, credential)
          }
        })
      )
    )
  })

  return ProviderHealth.of({
    observed: Effect.fn("ProviderHealth.observed")(function* ({ from, to }) {
      const until = to ?? (yield* DateTime.now)
      const since = from ?? DateTime.subtract(until, { milliseconds: dayMs })
      if (!DateTime.isLessThan(since, until)) {
        return yield* new ControlError("invalid_usage_query", "from must be earlier than to.", { param: "from" })
      }
      // Without `to` there is no upper bound, so that records written during the query are counted.
      const before = to === undefined ? sql`true` : sql`created_at < ${DateTime.toDateUtc(until)}`
      return yield* runBounded(() =>
        observationRows.all(sql`
        SELECT coalesce(service_name, provider) AS name, count(*) AS request_count,
          count(*) FILTER (WHERE error_code LIKE 'upstream%' OR error_code IS NULL AND status_code >= 400) AS error_count,
          count(*) FILTER (WHERE status_code = 504) AS timeout_count,
          coalesce(sum(fallback_count), 0)::bigint AS fallback_count,
          coalesce(sum(latency_ms), 0)::bigint AS total_latency_ms
        FROM usage_events WHERE created_at >= ${DateTime.toDateUtc(since)} AND ${before}
          AND (upstream_ms IS NOT NULL OR error_code LIKE 'upstream%')
        GROUP BY 1 ORDER BY 1 LIMIT ${maxNames}`)
      )
    }, toStoreFailures),

    states: stateRows
      .all(sql`SELECT ${columns} FROM provider_health_states ORDER BY provider, name`)
      .pipe(toStoreFailures, Effect.withSpan("ProviderHealth.states")),

    put: Effect.fn("ProviderHealth.put")(function* (state) {
      const recorded = yield* audit.mutate(function* () {
        const { name, provider } = state
        const before = yield* lock(provider, name)
        const { status_since: _, updated_at: _1, ...fields } = state
        const after = yield* upsertState({ ...unknownState, ...fields })
        return {
          result: { before: readableOrNull(before), after },
          auditAction: { target: "provider_health", action: "providers:health_update" },
          targetId: `${provider}/${name}`,
          snapshots: yield* stateSnapshots(before, after),
          changes: []
        }
      })
      yield* recordMetrics(recorded)
      return recorded.after
    }),

    check: Effect.gen(function* () {
      const subjects = yield* toStoreFailures(
        Effect.provideService(
          Effect.zipWith(providers, services, (a, b) => [...a, ...b]),
          SkippedRows,
          []
        )
      )
      // A provider row with the name of a service is not checked, because requests go to the service.
      const subjectsByName = new Map(subjects.map((subject) => [`${subject.provider}/${subject.name}`, subject]))
      const checked = yield* Effect.forEach(
        subjectsByName.values(),
        (subject) => Effect.map(HealthCheck.check(subject.probe), (outcome) => ({ ...subject, outcome })),
        { concurrency: concurrentChecks }
      ).pipe(Effect.provideService(Upstream, upstream))
      const now = yield* DateTime.now
      const recorded = yield* audit.mutate(function* () {
        const changed = yield* Effect.forEach(
          checked,
          Effect.fnUntraced(function* ({ name, outcome, provider }) {
            const before = readableOrNull(yield* lock(provider, name))
            return {
              before,
              after: yield* upsertState(nextState({ ...unknownState, ...before, name, provider }, outcome, now))
            }
          })
        )
        return {
          result: changed,
          auditAction: { target: "provider_health", action: "providers:health_check" },
          targetId: "all",
          snapshots: yield* resultSnapshots(null, { results: changed.map(({ after }) => after) }),
          changes: []
        }
      })
      yield* Effect.forEach(recorded, recordMetrics, { discard: true })
      return { results: recorded.map(({ after }) => after) }
    }).pipe(Effect.withSpan("ProviderHealth.check"))
  })
})

/** A state that cannot be decoded is treated as missing and replaced. */
const readableOrNull = (state: HealthState | Unreadable | null): HealthState | null =>
  state === null || isUnreadable(state) ? null : state

/** Every model API has a model list. The status of the response also shows whether the credential is accepted. */
const modelListProbe = (base: UpstreamBase.UpstreamBase, serves: ServedFamilies) =>
  ({
    method: "GET",
    path: UpstreamBase.targetAt(base, "/v1/models") ?? "/",
    headers: serves === "b" ? ["anthropic-version", "2023-06-01"] : [],
    expects: "answer"
  }) as const

const rootProbe = { method: "GET", path: "/", headers: [], expects: "answer" } as const

const startupSubject = (serves: ServedFamilies, { base, name, serviceKey }: StartupUpstream): CheckSubject => ({
  provider: "upstream",
  name,
  probe: {
    ...modelListProbe(base, serves),
    baseUrl: base.origin,
    credential: Option.match(serviceKey, {
      onNone: () => [],
      onSome: (key) => credentialField(serves === "both" ? authorizationBearer : styleOfFamily[serves], key)
    })
  }
})

/** The database tells both times. */
type WrittenState = Omit<HealthState, "status_since" | "updated_at">

interface CheckSubject {
  readonly provider: HealthState["provider"]
  readonly name: string
  readonly probe: HealthCheck.Probe
}

const unknownState = {
  status: "unknown",
  circuit_state: "closed",
  active_check_ok: null,
  passive_success_count: 0,
  passive_failure_count: 0,
  consecutive_failures: 0,
  average_latency_ms: null,
  last_error_code: null,
  cooldown_until: null,
  checked_at: null
} as const

/** The weight of the newest latency in the exponential moving average. */
const latencyWeight = 0.2

const nextState = (
  before: WrittenState,
  { errorCode, latencyMs, status }: HealthCheck.HealthCheckResult,
  now: DateTime.Utc
): WrittenState => {
  const { average_latency_ms: average } = before
  const ok = status !== "unhealthy"
  return {
    name: before.name,
    provider: before.provider,
    status,
    // A failed check does not change the circuit. Requests continue in any case.
    circuit_state: ok ? "closed" : before.circuit_state,
    active_check_ok: ok,
    passive_success_count: before.passive_success_count,
    passive_failure_count: before.passive_failure_count,
    consecutive_failures: ok ? 0 : before.consecutive_failures + 1,
    average_latency_ms:
      latencyMs === undefined
        ? average
        : average === null
          ? latencyMs
          : average + latencyWeight * (latencyMs - average),
    last_error_code: errorCode ?? null,
    cooldown_until: ok ? null : before.cooldown_until,
    checked_at: now
  }
}

const Text = Schema.NullOr(Schema.String)

const sealedColumns = { sealed_credential: Text, credential_origin: Text }
const Sealed = Schema.Struct(sealedColumns)
type Sealed = typeof Sealed.Type

const ProviderRow = Schema.Struct({
  id: Schema.String,
  provider: Provider,
  name: Schema.String,
  base_url: Schema.String,
  family: Schema.NullOr(Vendor),
  ...sealedColumns,
  ...styleColumns
})

const ServiceRow = Schema.Struct({
  name: Schema.String,
  upstream_base_url: Text,
  ...sealedColumns,
  health_check_path: Text,
  health_check_method: HealthMethod
})

const Time = Schema.NullOr(Schema.DateTimeUtcFromDate)

const stateRows = storedRows(
  HealthState.pipe(
    Schema.fieldsAssign({
      passive_success_count: Count,
      passive_failure_count: Count,
      consecutive_failures: Count,
      cooldown_until: Time,
      checked_at: Time,
      status_since: Time,
      updated_at: Schema.DateTimeUtcFromDate
    })
  ),
  { table: "provider_health_states", key: ["provider", "name"] }
)
const providerRows = storedRows(ProviderRow, { table: "provider_configs", key: ["id"] })
const serviceRows = storedRows(ServiceRow, { table: "service_registrations", key: ["name"] })
const observationRows = computedRows(
  ObservedHealth.pipe(
    Schema.fieldsAssign({
      request_count: Count,
      error_count: Count,
      timeout_count: Count,
      fallback_count: Count,
      total_latency_ms: Count
    })
  )
)

const stateSnapshots = Snapshots.of(HealthState)
const resultSnapshots = Snapshots.of(HealthResults)
