import { Context, Effect, Layer, Schema } from "effect"
import * as GuardrailPolicy from "../../policy/GuardrailPolicy.ts"
import { KeyPolicyPatch, neutral, patched } from "../../policy/KeyPolicy.ts"
import { PolicyRoute } from "../../policy/routes/CanonicalRoute.ts"
import * as SharedLimits from "../../policy/SharedLimits.ts"
import * as StoredPolicies from "../../policy/StoredPolicies.ts"
import { Database } from "../../services/Database.ts"
import { TeamId } from "../api/keys/KeysApi.ts"
import {
  PolicyLayer,
  type PolicyLayerPatch,
  type PolicyLayerUpsert,
  type PolicyLayerWrite
} from "../api/policies/PolicyLayersApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { type Cursor, isId, isUnreadable } from "../api/schema/Fields.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import { keyset, type Page, readPage } from "../store/Paging.ts"
import { requireUnchanged } from "../store/Precondition.ts"
import { Count, rowTimestamps, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { patchedGuardrailPolicy } from "./GuardrailPolicyValidation.ts"

type Invalid = Refused<
  "invalid_policy_payload" | "missing_project" | "invalid_guardrail_request" | "guardrail_forbidden"
>

/** Stores policies for all requests, a project, a team, a route or a model. They only restrict the policies of keys. */
export class PolicyLayers extends Context.Service<
  PolicyLayers,
  {
    readonly list: (query: {
      readonly kind?: PolicyLayer["kind"]
      readonly scope_id?: string
      readonly limit?: number
      readonly cursor?: Cursor
    }) => Effect.Effect<Page<PolicyLayer>, StoreFailure>
    readonly find: (
      kind: PolicyLayer["kind"],
      scopeId: string | null
    ) => Effect.Effect<string | undefined, StoreFailure>
    readonly get: (id: string) => Effect.Effect<PolicyLayer, Refused<"not_found"> | StoreFailure>
    readonly upsert: (
      layer: PolicyLayerWrite
    ) => Effect.Effect<PolicyLayer, Invalid | Refused<"changed_since_read"> | StoreFailure, Actor>
    readonly update: (
      id: string,
      patch: PolicyLayerPatch
    ) => Effect.Effect<
      PolicyLayer,
      Refused<"not_found" | "invalid_guardrail_request" | "guardrail_forbidden" | "changed_since_read"> | StoreFailure,
      Actor
    >
    readonly remove: (id: string) => Effect.Effect<void, Refused<"not_found"> | StoreFailure, Actor>
  }
>()("svc/control/PolicyLayers") {
  static readonly layer = Layer.suspend(() => Layer.effect(PolicyLayers, make))
}

const defaultLimit = 100

/** The limit exists because every gateway process keeps all layers in memory. */
const maxLayers = 10_000

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const columns = sql.literal(
    `id, layer_kind AS kind, scope_id, enabled, policy, shared, guardrail_policy, policy_version, created_at, updated_at,
      CASE WHEN layer_kind = 'project' THEN (SELECT name FROM projects WHERE projects.id::text = scope_id) END AS project_name`
  )

  /** Validates the scope and returns it as it is stored. */
  const scopeOf = Effect.fnUntraced(function* ({ kind, scope_id = null }: PolicyLayerUpsert) {
    const refusal = refusedScope(kind, scope_id)
    if (refusal !== undefined) return yield* invalid(`scope_id ${refusal}.`)
    if (kind !== "project") return scope_id
    const [project] = yield* sql`SELECT 1 FROM projects WHERE id = ${scope_id} FOR KEY SHARE`
    if (project === undefined) {
      return yield* new ControlError("missing_project", "There is no project with this id.", { param: "scope_id" })
    }
    return scope_id?.toLowerCase() ?? null
  })

  const requireCapacity = Effect.gen(function* () {
    const [counted] = yield* sql<{ readonly n: number }>`SELECT count(*)::int AS n FROM policy_layers`
    if ((counted?.n ?? 0) >= maxLayers) {
      return yield* new ControlError(
        "invalid_policy_payload",
        `The limit of ${maxLayers} policy layers is reached; delete one first.`
      )
    }
  })

  return PolicyLayers.of({
    list: Effect.fn("PolicyLayers.list")(function* ({ cursor, kind, limit = defaultLimit, scope_id }) {
      const at = keyset(sql, "policy_layers", cursor)
      const filters = [
        ...(kind === undefined ? [] : [sql`layer_kind = ${kind}`]),
        ...(scope_id === undefined ? [] : [sql`scope_id = ${scope_id}`])
      ]
      return yield* readPage(
        layerRows,
        sql`SELECT ${columns}, ${at.micros} FROM policy_layers WHERE ${sql.and([at.afterCursor, ...filters])} ORDER BY ${at.order} LIMIT ${limit + 1}`,
        limit,
        toPolicyLayer
      )
    }, toStoreFailures),

    find: Effect.fn("PolicyLayers.find")(function* (kind, scopeId) {
      const row = yield* layerRows.first(sql`SELECT ${columns} FROM policy_layers
        WHERE layer_kind = ${kind} AND scope_id IS NOT DISTINCT FROM ${scopeId}::text`)
      return row?.id
    }, toStoreFailures),

    get: Effect.fn("PolicyLayers.get")(function* (id) {
      const row = yield* layerRows.first(sql`SELECT ${columns} FROM policy_layers WHERE id = ${id}`)
      return row === undefined ? yield* layerNotFound : toPolicyLayer(row)
    }, toStoreFailures),

    upsert: Effect.fn("PolicyLayers.upsert")((input) =>
      audit.mutate(function* ({ write }) {
        const scope = yield* scopeOf(input)
        const before = yield* layerRows.first(sql`SELECT ${columns} FROM policy_layers
          WHERE layer_kind = ${input.kind} AND scope_id IS NOT DISTINCT FROM ${scope}::text FOR UPDATE`)
        yield* requireUnchanged(input.expected_updated_at, { updated_at: before?.updated_at ?? null })
        if (before === undefined) yield* requireCapacity
        const current = before === undefined ? undefined : toPolicyLayer(before)
        const policy = StoredPolicies.encode(
          input.policy === undefined ? (current?.policy ?? neutral) : patched(neutral, input.policy ?? {})
        )
        const shared = yield* sharedText(
          input.shared === undefined ? (current?.shared ?? SharedLimits.none) : SharedLimits.of(input.shared ?? {})
        )
        // Unlike a PATCH, the given guardrail policy replaces the whole stored policy.
        const guardrails = yield* input.guardrail_policy === undefined
          ? Effect.succeed(current?.guardrail_policy ?? GuardrailPolicy.neutral)
          : patchedGuardrailPolicy(sql, GuardrailPolicy.neutral, input.guardrail_policy)
        const after = toPolicyLayer(
          yield* layerRows.only(write`
            INSERT INTO policy_layers (layer_kind, scope_id, enabled, policy, shared, guardrail_policy)
            VALUES (${input.kind}, ${scope}, ${input.enabled ?? current?.enabled ?? true}, ${policy}::jsonb, ${shared}::jsonb, ${JSON.stringify(guardrails)}::jsonb)
            ON CONFLICT (layer_kind, coalesce(scope_id, '')) DO UPDATE SET enabled = excluded.enabled, policy = excluded.policy,
              shared = excluded.shared, guardrail_policy = excluded.guardrail_policy, policy_version = policy_layers.policy_version + 1,
              updated_at = now()
            RETURNING ${columns}`)
        )
        // A layer that does not exist has no row to lock, so another request may have made it in the meantime.
        if (before === undefined && after.policy.policy_version > 1)
          yield* requireUnchanged(input.expected_updated_at, after)
        return {
          result: after,
          auditAction: { target: "policy_layer", action: "policies:upsert-layer" },
          targetId: after.id,
          snapshots: yield* snapshots(current ?? null, after),
          changes: [{ _tag: "Configuration" }]
        }
      })
    ),

    update: Effect.fn("PolicyLayers.update")((id, patch) =>
      audit.mutate(function* ({ write }) {
        const before = yield* layerRows.first(sql`SELECT ${columns} FROM policy_layers WHERE id = ${id} FOR UPDATE`)
        if (before === undefined) return yield* layerNotFound
        yield* requireUnchanged(patch.expected_updated_at, before)
        const current = toPolicyLayer(before)
        const policy = StoredPolicies.encode(
          patch.policy === null ? neutral : patched(current.policy, patch.policy ?? {})
        )
        const shared = yield* sharedText(
          patch.shared === null ? SharedLimits.none : { ...current.shared, ...patch.shared }
        )
        const guardrails = yield* patchedGuardrailPolicy(sql, current.guardrail_policy, patch.guardrail_policy)
        const after = toPolicyLayer(
          yield* layerRows.only(write`
            UPDATE policy_layers SET enabled = ${patch.enabled ?? current.enabled}, policy = ${policy}::jsonb, shared = ${shared}::jsonb,
              guardrail_policy = ${JSON.stringify(guardrails)}::jsonb, policy_version = policy_version + 1,
              updated_at = now()
            WHERE id = ${id} RETURNING ${columns}`)
        )
        return {
          result: after,
          auditAction: { target: "policy_layer", action: "policies:upsert-layer" },
          targetId: id,
          snapshots: yield* snapshots(current, after),
          changes: [{ _tag: "Configuration" }]
        }
      })
    ),

    remove: Effect.fn("PolicyLayers.remove")((id) =>
      audit.mutate(function* ({ write }) {
        const before = yield* layerRows.firstOrUnreadable(
          sql`SELECT ${columns} FROM policy_layers WHERE id = ${id} FOR UPDATE`
        )
        if (before === undefined) return yield* layerNotFound
        yield* write`DELETE FROM policy_layers WHERE id = ${id}`
        return {
          result: undefined,
          auditAction: { target: "policy_layer", action: "policies:delete-layer" },
          targetId: id,
          snapshots: yield* snapshots(isUnreadable(before) ? before : toPolicyLayer(before), null),
          changes: [{ _tag: "Configuration" }]
        }
      })
    )
  })
})

