import { Option } from "effect"
import type { Detail } from "../../live/Digest.ts"
import { toDollars } from "../../policy/Price.ts"
import type { RoutedRequest } from "../../policy/Routing.ts"
import type { Request } from "../request/Request.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { RequestOutcome } from "./RequestOutcome.ts"

/** A refused request is one that was not sent to an upstream. */
export const kindOf = ({ error, upstreamMs }: RequestOutcome): "ended" | "refused" =>
  error !== undefined && upstreamMs === undefined ? "refused" : "ended"

/** Describes a request that has started. The key is often known by the time that this is called. */
export const describeStart = (
  request: Request,
  target: RoutedRequest | undefined,
  key: KeyRecord | undefined
): Detail => ({
  at: request.startedAt,
  request_id: request.requestId,
  method: request.wire.method,
  route: target?.route ?? "unrouted",
  client: request.client,
  ...ownerOf(key)
})

export const describeEnd = (
  request: Request,
  target: RoutedRequest | undefined,
  key: KeyRecord | undefined,
  outcome: RequestOutcome,
  endedAt: number
): Detail => {
  const { bill, error, model, provider, status, streamed } = outcome
  return {
    at: endedAt,
    request_id: request.requestId,
    route: target?.route ?? "unrouted",
    provider: provider ?? target?.provider ?? "none",
    model: model ?? null,
    service: target?.service?.service.name ?? null,
    ...ownerOf(key),
    status,
    code: error?.code ?? null,
    latency_ms: endedAt - request.startedAt,
    streamed,
    input_tokens: bill.usage.input ?? null,
    output_tokens: bill.usage.output ?? null,
    cost_usd: bill.costNanos === null ? null : toDollars(bill.costNanos)
  }
}

const ownerOf = (key: KeyRecord | undefined): Detail => ({
  key_id: key?.id ?? null,
  key_prefix: key?.prefix ?? null,
  project: key === undefined ? null : Option.getOrNull(key.projectName)
})
