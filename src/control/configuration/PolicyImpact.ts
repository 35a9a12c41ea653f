import { Clock, Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import * as EffectivePolicy from "../../policy/EffectivePolicy.ts"
import { GuardrailPolicy } from "../../policy/GuardrailPolicy.ts"
import { KeyPolicy, neutral, patched } from "../../policy/KeyPolicy.ts"
import * as LimitRaise from "../../policy/LimitRaise.ts"
import { ownerLayers, type PolicyLayer, type PolicyLayers } from "../../policy/PolicyLayer.ts"
import * as SharedLimits from "../../policy/SharedLimits.ts"
import { Database } from "../../services/Database.ts"
import * as StoredKeys from "../../state/StoredKeys.ts"
import type { PolicyImpact as Impact, PolicyProposal } from "../api/policies/EffectivePolicies.ts"
import type { PolicyLayerUpsert } from "../api/policies/PolicyLayersApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { patchedGuardrailPolicy } from "../policies/GuardrailPolicyValidation.ts"
import * as PolicyState from "../policies/PolicyState.ts"
import { withProposed } from "../policies/ProposedLayer.ts"
import { computedRows, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { diffFields } from "./ConfigurationDiff.ts"
import { phrasesOf } from "./KeyChangeSummary.ts"

/** Computing the policies of so many keys takes a fraction of a second. */
const mostKeys = 2_000
const mostShownKeys = 50

/** Shows which keys a change of a policy would hit. Nothing changes. */
export class PolicyImpact extends Context.Service<
  PolicyImpact,
  {
    readonly of: (
      proposal: PolicyProposal
    ) => Effect.Effect<
      Impact,
      | Refused<
          | "not_found"
          | "invalid_request"
          | "invalid_policy_payload"
          | "invalid_guardrail_request"
          | "guardrail_forbidden"
        >
      | StoreFailure
    >
  }
>()("svc/control/PolicyImpact") {
  static readonly layer = Layer.suspend(() => Layer.effect(PolicyImpact, make))
}

/** What decides on a key: its own policy, and the layers above it. */
type Decides = (key: StoredKeys.StoredKey) => ReadonlyArray<PolicyLayer>

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const state = PolicyState.make(sql)
  const usable = sql`k.revoked_at IS NULL AND NOT k.disabled AND coalesce(k.expires_at, 'infinity') > now()`

  const scopeOf = ({ kind, scope_id }: PolicyLayerUpsert) =>
    kind === "project"
      ? sql`k.project_id = ${scope_id ?? null}`
      : kind === "team"
        ? sql`k.team_id = ${scope_id ?? null}`
        : sql`true`

  const ofLayer = Effect.fnUntraced(function* (proposal: PolicyLayerUpsert) {
    const before = yield* state.layers
    const after = yield* withProposed(sql, before, proposal)
    const scope = sql.and([usable, scopeOf(proposal)])
    const rows = yield* keyRows.all(sql`SELECT ${sql.literal(shownColumns)} FROM api_keys k
      WHERE ${scope} ORDER BY coalesce(k.last_used_at, '-infinity') DESC, k.id DESC LIMIT ${mostKeys}`)
    const { n } = yield* countRows.only(sql`SELECT count(*)::int AS n FROM api_keys k WHERE ${scope}`)
    const sharedOf = (layers: PolicyLayers) =>
      encodeShared(layers.of[proposal.kind].get(scopeKey(proposal))?.shared?.limits ?? SharedLimits.none)
    return {
      ...(yield* impactOn(rows, layersOf(before, proposal), layersOf(after, proposal))),
      keys_covered: n,
      shared: diffFields(sharedOf(before), sharedOf(after))
    }
  })

  const ofKey = Effect.fnUntraced(function* (id: string, { guardrail_policy, policy }: PolicyProposal) {
    const rows = yield* keyRows.all(sql`SELECT ${sql.literal(shownColumns)} FROM api_keys k WHERE k.id = ${id}`)
    const [row] = rows
    if (row === undefined) return yield* new ControlError("not_found", "No key has this id.", { param: "key_id" })
    const { ownLayer } = StoredKeys.keyOf(row)
    const own: PolicyLayer = {
      ...ownLayer,
      policy: policy === null ? neutral : patched(ownLayer.policy, policy ?? {}),
      guardrails: yield* patchedGuardrailPolicy(sql, ownLayer.guardrails, guardrail_policy)
    }
    const layers = yield* state.layers
    const above = (key: StoredKeys.StoredKey) =>
      ownerLayers(layers, StoredKeys.ownerOf(key)).filter((layer) => layer !== undefined)
    return {
      ...(yield* impactOn(
        rows,
        (key) => [...above(key), key.ownLayer],
        (key) => [...above(key), own]
      )),
      keys_covered: 1,
      shared: []
    }
  })

  return PolicyImpact.of({
    of: Effect.fn("PolicyImpact.of")(function* (proposal) {
      if (proposal.layer !== undefined && proposal.key_id === undefined) return yield* ofLayer(proposal.layer)
      if (proposal.key_id !== undefined && proposal.layer === undefined) return yield* ofKey(proposal.key_id, proposal)
      return yield* new ControlError("invalid_request", "Send either layer or key_id.", { param: "layer" })
    }, toStoreFailures)
  })
})

