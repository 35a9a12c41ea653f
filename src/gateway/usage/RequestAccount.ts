import { Option } from "effect"
import * as Headers from "../../http/Headers.ts"
import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import type { Facts } from "../../policy/facts/Facts.ts"
import type { Execution } from "../../policy/Guardrail.ts"
import type { RoutedRequest } from "../../policy/Routing.ts"
import type { Provider } from "../../policy/routes/CanonicalRoute.ts"
import type { UpstreamObject } from "../../policy/routes/UpstreamObjects.ts"
import type { ServiceCall } from "../../policy/ServiceCall.ts"
import { closestTemplate } from "../../policy/ServicePricing.ts"
import type { DenialRecord, UsageRecord } from "../../state/UsageRecord.ts"
import type { GatewayError } from "../GatewayError.ts"
import type { Request } from "../request/Request.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { Bill } from "./Billing.ts"

export interface RequestAccount {
  readonly request: Request
  readonly target: RoutedRequest
  readonly key: KeyRecord
  readonly facts: Facts
  readonly policy: EffectivePolicy | undefined
  readonly denial: DenialRecord | undefined
  readonly status: number
  readonly error: GatewayError | undefined
  readonly bill: Bill
  readonly provider: Provider
  readonly fallbackCount: number
  readonly fallbackReason?: string | undefined
  readonly upstreamMs?: number | undefined
  readonly firstByteAt?: number | undefined
  readonly subject?: string | undefined
  readonly guardrails: ReadonlyArray<Execution> | undefined
  readonly objects?: ReadonlyArray<UpstreamObject> | undefined
  readonly requestHash?: string | undefined
  readonly responseHash?: string | undefined
  readonly endedAt: number
}

export const toRecord = (account: RequestAccount): UsageRecord => {
  const { bill, error, facts, key, policy, request, target } = account
  const latencyMs = account.endedAt - request.startedAt
  const record: UsageRecord = {
    id: request.recordId,
    created_at: request.startedAt,
    request_id: request.requestId,
    key_id: key.id,
    project_id: Option.getOrUndefined(key.projectId),
    team_id: Option.getOrUndefined(key.teamId),
    route: target.route,
    model: recordableName(facts.models[0]),
    provider: account.provider,
    status_code: account.status,
    error_code: error?.code,
    latency_ms: latencyMs,
    upstream_ms: account.upstreamMs,
    first_byte_ms: account.firstByteAt === undefined ? undefined : account.firstByteAt - request.startedAt,
    gateway_ms: account.upstreamMs === undefined ? undefined : Math.max(0, latencyMs - account.upstreamMs),
    usage_source: bill.usageSource,
    input_tokens: bill.usage.input,
    output_tokens: bill.usage.output,
    total_tokens: bill.usage.total,
    cached_input_tokens: bill.usage.cachedInput,
    cache_write_tokens: bill.usage.cacheWrite,
    reasoning_tokens: bill.usage.reasoning,
    cost_nanos: bill.costNanos,
    cost_source: bill.costSource,
    cost_mode: bill.costMode ?? (target.config.mode === "direct_upstream_passthrough" ? "none" : undefined),
    pricing_rule_name: bill.pricingRule,
    streamed: facts.stream,
    task_id: request.taskId,
    run_id: request.runId,
    trace_id: Headers.traceId(request.traceparent),
    subject: recordableName(account.subject),
    end_user: recordableName(facts.endUser),
    session_id: request.sessionId,
    client: request.client,
    fallback_count: account.fallbackCount,
    fallback_reason: account.fallbackReason,
    policy_version: policy?.version,
    tools: facts.tools || undefined,
    estimated_input_tokens: facts.inputTokens || undefined,
    denial: account.denial,
    guardrail_action_count: account.guardrails?.length,
    guardrails: account.guardrails,
    objects: account.objects,
    request_hash: account.requestHash,
    response_hash: account.responseHash
  }
  return target.service === undefined ? record : { ...record, ...serviceColumns(target.service) }
}

const serviceColumns = ({ method, path, service }: ServiceCall): Partial<UsageRecord> => ({
  service_name: service.name,
  http_method: method,
  endpoint_path: path.slice(0, 1024),
  endpoint_template: closestTemplate(service.pricing.endpoints, method, path)?.path_template
})

/** Returns a name that a client chose, truncated and without control characters. */
export const recordableName = (name: string | undefined): string | undefined =>
  name
    ?.slice(0, 256)
    // `slice` may have split a surrogate pair.
    .toWellFormed()
    .replace(/\p{Cc}/gu, "\ufffd")
