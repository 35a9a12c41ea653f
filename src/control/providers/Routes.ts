import { Context, Effect, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { type Family, maxBodyBytes, maxTimeoutMs, RouteId } from "../../policy/routes/CanonicalRoute.ts"
import { Ownership } from "../../policy/routes/Ownership.ts"
import { Database } from "../../services/Database.ts"
import { Route, type RoutePatch } from "../api/providers/RoutesApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Unreadable } from "../api/schema/Fields.ts"
import { type Actor, Audit, type Deed, Mutation, Snapshots } from "../audit/Audit.ts"
import { type Refusal, refusedBeyond, where } from "../store/Rules.ts"
import { type Columns, rows, type StoreFailure, settled } from "../store/Store.ts"

type RouteDeed = Extract<Deed, { readonly target: "family_a_route" | "family_b_route" }>
type Invalid = Refused<"invalid_provider_config_payload">
type Changed = Effect.Effect<Route, Refused<"not_found"> | StoreFailure, Actor>

/** The ten canonical routes: whether they are open, how they are served, and their limits. */
export class Routes extends Context.Service<
  Routes,
  {
    readonly list: (family: Family) => Effect.Effect<ReadonlyArray<Route>, StoreFailure>
    readonly enable: (id: RouteId) => Changed
    /** Also a route whose row this version cannot read. */
    readonly disable: (id: RouteId) => Effect.Effect<Route | Unreadable, Refused<"not_found"> | StoreFailure, Actor>
    readonly setMode: (id: RouteId, mode: Route["mode"]) => Changed
    readonly configure: (
      id: RouteId,
      patch: RoutePatch & { readonly enabled?: boolean }
    ) => Effect.Effect<Route, Invalid | Effect.Error<Changed>, Actor>
    /** All ten, or none. */
    readonly configureAll: (
      patch: RoutePatch
    ) => Effect.Effect<ReadonlyArray<Route>, Invalid | Effect.Error<Changed>, Actor>
  }
>()("svc/control/Routes") {
  static readonly layer = Layer.suspend(() => Layer.effect(Routes, make))
}

const make = Effect.gen(function* () {
  const { sql, transaction } = yield* Database
  const audit = yield* Audit
  const columns = sql.literal(
    "route_id, route, enabled, mode, timeout_ms, max_request_body_bytes, max_response_body_bytes, limits_streams, ownership, updated_at"
  )

  const select = (id: RouteId) => sql`SELECT ${columns} FROM canonical_routes WHERE route_id = ${id} FOR UPDATE`

  /** The row before may be unreadable: what `set` names may be what mends it. `after` reads the row as it is then. */
  const change = <A extends Route | Unreadable, E>(
    id: RouteId,
    action: RouteDeed["action"],
    set: Columns,
    after: (rows: Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>) => Effect.Effect<A, E>
  ) =>
    audit.mutate(
      Effect.gen(function* () {
        const { write } = yield* Mutation
        const before = yield* found.firstOrUnreadable(select(id))
        const [row] = yield* sql<{ readonly family: string }>`
          SELECT family FROM canonical_routes WHERE route_id = ${id}`
        if (before === undefined || row === undefined) return yield* missing
        const changed = yield* after(
          Object.keys(set).length === 0
            ? select(id)
            : write`
                UPDATE canonical_routes SET ${sql.update(set)}, updated_at = now()
                WHERE route_id = ${id} RETURNING ${columns}`
        )
        return {
          result: changed,
          deed: { target: row.family === "b" ? "family_b_route" : "family_a_route", action },
          targetId: id,
          snapshots: yield* snapshots(before, changed),
          changes: [{ _tag: "Configuration" }]
        }
      })
    )

  const configure = Effect.fn("Routes.configure")(function* (
    id: RouteId,
    patch: RoutePatch & { readonly enabled?: boolean }
  ) {
    const wrong = refusals(id, patch).find(([, refusal]) => refusal !== undefined)
    if (wrong === undefined) {
      return yield* change(id, "policies:route_config_update", withStreamLimit(patch), found.only)
    }
    const [param, refusal] = wrong
    return yield* new ControlError("invalid_provider_config_payload", `${param} ${refusal}.`, { param })
  })

  return Routes.of({
    list: Effect.fn("Routes.list")(function* (family) {
      return yield* found.all(sql`SELECT ${columns} FROM canonical_routes WHERE family = ${family} ORDER BY route_id`)
    }, settled),
    enable: Effect.fn("Routes.enable")((id) => change(id, "policies:route_enable", { enabled: true }, found.only)),
    disable: Effect.fn("Routes.disable")((id) =>
      change(id, "policies:route_disable", { enabled: false }, (rows) =>
        Effect.flatMap(found.firstOrUnreadable(rows), (row) => (row === undefined ? missing : Effect.succeed(row)))
      )
    ),
    setMode: Effect.fn("Routes.setMode")((id, mode) => change(id, "policies:route_mode_update", { mode }, found.only)),
    configure,
    configureAll: Effect.fn("Routes.configureAll")((patch) =>
      Effect.forEach(RouteId.literals, (id) => configure(id, patch)).pipe(transaction, settled)
    )
  })
})

/**
 * A limit of answers that an operator sets counts for event streams too, and one that is taken back (`null`) does not,
 * unless the operator says otherwise.
 */
export const withStreamLimit = <
  A extends { readonly max_response_body_bytes?: number | null; readonly limits_streams?: boolean | null }
>(
  patch: A
): A =>
  patch.max_response_body_bytes === undefined || patch.limits_streams !== undefined
    ? patch
    : { ...patch, limits_streams: patch.max_response_body_bytes !== null }

const missing = new ControlError("not_found", "There is no route with this id.")

const refusals = (id: RouteId, patch: RoutePatch): ReadonlyArray<readonly [param: keyof RoutePatch, Refusal]> => [
  ["timeout_ms", where(patch.timeout_ms, refusedBeyond(maxTimeoutMs))],
  ["max_request_body_bytes", where(patch.max_request_body_bytes, refusedBeyond(maxBodyBytes))],
  ["max_response_body_bytes", where(patch.max_response_body_bytes, refusedBeyond(maxBodyBytes))],
  ["ownership", where(patch.ownership, refusedOwnership(id))]
]

const refusedOwnership =
  (id: RouteId) =>
  (word: string): Refusal => {
    if (!Ownership.literals.some((one) => one === word)) return `must be one of ${Ownership.literals.join(", ")}`
    // bodies name objects on every route that takes one
    return id !== "models" || word === "project" ? undefined : "is for routes that create, read or name objects"
  }

const found = rows(Route.pipe(Schema.fieldsAssign({ updated_at: Schema.DateTimeUtcFromDate })), {
  table: "canonical_routes",
  key: ["route_id"]
})
const snapshots = Snapshots.of(Route)
