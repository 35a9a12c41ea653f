import { Context, DateTime, Effect, Layer, Option, Schema, SubscriptionRef } from "effect"
import { Lifecycle } from "../../process/Lifecycle.ts"
import { Readiness } from "../../process/Readiness.ts"
import * as RunningProcesses from "../../process/RunningProcesses.ts"
import { Database } from "../../services/Database.ts"
import { Redis } from "../../services/Redis.ts"
import type { Inventory, System } from "../api/SystemApi.ts"
import { stateConditions } from "../keys/KeyList.ts"
import { InstallationOfEnvironment } from "../portal/InstallationFacts.ts"
import { Count, computedRows, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { WatchedBroker } from "./WatchedBroker.ts"

type Door = System["doors"][number]

/** What the process knows of itself when it starts. */
export interface OwnProcess {
  readonly role: string
  readonly host: string
  readonly pid: number
  readonly doors: ReadonlyArray<Pick<Door, "door" | "variant" | "lost_at_exit">>
}

export const OwnProcess = Context.Reference<OwnProcess>("svc/control/OwnProcess", {
  defaultValue: () => ({ role: "control", host: "", pid: process.pid, doors: [] })
})

/** Describes the processes of the installation, and the servers that they use. */
export class SystemFacts extends Context.Service<
  SystemFacts,
  {
    readonly show: Effect.Effect<System, StoreFailure>
    readonly inventory: Effect.Effect<Inventory, StoreFailure>
  }
>()("svc/control/SystemFacts") {
  static readonly layer = Layer.suspend(() => Layer.effect(SystemFacts, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const redis = yield* Redis
  const lifecycle = yield* Lifecycle
  const readiness = yield* Readiness
  const own = yield* OwnProcess
  const broker = yield* WatchedBroker
  const { environment, version } = yield* InstallationOfEnvironment

  const processes = RunningProcesses.list.pipe(
    Effect.map((found) =>
      found.map(({ seenAt, startedAt, ...process }) => ({
        ...process,
        started_at: DateTime.makeUnsafe(startedAt),
        seen_at: DateTime.makeUnsafe(seenAt),
        answers: process.host === own.host && process.pid === own.pid
      }))
    ),
    Effect.orElseSucceed(() => null),
    Effect.provideService(Redis, redis)
  )

  const migrations = toStoreFailures(
    migrationRows.all(
      sql`SELECT migration_id::int AS id, name, created_at AS applied_at FROM schema_migrations ORDER BY migration_id DESC`
    )
  )

  /** Counts rows up to one more than `mostCounted`. */
  const counted = (table: string, condition = "true") => sql`(SELECT count(*) FROM (
    SELECT 1 FROM ${sql(table)} WHERE ${sql.literal(condition)} LIMIT ${mostCounted + 1}) AS counted)`

  const inventory = Effect.map(
    countRows.only(sql`SELECT
      ${counted("api_keys", stateConditions.active)} AS keys,
      ${counted("policy_layers")} AS layers,
      ${counted("audit_events", "created_at >= now() - interval '24 hours'")} AS events,
      (SELECT count(*) FROM canonical_routes) AS routes,
      (SELECT count(*) FROM canonical_routes WHERE enabled) AS enabled_routes,
      (SELECT count(*) FROM service_registrations) AS services,
      (SELECT count(*) FROM service_registrations WHERE enabled) AS enabled_services`),
    ({ enabled_routes, enabled_services, events, keys, layers, routes, services }): Inventory => ({
      active_keys: Math.min(keys, mostCounted),
      active_keys_at_least: keys > mostCounted,
      policy_layers: Math.min(layers, mostCounted),
      policy_layers_at_least: layers > mostCounted,
      audit_events_of_day: Math.min(events, mostCounted),
      audit_events_of_day_at_least: events > mostCounted,
      routes: { enabled: enabled_routes, total: routes },
      services: { enabled: enabled_services, total: services }
    })
  )

  return SystemFacts.of({
    inventory: toStoreFailures(inventory).pipe(Effect.withSpan("SystemFacts.inventory")),
    show: Effect.gen(function* () {
      const { checks, dependencies = [], status } = yield* readiness
      const watched = [...dependencies, ...Option.toArray(yield* broker)]
      const doors = own.doors.map((door): Door => {
        const found = watched.find(({ name }) => name === door.door)
        return { ...door, reachable: found?.up ?? null, since: found?.since ?? null }
      })
      return {
        environment: Option.getOrNull(environment),
        role: own.role,
        version,
        node_version: process.versions.node,
        phase: yield* SubscriptionRef.get(lifecycle),
        status,
        checks,
        doors,
        data_lost_at_exit: doors.some(({ lost_at_exit }) => lost_at_exit),
        processes: yield* processes,
        migrations: yield* migrations
      }
    }).pipe(Effect.withSpan("SystemFacts.show"))
  })
})

/** Tables that may be large are counted up to this number. */
const mostCounted = 10_000

const countRows = computedRows(
  Schema.Struct({
    ...{ keys: Count, layers: Count, events: Count },
    ...{ routes: Count, enabled_routes: Count, services: Count, enabled_services: Count }
  })
)

const migrationRows = storedRows(
  Schema.Struct({ id: Schema.Int, name: Schema.String, applied_at: Schema.DateTimeUtcFromDate }),
  { table: "schema_migrations", key: ["id"] }
)
