import { Context, Effect, Layer, Record, Schema } from "effect"
import { maxBodyBytes, maxTimeoutMs } from "../../policy/routes/CanonicalRoute.ts"
import { Ownership } from "../../policy/routes/Ownership.ts"
import { AdminApiExposure, defaults, UiExposure, Unheld } from "../../policy/routes/Passthrough.ts"
import { Database } from "../../services/Database.ts"
import { UpstreamPassthrough, type UpstreamPassthroughPatch } from "../api/providers/UpstreamPassthroughApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { type Actor, Audit, Mutation, Snapshots } from "../audit/Audit.ts"
import { type Refusal, refusedBeyond, where } from "../store/Rules.ts"
import { rows, type StoreFailure, settled } from "../store/Store.ts"
import { withStreamLimit } from "./Routes.ts"

type Invalid = Refused<"invalid_provider_config_payload">

/** What the wildcard lets through, and to whom. */
export class UpstreamPassthroughSettings extends Context.Service<
  UpstreamPassthroughSettings,
  {
    readonly get: Effect.Effect<UpstreamPassthrough, StoreFailure>
    readonly update: (
      patch: UpstreamPassthroughPatch
    ) => Effect.Effect<UpstreamPassthrough, Invalid | StoreFailure, Actor>
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
    get: found
      .only(sql`SELECT ${columns} FROM upstream_passthrough_settings`)
      .pipe(settled, Effect.withSpan("UpstreamPassthroughSettings.get")),
    update: Effect.fn("UpstreamPassthroughSettings.update")(function* (patch) {
      const set = yield* columnsOf(withStreamLimit(patch))
      return yield* audit.mutate(
        Effect.gen(function* () {
          const { write } = yield* Mutation
          const held = sql`SELECT ${columns} FROM upstream_passthrough_settings FOR UPDATE`
          // what cannot be read may be what the patch replaces
          const before = yield* found.firstOrUnreadable(held)
          const after = yield* found.only(
            Object.keys(set).length === 0
              ? held
              : write`
                  UPDATE upstream_passthrough_settings SET ${sql.update(set)}, updated_at = now() RETURNING ${columns}`
          )
          return {
            result: after,
            deed: { target: "upstream_passthrough_settings", action: "providers:upstream_passthrough_update" },
            targetId: "singleton",
            snapshots: yield* snapshots(before ?? null, after),
            changes: [{ _tag: "Configuration" }]
          }
        })
      )
    })
  })
})

const found = rows(UpstreamPassthrough.pipe(Schema.fieldsAssign({ updated_at: Schema.DateTimeUtcFromDate })), {
  table: "upstream_passthrough_settings",
  key: []
})
const snapshots = Snapshots.of(UpstreamPassthrough)

/** What `patch` names, by column: the default where it says `null`; or which field is wrong, and how. */
const columnsOf = (patch: UpstreamPassthroughPatch): Effect.Effect<Readonly<Record<string, unknown>>, Invalid> => {
  const methods = patch.allowed_methods?.map((method) => method.toUpperCase())
  const wished = { ...patch, ...(methods && { allowed_methods: methods }) }
  const wrong = refusals(wished).find(([, refusal]) => refusal !== undefined)
  if (wrong !== undefined) {
    const [param, refusal] = wrong
    return Effect.fail(new ControlError("invalid_provider_config_payload", `${param} ${refusal}.`, { param }))
  }
  return Effect.succeed(Record.map<string, unknown, unknown>(wished, (value, column) => value ?? defaultOf.get(column)))
}

const defaultOf: ReadonlyMap<string, unknown> = new Map(Object.entries(defaults))

const refusals = (patch: UpstreamPassthroughPatch): ReadonlyArray<readonly [param: string, Refusal]> => [
  ["allowed_paths", where(patch.allowed_paths, refusedPaths)],
  ["allowed_methods", where(patch.allowed_methods, refusedMethods)],
  ["ui_exposure", where(patch.ui_exposure, oneOf(UiExposure.literals))],
  ["admin_api_exposure", where(patch.admin_api_exposure, refusedAdminExposure)],
  ["guardrails", where(patch.guardrails, oneOf(Unheld.literals))],
  ["body_policies", where(patch.body_policies, oneOf(Unheld.literals))],
  ["ownership", where(patch.ownership, oneOf(Ownership.literals))],
  ["timeout_ms", where(patch.timeout_ms, refusedBeyond(maxTimeoutMs))],
  ["max_request_body_bytes", where(patch.max_request_body_bytes, refusedBeyond(maxBodyBytes))],
  ["max_response_body_bytes", where(patch.max_response_body_bytes, refusedBeyond(maxBodyBytes))]
]

const maxPaths = 64
const maxPathLength = 512
const maxMethods = 16

/** Requests are compared by their canonical path, so a pattern that is not canonical itself would never match. */
const refusedPaths = (paths: ReadonlyArray<string>): Refusal => {
  if (paths.length === 0 || paths.length > maxPaths) return `must have 1 to ${maxPaths} entries`
  if (paths.some((path) => !path.startsWith("/") || path.length > maxPathLength)) {
    return `must hold paths that begin with / and have at most ${maxPathLength} characters`
  }
  if (paths.some((path) => /[^\x21-\x7e]|[\\?#;%]|\/\/|\.\./.test(path))) {
    return "must hold paths without spaces, .., //, backslashes, percent-escapes, ?, # and ;"
  }
  return paths.some((path) => path.slice(0, -1).includes("*")) ? "may have a * only at the end of a path" : undefined
}

/** TRACE would tell the caller the credential that the gateway puts in; CONNECT is no request to an upstream. */
const unforwardable: ReadonlySet<string> = new Set(["TRACE", "CONNECT"])

const refusedMethods = (methods: ReadonlyArray<string>): Refusal => {
  if (methods.length === 0 || methods.length > maxMethods) return `must have 1 to ${maxMethods} entries`
  if (methods.some((method) => !/^[!#$%&'*+\-.^_`|~0-9A-Z]{1,32}$/.test(method))) return "must hold HTTP methods"
  return methods.some((method) => unforwardable.has(method)) ? "must not hold TRACE or CONNECT" : undefined
}

const oneOf =
  (words: ReadonlyArray<string>) =>
  (word: string): Refusal =>
    words.includes(word) ? undefined : `must be one of ${words.join(", ")}`

const refusedAdminExposure = (word: string): Refusal =>
  word === "trusted_ingress"
    ? "cannot be trusted_ingress: set ui_exposure to trusted_ingress and this to explicitly_exposed"
    : oneOf(AdminApiExposure.literals)(word)
