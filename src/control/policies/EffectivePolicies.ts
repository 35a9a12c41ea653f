import { Clock, Context, Effect, Layer, Schema } from "effect"
import * as EffectivePolicy from "../../policy/EffectivePolicy.ts"
import { KeyPolicy, neutral } from "../../policy/KeyPolicy.ts"
import * as LimitRaise from "../../policy/LimitRaise.ts"
import { layerName, ownerLayers, type PolicyLayer } from "../../policy/PolicyLayer.ts"
import { hasLimit } from "../../policy/SharedLimits.ts"
import { Database } from "../../services/Database.ts"
import { ownerOf } from "../../state/StoredKeys.ts"
import type { EffectivePolicyQuery, ShownEffectivePolicy } from "../api/policies/EffectivePolicies.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { computedRows, type StoreFailure, toStoreFailures } from "../store/Rows.ts"
import { appliedRaise } from "./PolicyReasons.ts"
import * as PolicyState from "./PolicyState.ts"

/** Shows the policy in force, with the layers that set each of its fields. */
export class EffectivePolicies extends Context.Service<
  EffectivePolicies,
  {
    readonly show: (
      query: EffectivePolicyQuery
    ) => Effect.Effect<ShownEffectivePolicy, Refused<"not_found" | "missing_project"> | StoreFailure>
  }
>()("svc/control/EffectivePolicies") {
  static readonly layer = Layer.suspend(() => Layer.effect(EffectivePolicies, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const state = PolicyState.make(sql)

  const namesOf = Effect.fnUntraced(function* (keyId: string | undefined, projectId: string | undefined) {
    const rows = yield* nameRows.all(sql`
      SELECT 'key' AS kind, coalesce(name, key_prefix) AS name FROM api_keys WHERE id = ${keyId ?? null}
      UNION ALL SELECT 'project', name FROM projects WHERE id = ${projectId ?? null}`)
    return new Map(rows.map(({ kind, name }) => [kind, name]))
  })

  return EffectivePolicies.of({
    show: Effect.fn("EffectivePolicies.show")(function* ({ key_id, model, route, ...owner }) {
      const key = key_id === undefined ? undefined : yield* state.key(key_id)
      if (key_id !== undefined && key === undefined) {
        return yield* new ControlError("not_found", "No key has this id.", { param: "key_id" })
      }
      const { projectId, teamId } =
        key === undefined ? { projectId: owner.project_id, teamId: owner.team_id } : ownerOf(key)
      const names = yield* namesOf(key_id, projectId)
      if (projectId !== undefined && !names.has("project")) {
        return yield* new ControlError("missing_project", "No project has this id.", { param: "project_id" })
      }
      const layers = yield* state.layers
      const applied = [
        ...ownerLayers(layers, { projectId: projectId?.toLowerCase(), teamId }),
        route === undefined ? undefined : layers.of.route.get(route),
        model === undefined ? undefined : layers.of.model.get(model),
        key?.ownLayer
      ].filter((layer) => layer !== undefined)
      const raises = LimitRaise.inForce(key?.raises ?? [], yield* Clock.currentTimeMillis)
      const effective = EffectivePolicy.of(applied, raises)
      const shown: ShownEffectivePolicy = {
        layers: applied.map((layer) => ({
          layer: layerName(layer),
          kind: layer.kind,
          scope_id: layer.scopeId,
          name: names.get(layer.kind) ?? layer.scopeId ?? "all keys",
          policy_version: layer.version,
          shared: layer.shared !== undefined && hasLimit(layer.shared.limits) ? layer.shared.limits : null,
          guardrail_policy: layer.guardrails
        })),
        policy: effective.policy,
        fields: fieldsOf(effective),
        guardrail_policy: effective.guardrails,
        limit_raises: effective.raises.map(appliedRaise)
      }
      return shown
    }, toStoreFailures)
  })
})

const nameRows = computedRows(Schema.Struct({ kind: Schema.String, name: Schema.String }))

const encode = Schema.encodeSync(KeyPolicy)
export type PolicyFields = Readonly<Record<string, Schema.Json>>
export const jsonOf = (policy: KeyPolicy): PolicyFields => encode(policy)

const unrestricted = jsonOf(neutral)

const sameJson = (a: Schema.Json | undefined, b: Schema.Json | undefined): boolean =>
  JSON.stringify(a) === JSON.stringify(b)

/** A list is the intersection of those of its layers; every other field has the value of its strictest layer. */
const fieldsOf = ({ layers, policy }: EffectivePolicy.EffectivePolicy): ShownEffectivePolicy["fields"] => {
  const effective = jsonOf(policy)
  const ofLayers = layers.map((layer: PolicyLayer) => ({ layer: layerName(layer), policy: jsonOf(layer.policy) }))
  return Object.keys(KeyPolicy.fields).map((field) => {
    const value = effective[field] ?? null
    const said = ofLayers.flatMap(({ layer, policy }) =>
      sameJson(policy[field], unrestricted[field]) ? [] : [{ layer, value: policy[field] ?? null }]
    )
    const set_by = said.filter((one) => Array.isArray(value) || sameJson(one.value, value)).map(({ layer }) => layer)
    return { field, value, set_by, layers: said, raised: said.length > 0 && set_by.length === 0 }
  })
}
