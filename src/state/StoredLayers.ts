import { Schema } from "effect"
import { LayerKind, type PolicyLayer } from "../policy/PolicyLayer.ts"
import * as SharedLimits from "../policy/SharedLimits.ts"
import * as StoredPolicies from "../policy/StoredPolicies.ts"
import type { TableReader } from "./StoredRows.ts"

const LayerRow = Schema.Struct({
  layer_kind: LayerKind,
  scope_id: Schema.NullOr(Schema.String),
  policy: Schema.Unknown,
  guardrail_policy: Schema.Unknown,
  policy_version: Schema.FiniteFromString,
  limits_since: SharedLimits.Since,
  shared: SharedLimits.SharedLimitsPatch,
  shared_since: SharedLimits.Since
})
const decodeRow = Schema.decodeUnknownSync(LayerRow)
const isLayerKind = Schema.is(LayerKind)

export const columns =
  "layer_kind, scope_id, policy, guardrail_policy, policy_version::text AS policy_version, limits_since, shared, shared_since"

/** Decodes the rows of policy layers. A row that cannot be decoded becomes a layer that denies every request. */
export const table: TableReader<PolicyLayer> = {
  name: "policy_layers",
  key: ["layer_kind", "scope_id"],
  decode: (columns) => {
    const row = decodeRow(columns)
    return {
      kind: row.layer_kind,
      scopeId: row.scope_id,
      version: row.policy_version,
      since: row.limits_since,
      shared: { limits: SharedLimits.of(row.shared), since: row.shared_since },
      ...StoredPolicies.decode(row)
    }
  },
  substitute: ({ layer_kind: kind, scope_id: scope }) => ({
    ...(isLayerKind(kind) && (typeof scope === "string" || kind === "global")
      ? { kind, scopeId: typeof scope === "string" ? scope : null }
      : { kind: "unknown", scopeId: [kind, scope].filter((value) => typeof value === "string").join(":") }),
    ...denyingLayer
  })
}

export const keyLayer = (
  id: string,
  version: number,
  row: { readonly policy: unknown; readonly guardrail_policy: unknown }
): PolicyLayer => {
  try {
    return { kind: "key", scopeId: id, version, ...StoredPolicies.decode(row) }
  } catch {
    return { kind: "key", scopeId: id, ...denyingLayer, version }
  }
}

const denyingLayer = { version: 0, unreadable: true, ...StoredPolicies.denyingPolicies } as const
