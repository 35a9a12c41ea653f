import type { CutBy } from "./Forward.ts"
import type { RouteConfig } from "./model/CanonicalRoute.ts"
import type { EffectivePolicy } from "./model/EffectivePolicy.ts"
import type { KeyPolicy } from "./model/KeyPolicy.ts"
import type { Limit } from "./model/Limit.ts"
import { nameOf } from "./model/PolicyLayer.ts"
import type { Denied } from "./UsageRecord.ts"

/** What a record says of a request that ran into a policy's limit under way: the check, and the layer that set the limit. */
const of = (
  check: string,
  { layers, policy }: EffectivePolicy,
  limit: (policy: KeyPolicy) => number | null
): Denied => {
  const layer = layers.find((one) => limit(one.policy) === limit(policy))
  return layer === undefined ? { check } : { check, layer: nameOf(layer) }
}

/** A request body that is larger than the policy allows. */
export const ofBody = (effective: EffectivePolicy): Denied =>
  of("request_bytes", effective, ({ max_request_body_bytes }) => max_request_body_bytes)

/** An answer that was cut: `undefined` where the route's limit did it. */
export const ofAnswer = (
  cutBy: CutBy,
  effective: EffectivePolicy,
  { maxResponseBodyBytes }: RouteConfig
): Denied | undefined => {
  switch (cutBy) {
    case "event":
      return of("event_bytes", effective, ({ max_sse_event_bytes }) => maxOf(max_sse_event_bytes))
    case "duration":
      return of("stream_duration", effective, (policy) => maxOf(policy.max_stream_duration_seconds))
    case "size":
      return (effective.policy.max_response_body_bytes ?? Number.POSITIVE_INFINITY) < maxResponseBodyBytes
        ? of("response_bytes", effective, ({ max_response_body_bytes }) => max_response_body_bytes)
        : undefined
  }
}

const maxOf = (limit: Limit): number | null => (limit._tag === "Limited" ? limit.max : null)
