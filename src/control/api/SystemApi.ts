import { Schema, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Sentence } from "./limits/LimitRaises.ts"
import { Id, Timestamp } from "./schema/Fields.ts"
import { operation } from "./schema/Security.ts"

const Phase = Schema.Literals(["starting", "serving", "draining", "retiring"]).annotate({
  description:
    "`draining`: the process stops and accepts no new work. `retiring`: another process has taken over its listeners."
})

/** A server or a variant inside the process that the answering process uses. */
export const SystemDoor = Schema.Struct({
  door: Schema.Literals(["database", "redis", "broker", "upstream"]),
  variant: Schema.String,
  /** True for a variant inside the process that keeps its data nowhere else. */
  lost_at_exit: Schema.Boolean,
  /** `null` where the process does not ask: the health of upstreams is at `provider-health`. */
  reachable: Schema.NullOr(Schema.Boolean),
  /** Since when it has been reachable, or not, as far as this process knows. */
  since: Schema.NullOr(Timestamp)
})

/** A process of the installation that has said within 30 seconds that it runs. */
export const SystemProcess = Schema.Struct({
  id: Schema.String,
  role: Schema.String,
  version: Schema.String,
  host: Schema.String,
  pid: Schema.Int,
  phase: Phase,
  started_at: Timestamp,
  seen_at: Timestamp,
  /** True for the process that answers. */
  answers: Schema.Boolean
})

export const SystemMigration = Schema.Struct({ id: Schema.Int, name: Schema.String, applied_at: Timestamp })

export const System = Schema.Struct({
  environment: Schema.NullOr(Schema.String),
  role: Schema.String,
  version: Schema.String,
  /** The version of Node.js. */
  node_version: Schema.String,
  phase: Phase,
  status: Schema.Literals(["ready", "degraded", "not_ready"]),
  /** The checks of `readyz`. */
  checks: Schema.Record(Schema.String, Schema.String),
  doors: Schema.Array(SystemDoor),
  /** True if a variant loses data when the process ends. */
  data_lost_at_exit: Schema.Boolean,
  /** `null` while Redis is unreachable. */
  processes: Schema.NullOr(Schema.Array(SystemProcess)),
  /** The migrations of the database, the latest first. */
  migrations: Schema.Array(SystemMigration)
})
export type System = typeof System.Type

const Enabled = Schema.Struct({ enabled: Schema.Int, total: Schema.Int })

/**
 * Counts the keys that may be used, the routes and services that are enabled, the policy layers, and the audit events of
 * the last 24 hours. Keys, layers and events are counted up to 10,000, and `…_at_least` is true if there are more.
 */
export const Inventory = Schema.Struct({
  active_keys: Schema.Int,
  active_keys_at_least: Schema.Boolean,
  policy_layers: Schema.Int,
  policy_layers_at_least: Schema.Boolean,
  audit_events_of_day: Schema.Int,
  audit_events_of_day_at_least: Schema.Boolean,
  routes: Enabled,
  services: Enabled
})
export type Inventory = typeof Inventory.Type

/** A process that an operator asked to drain. */
export const DrainedProcess = Schema.Struct({
  ...Struct.pick(SystemProcess.fields, ["id", "role", "version", "host", "pid"]),
  reason: Schema.String
}).annotate({ identifier: "DrainedProcess" })
export type DrainedProcess = typeof DrainedProcess.Type

export const SystemApi = HttpApiGroup.make("system")
  .annotate(OpenApi.Description, "The processes of the installation, and the servers that they use.")
  .add(
    HttpApiEndpoint.get("show", "/", { success: System })
      .annotateMerge(operation("Show the processes, the servers and the schema", "usage:read"))
      .annotate(OpenApi.Description, "`role` to `doors` are those of the process that answers."),
    HttpApiEndpoint.get("inventory", "/inventory", { success: Inventory }).annotateMerge(
      operation("Count keys, routes, services, policy layers and recent audit events", "usage:read")
    ),
    HttpApiEndpoint.post("drain", "/processes/:id/drain", {
      params: { id: Id },
      payload: Schema.Struct({ reason: Sentence }),
      success: DrainedProcess
    })
      .annotateMerge(operation("Drain a process", "settings:update"))
      .annotate(
        OpenApi.Description,
        "Does what SIGTERM does: within ten seconds readiness turns false, then the listeners close, workers take no more messages, what runs ends within its time, and the process ends. Whether another one takes its place is up to what has started it."
      )
  )
  .prefix("/system")
