import { Context, Effect, Layer, Record, Schema } from "effect"
import { maxBodyBytes, maxTimeoutMs } from "../../policy/routes/CanonicalRoute.ts"
import { Ownership } from "../../policy/routes/Ownership.ts"
import { AdminApiExposure, defaults, UiExposure, UnenforceablePolicy } from "../../policy/routes/Passthrough.ts"
import { Database } from "../../services/Database.ts"
import { UpstreamPassthrough, type UpstreamPassthroughPatch } from "../api/providers/UpstreamPassthroughApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import { requireUnchanged } from "../store/Precondition.ts"
import { type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { ifPresent, type Violation, validateUpTo } from "../store/Validation.ts"
import { withStreamLimit } from "./Routes.ts"

type Invalid = Refused<"invalid_provider_config_payload">

/** Stores the settings for requests that match no route: allowed paths and methods, exposure and limits. */
export class UpstreamPassthroughSettings extends Context.Service<
  UpstreamPassthroughSettings,
  {
    readonly get: Effect.Effect<UpstreamPassthrough, StoreFailure>
    readonly update: (
      patch: UpstreamPassthroughPatch
    ) => Effect.Effect<UpstreamPassthrough, Invalid | Refused<"changed_since_read"> | StoreFailure, Actor>
  }
>()("svc/control/UpstreamPassthroughSettings") {
  static readonly layer = Layer.suspend(() => Layer.effect(UpstreamPassthroughSettings, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const columns = sql.literal(
    `enabled, allowed_paths, allowed_methods, ui_exposure, admin_api_exposure, guardrails, body_policies, ownership, timeout_ms,
     max_request_body_bytes, max_response_body_bytes, limits_streams, updated_at`
  )

  return UpstreamPassthroughSettings.of({
    get: settingsRows
      .only(sql`SELECT ${columns} FROM upstream_passthrough_settings`)
      .pipe(toStoreFailures, Effect.withSpan("UpstreamPassthroughSettings.get")),
    update: Effect.fn("UpstreamPassthroughSettings.update")(function* ({ expected_updated_at, ...patch }) {
      const set = yield* columnsOf(withStreamLimit(patch))
      return yield* audit.mutate(function* ({ write }) {
        const lockedRow = sql`SELECT ${columns} FROM upstream_passthrough_settings FOR UPDATE`
        // This also works if this version cannot decode the stored row, because the patch may repair the row.
        const before = yield* settingsRows.firstOrUnreadable(lockedRow)
        if (before !== undefined) yield* requireUnchanged(expected_updated_at, before)
        const after = yield* settingsRows.only(
          Object.keys(set).length === 0
            ? lockedRow
            : write`
                UPDATE upstream_passthrough_settings SET ${sql.update(set)}, updated_at = now() RETURNING ${columns}`
        )
        return {
          result: after,
          auditAction: { target: "upstream_passthrough_settings", action: "providers:upstream_passthrough_update" },
          targetId: "singleton",
          snapshots: yield* snapshots(before ?? null, after),
          changes: [{ _tag: "Configuration" }]
        }
      })
    })
  })
})

const settingsRows = storedRows(
  UpstreamPassthrough.pipe(Schema.fieldsAssign({ updated_at: Schema.DateTimeUtcFromDate })),
  {
    table: "upstream_passthrough_settings",
    key: []
  }
)
const snapshots = Snapshots.of(UpstreamPassthrough)

type Settings = Omit<UpstreamPassthroughPatch, "expected_updated_at">

const columnsOf = (patch: Settings): Effect.Effect<Readonly<Record<string, unknown>>, Invalid> => {
  const methods = patch.allowed_methods?.map((method) => method.toUpperCase())
  const normalized = { ...patch, ...(methods && { allowed_methods: methods }) }
  const invalidField = refusals(normalized).find(([, refusal]) => refusal !== undefined)
  if (invalidField !== undefined) {
    const [param, refusal] = invalidField
    return Effect.fail(new ControlError("invalid_provider_config_payload", `${param} ${refusal}.`, { param }))
  }
  return Effect.succeed(
    Record.map<string, unknown, unknown>(normalized, (value, column) => value ?? defaultByColumn.get(column))
  )
}

const defaultByColumn: ReadonlyMap<string, unknown> = new Map(Object.entries(defaults))

const refusals = (patch: Settings): ReadonlyArray<readonly [param: string, Violation]> => [
  ["allowed_paths", ifPresent(patch.allowed_paths, refusedPaths)],
  ["allowed_methods", ifPresent(patch.allowed_methods, refusedMethods)],
  ["ui_exposure", ifPresent(patch.ui_exposure, oneOf(UiExposure.literals))],
  ["admin_api_exposure", ifPresent(patch.admin_api_exposure, refusedAdminExposure)],
  ["guardrails", ifPresent(patch.guardrails, oneOf(UnenforceablePolicy.literals))],
  ["body_policies", ifPresent(patch.body_policies, oneOf(UnenforceablePolicy.literals))],
  ["ownership", ifPresent(patch.ownership, oneOf(Ownership.literals))],
  ["timeout_ms", ifPresent(patch.timeout_ms, validateUpTo(maxTimeoutMs))],
  ["max_request_body_bytes", ifPresent(patch.max_request_body_bytes, validateUpTo(maxBodyBytes))],
  ["max_response_body_bytes", ifPresent(patch.max_response_body_bytes, validateUpTo(maxBodyBytes))]
]

const maxPaths = 64
const maxPathLength = 512
const maxMethods = 16

/** The gateway compares the canonical paths of requests. A pattern that is not canonical would never match. */
const refusedPaths = (paths: ReadonlyArray<string>): Violation => {
  if (paths.length === 0 || paths.length > maxPaths) return `must have 1 to ${maxPaths} entries`
  if (paths.some((path) => !path.startsWith("/") || path.length > maxPathLength)) {
    return `must hold paths that begin with / and have at most ${maxPathLength} characters`
  }
  if (paths.some((path) => /[^\x21-\x7e]|[\\?#;%]|\/\/|\.\./.test(path))) {
    return "must hold paths without spaces, .., //, backslashes, percent-escapes, ?, # and ;"
  }
  return paths.some((path) => path.slice(0, -1).includes("*")) ? "may have a * only at the end of a path" : undefined
}

/** A TRACE response would show the gateway's credential to the caller. CONNECT would open a tunnel. */
const unforwardable: ReadonlySet<string> = new Set(["TRACE", "CONNECT"])

const refusedMethods = (methods: ReadonlyArray<string>): Violation => {
  if (methods.length === 0 || methods.length > maxMethods) return `must have 1 to ${maxMethods} entries`
  if (methods.some((method) => !/^[!#$%&'*+\-.^_`|~0-9A-Z]{1,32}$/.test(method))) return "must hold HTTP methods"
  return methods.some((method) => unforwardable.has(method)) ? "must not hold TRACE or CONNECT" : undefined
}

const oneOf =
  (literals: ReadonlyArray<string>) =>
  (value: string): Violation =>
    literals.includes(value) ? undefined : `must be one of ${literals.join(", ")}`

const refusedAdminExposure = (value: string): Violation =>
  value === "trusted_ingress"
    ? "cannot be trusted_ingress: set ui_exposure to trusted_ingress and this to explicitly_exposed"
    : oneOf(AdminApiExposure.literals)(value)
