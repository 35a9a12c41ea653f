import { Context, Effect, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { type Family, maxBodyBytes, maxTimeoutMs, RouteId } from "../../policy/routes/CanonicalRoute.ts"
import { Ownership } from "../../policy/routes/Ownership.ts"
import { Database } from "../../services/Database.ts"
import { type AllRoutesPatch, Route, type RoutePatch, type SingleRoutePatch } from "../api/providers/RoutesApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Unreadable } from "../api/schema/Fields.ts"
import { type Actor, Audit, type AuditAction, Snapshots } from "../audit/Audit.ts"
import { requireUnchanged } from "../store/Precondition.ts"
import { type ColumnValues, computedRows, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { ifPresent, type Violation, validateUpTo } from "../store/Validation.ts"

type RouteAction = Extract<AuditAction, { readonly target: "family_a_route" | "family_b_route" }>
type Invalid = Refused<"invalid_provider_config_payload">
type RouteMutation = Effect.Effect<Route, Refused<"not_found"> | StoreFailure, Actor>

/** Stores the settings of the ten fixed routes of the proxy listener. */
export class Routes extends Context.Service<
  Routes,
  {
    readonly list: (family: Family) => Effect.Effect<ReadonlyArray<Route>, StoreFailure>
    readonly enable: (id: RouteId) => RouteMutation
    /** Also disables a route whose row this version cannot decode. */
    readonly disable: (id: RouteId) => Effect.Effect<Route | Unreadable, Refused<"not_found"> | StoreFailure, Actor>
    readonly setMode: (id: RouteId, mode: Route["mode"]) => RouteMutation
    readonly configure: (
      id: RouteId,
      patch: SingleRoutePatch & { readonly enabled?: boolean }
    ) => Effect.Effect<Route, Invalid | Refused<"changed_since_read"> | Effect.Error<RouteMutation>, Actor>
    /** Changes all ten routes or, on failure, none. */
    readonly configureAll: (
      patch: AllRoutesPatch
    ) => Effect.Effect<
      ReadonlyArray<Route>,
      Invalid | Refused<"changed_since_read"> | Effect.Error<RouteMutation>,
      Actor
    >
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

  const selectForUpdate = (id: RouteId) =>
    sql`SELECT ${columns} FROM canonical_routes WHERE route_id = ${id} FOR UPDATE`

  /**
   * This also works if this version cannot decode the stored row, because `set` may repair the row. `check` may refuse
   * the change once the row is locked.
   */
  const change = <A extends Route | Unreadable, E, Refusal = never>(
    id: RouteId,
    action: RouteAction["action"],
    set: ColumnValues,
    after: (rows: Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>) => Effect.Effect<A, E>,
    check: (row: LockedRow) => Effect.Effect<void, Refusal> = () => Effect.void
  ) =>
    audit.mutate(function* ({ write }) {
      const before = yield* routeRows.firstOrUnreadable(selectForUpdate(id))
      const [row] = yield* lockedRows.all(sql`SELECT family, updated_at FROM canonical_routes WHERE route_id = ${id}`)
      if (before === undefined || row === undefined) return yield* routeNotFound
      yield* check(row)
      const changed = yield* after(
        Object.keys(set).length === 0
          ? selectForUpdate(id)
          : write`
              UPDATE canonical_routes SET ${sql.update(set)}, updated_at = now()
              WHERE route_id = ${id} RETURNING ${columns}`
      )
      return {
        result: changed,
        auditAction: { target: row.family === "b" ? "family_b_route" : "family_a_route", action },
        targetId: id,
        snapshots: yield* snapshots(before, changed),
        changes: [{ _tag: "Configuration" }]
      }
    })

  const configure = Effect.fn("Routes.configure")(function* <Refusal = never>(
    id: RouteId,
    patch: RoutePatch & { readonly enabled?: boolean },
    check?: (row: LockedRow) => Effect.Effect<void, Refusal>
  ) {
    const invalidField = refusals(id, patch).find(([, refusal]) => refusal !== undefined)
    if (invalidField === undefined) {
      return yield* change(id, "policies:route_config_update", withStreamLimit(patch), routeRows.only, check)
    }
    const [param, refusal] = invalidField
    return yield* new ControlError("invalid_provider_config_payload", `${param} ${refusal}.`, { param })
  })

  return Routes.of({
    list: Effect.fn("Routes.list")(function* (family) {
      return yield* routeRows.all(
        sql`SELECT ${columns} FROM canonical_routes WHERE family = ${family} ORDER BY route_id`
      )
    }, toStoreFailures),
    enable: Effect.fn("Routes.enable")((id) => change(id, "policies:route_enable", { enabled: true }, routeRows.only)),
    disable: Effect.fn("Routes.disable")((id) =>
      change(id, "policies:route_disable", { enabled: false }, (rows) =>
        Effect.flatMap(routeRows.firstOrUnreadable(rows), (row) =>
          row === undefined ? routeNotFound : Effect.succeed(row)
        )
      )
    ),
    setMode: Effect.fn("Routes.setMode")((id, mode) =>
      change(id, "policies:route_mode_update", { mode }, routeRows.only)
    ),
    configure: (id, { expected_updated_at, ...patch }) =>
      configure(id, patch, (row) => requireUnchanged(expected_updated_at, row)),
    configureAll: Effect.fn("Routes.configureAll")(
      function* ({ expected_updated_at, ...patch }) {
        const rows = yield* versionRows.all(
          sql`SELECT route_id, updated_at FROM canonical_routes ORDER BY route_id FOR UPDATE`
        )
        const unknown = Object.keys(expected_updated_at ?? {}).find(
          (id) => !rows.some(({ route_id }) => route_id === id)
        )
        if (unknown !== undefined) return yield* unknownRoute(unknown)
        yield* Effect.forEach(rows, (row) => requireUnchanged(expected_updated_at?.[row.route_id], row), {
          discard: true
        })
        return yield* Effect.forEach(RouteId.literals, (id) => configure(id, patch))
      },
      transaction,
      toStoreFailures
    )
  })
})

/**
 * A patch that sets a response limit also sets `limits_streams` to true. Removing the limit (`null`) sets it to false.
 * A patch that contains `limits_streams` stays unchanged.
 */
export const withStreamLimit = <
  A extends { readonly max_response_body_bytes?: number | null; readonly limits_streams?: boolean | null }
>(
  patch: A
): A =>
  patch.max_response_body_bytes === undefined || patch.limits_streams !== undefined
    ? patch
    : { ...patch, limits_streams: patch.max_response_body_bytes !== null }

const unknownRoute = (id: string) =>
  new ControlError("invalid_provider_config_payload", `expected_updated_at names ${id}, and no route has this id.`, {
    param: "expected_updated_at"
  })

const routeNotFound = new ControlError("not_found", "There is no route with this id.")

const refusals = (id: RouteId, patch: RoutePatch): ReadonlyArray<readonly [param: keyof RoutePatch, Violation]> => [
  ["timeout_ms", ifPresent(patch.timeout_ms, validateUpTo(maxTimeoutMs))],
  ["max_request_body_bytes", ifPresent(patch.max_request_body_bytes, validateUpTo(maxBodyBytes))],
  ["max_response_body_bytes", ifPresent(patch.max_response_body_bytes, validateUpTo(maxBodyBytes))],
  ["ownership", ifPresent(patch.ownership, refusedOwnership(id))]
]

const refusedOwnership =
  (id: RouteId) =>
  (value: string): Violation => {
    if (!Ownership.literals.some((literal) => literal === value))
      return `must be one of ${Ownership.literals.join(", ")}`
    // Requests to every route except `models` may refer to objects such as files and batches.
    return id !== "models" || value === "project"
      ? undefined
      : "applies only to routes that create, read or reference objects"
  }

const routeRows = storedRows(Route.pipe(Schema.fieldsAssign({ updated_at: Schema.DateTimeUtcFromDate })), {
  table: "canonical_routes",
  key: ["route_id"]
})
const snapshots = Snapshots.of(Route)

const LockedRow = Schema.Struct({ family: Schema.String, updated_at: Schema.DateTimeUtcFromDate })
type LockedRow = typeof LockedRow.Type
const lockedRows = computedRows(LockedRow)
const versionRows = computedRows(Schema.Struct({ route_id: RouteId, updated_at: Schema.DateTimeUtcFromDate }))
