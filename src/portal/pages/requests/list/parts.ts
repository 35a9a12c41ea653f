import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"

export interface Part {
  readonly kind: "gateway" | "wait" | "rest" | "refused"
  readonly label: string
  readonly from: number
  readonly ms: number
}

type Measured = Pick<UsageRow, "status" | "latency_ms" | "upstream_ms" | "first_byte_ms" | "gateway_ms">

/** The parts of a request's time, one after the other. A refused request has one: nothing was sent. */
export const partsOf = ({
  first_byte_ms,
  gateway_ms,
  latency_ms,
  status,
  upstream_ms
}: Measured): ReadonlyArray<Part> => {
  if (upstream_ms === null) {
    // the live feed does not tell the parts
    return status === "success"
      ? [{ kind: "rest", label: "Together", from: 0, ms: latency_ms }]
      : [{ kind: "refused", label: "Gateway, nothing was sent", from: 0, ms: latency_ms }]
  }
  const gateway = Math.min(latency_ms, gateway_ms ?? Math.max(0, latency_ms - upstream_ms))
  const firstByte = Math.min(latency_ms, Math.max(gateway, first_byte_ms ?? latency_ms))
  return [
    { kind: "gateway", label: "Gateway", from: 0, ms: gateway },
    { kind: "wait", label: "Upstream, until its first byte", from: gateway, ms: firstByte - gateway },
    { kind: "rest", label: "Response, until its end", from: firstByte, ms: latency_ms - firstByte }
  ]
}