const scopeKey = ({ kind, scope_id }: PolicyLayerUpsert): string =>
  kind === "project" ? (scope_id?.toLowerCase() ?? "") : (scope_id ?? "")

/** A layer of a route or a model decides on some of the requests of every key. */
const layersOf =
  (layers: PolicyLayers, { kind, scope_id }: PolicyLayerUpsert): Decides =>
  (key) =>
    [
      ...ownerLayers(layers, StoredKeys.ownerOf(key)),
      kind === "route" || kind === "model" ? layers.of[kind].get(scope_id ?? "") : undefined,
      key.ownLayer
    ].filter((layer) => layer !== undefined)

const impactOn = Effect.fnUntraced(function* (
  rows: ReadonlyArray<typeof ShownRow.Type>,
  before: Decides,
  after: Decides
) {
  const now = yield* Clock.currentTimeMillis
  const changed = rows.flatMap((row) => {
    const key = StoredKeys.keyOf(row)
    const policiesUnder = (decides: Decides) => {
      const { guardrails, policy } = EffectivePolicy.of(decides(key), LimitRaise.inForce(key.raises, now))
      return encodePolicies({ policy, guardrail_policy: guardrails })
    }
    const fields = diffFields(policiesUnder(before), policiesUnder(after))
    return fields.length === 0 ? [] : [{ row, fields }]
  })
  return {
    keys_looked_at: rows.length,
    keys_changed: changed.length,
    keys: changed.slice(0, mostShownKeys).map(({ fields, row }) => ({
      id: row.id,
      name: row.name,
      key_prefix: row.key_prefix,
      project_name: row.project_name,
      last_used_at: Option.getOrNull(Option.map(Option.fromNullOr(row.last_used_at), DateTime.fromDateUnsafe)),
      fields,
      effects: fields.flatMap(phrasesOf)
    }))
  }
})

const jsonObject = <T, E>(schema: Schema.Codec<T, E>) =>
  Schema.encodeSync(Schema.toCodecJson(schema).pipe(Schema.encodeTo(Schema.JsonObject)))
const encodePolicies = jsonObject(Schema.Struct({ policy: KeyPolicy, guardrail_policy: GuardrailPolicy }))
const encodeShared = jsonObject(SharedLimits.SharedLimits)

const shownColumns = `${StoredKeys.columns}, k.name, k.key_prefix, k.last_used_at,
  (SELECT p.name FROM projects p WHERE p.id = k.project_id) AS project_name`

const ShownRow = Schema.Struct({
  ...StoredKeys.fields,
  name: Schema.NullOr(Schema.String),
  key_prefix: Schema.String,
  project_name: Schema.NullOr(Schema.String),
  last_used_at: Schema.NullOr(Schema.Date)
})
const keyRows = storedRows(ShownRow, { table: "api_keys", key: ["id"] })
const countRows = computedRows(Schema.Struct({ n: Schema.Int }))
