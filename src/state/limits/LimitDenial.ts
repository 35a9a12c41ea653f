import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import { layerName, type PolicyLayer } from "../../policy/PolicyLayer.ts"
import type { LimitField } from "../../policy/SharedLimits.ts"
import type { DenialRecord } from "../UsageRecord.ts"
import type { MeterReading } from "./Meters.ts"

/** The record of a refused request says this of the limit that refused it. */
export const of = ({ meter, used }: MeterReading, wanted: number, { layers }: EffectivePolicy): DenialRecord => {
  const { field, limit, scope } = meter
  const amounts = { wanted, used, limit }
  if (scope.layer !== undefined) return { check: `shared_${field}`, layer: scope.layer, amounts }
  const layer = strictest(layers, field)
  return { check: field, ...(layer !== undefined && { layer: layerName(layer) }), amounts }
}

/** Returns the layer whose limit binds. An exception may have raised it, so it need not be the limit in force. */
const strictest = (layers: ReadonlyArray<PolicyLayer>, field: LimitField): PolicyLayer | undefined => {
  let lowest = Number.POSITIVE_INFINITY
  let strictest: PolicyLayer | undefined
  for (const layer of layers) {
    const limit = layer.policy[field]
    if (limit._tag === "Unlimited" || limit.max >= lowest) continue
    lowest = limit.max
    strictest = layer
  }
  return strictest
}
