import { type Context, Effect, Metric } from "effect"
import type { Bill } from "./Billing.ts"
import type { ErrorCode, GatewayError } from "./GatewayError.ts"
import type { Provider } from "./model/CanonicalRoute.ts"
import { toDollars } from "./model/Price.ts"
import type { Target } from "./Target.ts"

/** How a request ended. */
export interface Ended {
  readonly status: number
  readonly error: GatewayError | undefined
  readonly streamed: boolean
  /** The client has seen the beginning of an answer and not its end. */
  readonly aborted: boolean
  /** Who answered; none when the gateway refused. */
  readonly provider?: Provider
  readonly fallbackCount?: number
  readonly bill: Bill
  readonly upstreamMs?: number
  readonly firstByteMs?: number
}

const boundaries = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000]
const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })
const histogram = (name: string, description: string) => Metric.histogram(name, { description, boundaries })

const requests = counter("gateway_requests_total", "Requests on the proxy listener")
const errors = counter("gateway_errors_total", "Requests answered with status 400 or above")
const tokens = counter("gateway_tokens_total", "Tokens of settled requests")
const cost = counter("gateway_estimated_cost_total", "Cost of settled requests, in US dollars")
const aborts = counter("gateway_stream_aborts_total", "Answers that ended before they were whole")
const selections = counter("gateway_provider_selections_total", "Requests sent to an upstream")
const fallbacks = counter("gateway_provider_fallbacks_total", "Requests that a second upstream answered")
const byDimension = counter("gateway_requests_by_dimension_total", "Requests by route, provider and status class")
const denials = counter("gateway_denials_total", "Refusals by kind, route and code")
const duration = histogram("gateway_request_duration_ms", "From the request's headers to the end of the answer")
const upstreamDuration = histogram(
  "gateway_upstream_duration_ms",
  "From the request to the upstream to the end of its answer"
)
const firstByte = histogram(
  "gateway_first_token_latency_ms",
  "From the request to the upstream to the first byte of its answer"
)
const active = Metric.gauge("gateway_active_requests")

const refusals: Partial<Record<ErrorCode, Metric.Counter<number>>> = Object.fromEntries(
  (
    [
      ["gateway_auth_failures_total", authenticationCodes()],
      ["gateway_policy_denials_total", ["policy_denied", "disabled_route", "guardrail_forbidden"]],
      ["gateway_rate_limit_rejections_total", ["rate_limit_exceeded", "token_rate_limit_exceeded"]],
      ["gateway_budget_rejections_total", ["budget_exceeded"]],
      ["gateway_body_admission_rejections_total", ["gateway_overloaded"]]
    ] as const
  ).flatMap(([name, codes]) => {
    const metric = counter(name, "Refusals of this kind")
    return codes.map((code) => [code, metric])
  })
)

function authenticationCodes(): ReadonlyArray<ErrorCode> {
  return [
    "missing_authorization",
    "malformed_authorization",
    "invalid_virtual_key",
    "disabled_virtual_key",
    "revoked_virtual_key",
    "expired_virtual_key"
  ]
}

const kindOf = (code: ErrorCode): string | undefined => {
  if (authenticationCodes().includes(code)) return "auth"
  if (code === "budget_exceeded") return "budget"
  if (code === "gateway_overloaded") return "body_admission"
  if (code.endsWith("rate_limit_exceeded")) return "rate_limit"
  return code === "policy_denied" || code === "disabled_route" || code === "guardrail_forbidden" ? "policy" : undefined
}

/** The labelled instances, made once: labelling a metric anew for every request costs more than raising it. */
interface Labelled {
  readonly byDimension: Metric.Counter<number>
  readonly duration: Metric.Histogram<number>
  readonly upstream: Metric.Histogram<number>
  readonly firstByte: Metric.Histogram<number>
}

const label = (route: string): string => route.replace(/[^A-Za-z0-9\-_.]/g, "").slice(0, 128)

/** Labels are closed sets: no key, project or request id ever becomes one (reference §13). */
export interface Telemetry {
  readonly begin: () => void
  readonly end: (target: Target | undefined, ended: Ended, durationMs: number) => void
}

/** Metrics are raised without an effect: this runs for every request. */
export const make: Effect.Effect<Telemetry> = Effect.map(Effect.context<never>(), (context: Context.Context<never>) => {
  const labelled = new Map<string, Labelled>()
  let requestsNow = 0

  const labels = (route: string, provider: string, { status, streamed }: Ended): Labelled => {
    const statusClass = `${Math.floor(status / 100)}xx`
    const key = `${route} ${provider} ${statusClass} ${streamed}`
    const found = labelled.get(key)
    if (found !== undefined) return found
    const of = { route: label(route), provider }
    const timed = { ...of, stream: String(streamed) }
    const made: Labelled = {
      byDimension: Metric.withAttributes(byDimension, { ...of, status_class: statusClass }),
      duration: Metric.withAttributes(duration, timed),
      upstream: Metric.withAttributes(upstreamDuration, timed),
      firstByte: Metric.withAttributes(firstByte, timed)
    }
    labelled.set(key, made)
    return made
  }

  return {
    begin: () => active.updateUnsafe(++requestsNow, context),
    end: (target, ended, durationMs) => {
      const { aborted, bill, error, fallbackCount = 0, firstByteMs, status, upstreamMs } = ended
      const route = target?.route ?? "unrouted"
      const of = labels(route, ended.provider ?? target?.provider ?? "none", ended)
      active.updateUnsafe(--requestsNow, context)
      requests.updateUnsafe(1, context)
      of.byDimension.updateUnsafe(1, context)
      of.duration.updateUnsafe(durationMs, context)
      if (status >= 400) errors.updateUnsafe(1, context)
      if (aborted) aborts.updateUnsafe(1, context)
      if (upstreamMs !== undefined) selections.updateUnsafe(1, context)
      if (fallbackCount > 0) fallbacks.updateUnsafe(1, context)
      if (bill.usage.total !== undefined) tokens.updateUnsafe(bill.usage.total, context)
      if (bill.costNanos !== null) cost.updateUnsafe(toDollars(bill.costNanos), context)
      if (upstreamMs !== undefined) of.upstream.updateUnsafe(upstreamMs, context)
      if (firstByteMs !== undefined) of.firstByte.updateUnsafe(firstByteMs, context)
      // what became of an exchange is no denial, also where the code is shared with one (`gateway_overloaded`)
      const kind = error === undefined || upstreamMs !== undefined ? undefined : kindOf(error.code)
      if (error !== undefined && kind !== undefined) {
        refusals[error.code]?.updateUnsafe(1, context)
        Metric.withAttributes(denials, { kind, route: label(route), reason: error.code }).updateUnsafe(1, context)
      }
    }
  }
})
