import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"

export interface Part {
  readonly kind: "gateway" | "guardrail" | "wait" | "rest" | "refused"
  readonly label: string
  readonly from: number
  readonly ms: number
}

type Measured = Pick<UsageRow, "status" | "latency_ms" | "upstream_ms" | "first_byte_ms" | "gateway_ms" | "pre_call_ms">

/** The parts of a request's time, one after the other. Of a refused request nothing was sent. */
export const partsOf = ({
  first_byte_ms,
  gateway_ms,
  latency_ms,
  pre_call_ms,
  status,
  upstream_ms
}: Measured): ReadonlyArray<Part> => {
  const checked = Math.min(latency_ms, pre_call_ms ?? 0)
  const guardrails = (until: number): ReadonlyArray<Part> =>
    checked === 0
      ? []
      : [{ kind: "guardrail", label: "Guardrails, before it was sent", from: until - checked, ms: checked }]
  if (upstream_ms === null) {
    // the live feed does not tell the parts
    return status === "success"
      ? [{ kind: "rest", label: "Together", from: 0, ms: latency_ms }]
      : [
          { kind: "refused", label: "Gateway, nothing was sent", from: 0, ms: latency_ms - checked },
          ...guardrails(latency_ms)
        ]
  }
  const gateway = Math.max(checked, Math.min(latency_ms, gateway_ms ?? latency_ms - upstream_ms))
  const firstByte = Math.min(latency_ms, Math.max(gateway, first_byte_ms ?? latency_ms))
  return [
    {
      kind: "gateway",
      label: checked === 0 ? "Gateway" : "Gateway, without guardrails",
      from: 0,
      ms: gateway - checked
    },
    ...guardrails(gateway),
    { kind: "wait", label: "Upstream, until its first byte", from: gateway, ms: firstByte - gateway },
    { kind: "rest", label: "Response, until its end", from: firstByte, ms: latency_ms - firstByte }
  ]
}
