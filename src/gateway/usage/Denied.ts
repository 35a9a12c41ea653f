import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import type { KeyPolicy } from "../../policy/KeyPolicy.ts"
import type { Limit } from "../../policy/Limit.ts"
import * as Policy from "../../policy/Policy.ts"
import { nameOf, type PolicyLayer } from "../../policy/PolicyLayer.ts"
import type { Refusal } from "../../policy/Refusals.ts"
import type { RouteConfig } from "../../policy/routes/CanonicalRoute.ts"
import type { Denied } from "../../state/UsageRecord.ts"
import type { Meter } from "../limits/Meters.ts"

/** What the answer had too much of: bytes in all, bytes in one event, or time. */
export type CutBy = "size" | "event" | "duration"

const by = (check: string, layer: PolicyLayer | undefined): Denied =>
  layer === undefined ? { check } : { check, layer: nameOf(layer) }

/** Before anything was done; `undefined` where no policy refused. */
export const ofRequest = ({ denial }: Refusal): Denied | undefined => denial && by(denial.check, denial.causes[0])

/** A body that the policy would have to judge, where none is read. */
export const ofUnread = ({ check }: Policy.Denial, { layers }: EffectivePolicy): Denied =>
  by(
    check,
    layers.find(({ policy }) => Policy.unread(policy)?.check === check)
  )

/** A limit that the request shares with others, or one that bounds its key alone. */
export const ofLimit = ({ field, scope }: Meter, effective: EffectivePolicy): Denied =>
  scope.layer === undefined
    ? limited(field, effective, (policy) => maxOf(policy[field]))
    : { check: `shared_${field}`, layer: scope.layer }

/** A request body that is larger than the policy allows. */
export const ofBody = (effective: EffectivePolicy): Denied =>
  limited("request_bytes", effective, ({ max_request_body_bytes }) => max_request_body_bytes)

/** An answer that was cut: `undefined` where the route's limit did it. */
export const ofAnswer = (
  cutBy: CutBy,
  effective: EffectivePolicy,
  { maxResponseBodyBytes }: RouteConfig
): Denied | undefined => {
  switch (cutBy) {
    case "event":
      return limited("event_bytes", effective, ({ max_sse_event_bytes }) => maxOf(max_sse_event_bytes))
    case "duration":
      return limited("stream_duration", effective, (policy) => maxOf(policy.max_stream_duration_seconds))
    case "size":
      return (effective.policy.max_response_body_bytes ?? Number.POSITIVE_INFINITY) < maxResponseBodyBytes
        ? limited("response_bytes", effective, ({ max_response_body_bytes }) => max_response_body_bytes)
        : undefined
  }
}

/** It ran into a limit under way. */
const limited = (
  check: string,
  { layers, policy }: EffectivePolicy,
  limit: (policy: KeyPolicy) => number | null
): Denied =>
  by(
    check,
    layers.find((layer) => limit(layer.policy) === limit(policy))
  )

const maxOf = (limit: Limit): number | null => (limit._tag === "Limited" ? limit.max : null)
