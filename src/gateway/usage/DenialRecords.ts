import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import type { KeyPolicy } from "../../policy/KeyPolicy.ts"
import type { Limit } from "../../policy/Limit.ts"
import * as Policy from "../../policy/Policy.ts"
import { layerName, type PolicyLayer } from "../../policy/PolicyLayer.ts"
import type { PolicyRefusal } from "../../policy/Refusals.ts"
import type { RouteConfig } from "../../policy/routes/CanonicalRoute.ts"
import type { DenialRecord } from "../../state/UsageRecord.ts"

/** The limit that a response exceeded: its total bytes, the bytes of one event, or its duration. */
export type ExceededLimit = "size" | "event" | "duration"

const denialRecord = (check: string, layer: PolicyLayer | undefined): DenialRecord =>
  layer === undefined ? { check } : { check, layer: layerName(layer) }

export const ofRequest = ({ denial }: PolicyRefusal): DenialRecord | undefined =>
  denial && denialRecord(denial.check, denial.causes[0])

export const ofUnreadBody = ({ check }: Policy.Denial, { layers }: EffectivePolicy): DenialRecord =>
  denialRecord(
    check,
    layers.find(({ policy }) => Policy.unreadBodyDenial(policy)?.check === check)
  )

export const ofBody = (effective: EffectivePolicy): DenialRecord =>
  ofPolicyLimit("request_bytes", effective, ({ max_request_body_bytes }) => max_request_body_bytes)

/** Returns `undefined` if the response exceeded a limit of the route and not of a policy. */
export const ofResponse = (
  cutBy: ExceededLimit,
  effective: EffectivePolicy,
  { maxResponseBodyBytes }: RouteConfig
): DenialRecord | undefined => {
  switch (cutBy) {
    case "event":
      return ofPolicyLimit("event_bytes", effective, ({ max_sse_event_bytes }) => maximumOf(max_sse_event_bytes))
    case "duration":
      return ofPolicyLimit("stream_duration", effective, (policy) => maximumOf(policy.max_stream_duration_seconds))
    case "size":
      return (effective.policy.max_response_body_bytes ?? Number.POSITIVE_INFINITY) < maxResponseBodyBytes
        ? ofPolicyLimit("response_bytes", effective, ({ max_response_body_bytes }) => max_response_body_bytes)
        : undefined
  }
}

const ofPolicyLimit = (
  check: string,
  { layers, policy }: EffectivePolicy,
  limit: (policy: KeyPolicy) => number | null
): DenialRecord =>
  denialRecord(
    check,
    layers.find((layer) => limit(layer.policy) === limit(policy))
  )

const maximumOf = (limit: Limit): number | null => (limit._tag === "Limited" ? limit.max : null)