const Row = PolicyLayer.pipe(
  Schema.fieldsAssign({
    ...rowTimestamps,
    policy: KeyPolicyPatch,
    policy_version: Count,
    shared: SharedLimits.SharedLimitsPatch,
    guardrail_policy: GuardrailPolicy.GuardrailPolicyPatch
  })
)

const layerRows = storedRows(Row, { table: "policy_layers", key: ["id"] })
const layerNotFound = new ControlError("not_found", "There is no policy layer with this id.")
const snapshots = Snapshots.of(PolicyLayer)

const toPolicyLayer = ({
  guardrail_policy,
  policy,
  policy_version,
  shared,
  ...layer
}: typeof Row.Type): PolicyLayer => ({
  ...layer,
  policy: { ...patched(neutral, policy), policy_version },
  shared: SharedLimits.of(shared),
  guardrail_policy: GuardrailPolicy.of(guardrail_policy)
})

const encodeShared = Schema.encodeEffect(Schema.fromJsonString(SharedLimits.SharedLimits))
const sharedText = (shared: SharedLimits.SharedLimits) => Effect.orDie(encodeShared(shared))

const invalid = (message: string) => new ControlError("invalid_policy_payload", message, { param: "scope_id" })

const isTeam = Schema.is(TeamId)
const isRoute = Schema.is(PolicyRoute)

/** Says why the kind of layer cannot have the scope. */
export const refusedScope = (kind: PolicyLayer["kind"], scope: string | null): string | undefined => {
  if (kind === "global") return scope === null ? undefined : "must be null: the global layer applies to everything"
  if (scope === null) return `is required: the layer applies to one ${kind}`
  switch (kind) {
    case "project":
      return isId(scope) ? undefined : "must be the id of a project"
    case "team":
      return isTeam(scope) ? undefined : "must be the name of a team, at most 128 characters"
    case "route":
      return isRoute(scope) ? undefined : `must be one of the routes ${PolicyRoute.literals.join(", ")}`
    case "model":
      return scope.endsWith("*")
        ? 'must be the name of one model without "*"; use allowed_models of another layer for patterns'
        : undefined
  }
}
