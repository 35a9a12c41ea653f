import { Effect, Metric, type Scope } from "effect"
import { toDollars } from "../../policy/Price.ts"
import type { RoutedRequest } from "../../policy/Routing.ts"
import * as MetricLabel from "../../policy/routes/MetricLabel.ts"
import * as CallbackMetrics from "../../process/CallbackMetrics.ts"
import type { ErrorCode } from "../GatewayError.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import * as CallerMetrics from "./CallerMetrics.ts"
import type { RequestOutcome } from "./RequestOutcome.ts"

/** The bucket boundaries of duration histograms, in milliseconds. */
export const boundaries = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000]
const inSeconds = boundaries.map((ms) => ms / 1000)
const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })

/** Each duration is published twice: in seconds, and in milliseconds under the metric's older name. */
const durationHistograms = (name: string, nameInMs: string, description: string) => ({
  seconds: Metric.histogram(name, { description, boundaries: inSeconds, attributes: { unit: "s" } }),
  ms: Metric.histogram(nameInMs, { description: `${description}, in milliseconds`, boundaries })
})

const requests = counter("gateway_requests_total", "Requests on the proxy listener")
const errors = counter("gateway_errors_total", "Responses with status 400 or above")
const tokens = counter("gateway_tokens_total", "Tokens of settled requests")
const cost = counter("gateway_estimated_cost_total", "Cost of settled requests, in US dollars")
const aborts = counter("gateway_stream_aborts_total", "Responses that ended before they were complete")
const selections = counter("gateway_provider_selections_total", "Requests sent to an upstream")
const fallbacks = counter("gateway_provider_fallbacks_total", "Requests that fell back to a second upstream")
const fallbacksByProvider = counter(
  "gateway_provider_fallbacks_by_provider_total",
  "Requests that fell back to a second upstream, by both providers and the reason"
)
const byDimension = counter("gateway_requests_by_dimension_total", "Requests by route, provider and status class")
const denials = counter("gateway_denials_total", "Refusals by kind, route and code")
const errorsByCode = counter(
  "gateway_errors_by_code_total",
  "Responses with status 400 or above by route and code; the code of an upstream's own error is http_<status>"
)
const controlStateUnavailable = counter(
  "gateway_control_state_unavailable_total",
  "Requests refused because limits could not be checked or an unknown key could not be looked up"
)
const duration = durationHistograms(
  "gateway_request_duration_seconds",
  "gateway_request_duration_ms",
  "From the request's headers to the end of the response"
)
const upstreamDuration = durationHistograms(
  "gateway_upstream_duration_seconds",
  "gateway_upstream_duration_ms",
  "From the request to the upstream to the end of its response"
)
const firstByte = durationHistograms(
  "gateway_time_to_first_byte_seconds",
  "gateway_first_token_latency_ms",
  "From the request to the upstream to the first byte of its response"
)
const active = Metric.gauge("gateway_active_requests", { description: "Requests running on the proxy listener" })
const activeStreams = Metric.gauge("gateway_active_streams", { description: "Requested streams that are running" })

const refusals: Partial<Record<ErrorCode, Metric.Counter<number>>> = Object.fromEntries(
  (
    [
      ["gateway_auth_failures_total", authenticationCodes()],
      ["gateway_policy_denials_total", ["policy_denied", "disabled_route", "guardrail_forbidden"]],
      [
        "gateway_rate_limit_rejections_total",
        ["rate_limit_exceeded", "token_rate_limit_exceeded", "concurrency_limit_exceeded"]
      ],
      ["gateway_budget_rejections_total", ["budget_exceeded"]],
      ["gateway_body_admission_rejections_total", ["gateway_overloaded"]]
    ] as const
  ).flatMap(([name, codes]) => {
    const metric = counter(name, "Requests refused for the reason in the metric's name")
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
    "expired_virtual_key",
    "missing_identity_authorization",
    "malformed_identity_authorization",
    "invalid_identity_token",
    "expired_identity_token",
    "invalid_identity_audience",
    "invalid_identity_issuer",
    "untrusted_gateway_identity",
    "insufficient_identity_authorization"
  ]
}

const denialKind = (code: ErrorCode): string | undefined => {
  if (authenticationCodes().includes(code)) return "auth"
  if (code === "budget_exceeded") return "budget"
  if (code === "gateway_overloaded") return "body_admission"
  if (code.endsWith("rate_limit_exceeded") || code === "concurrency_limit_exceeded") return "rate_limit"
  return code === "policy_denied" || code === "disabled_route" || code === "guardrail_forbidden" ? "policy" : undefined
}

interface RequestGroup {
  readonly requests: Array<number>
  readonly duration: CallbackMetrics.HistogramValues
  readonly upstream: CallbackMetrics.HistogramValues
  readonly firstByte: CallbackMetrics.HistogramValues
}

/** Counts errors by route and code. An attack makes thousands a second, so they are plain numbers. */
const makeErrorCounter = (series: CallbackMetrics.CallbackMetrics) => {
  const counts = new Map<string, number>()
  const unavailable: ErrorCode = "control_state_unavailable"
  let unavailableCount = 0
  series.counter(controlStateUnavailable, () => unavailableCount)
  return (route: string, code: string): void => {
    if (code === unavailable) unavailableCount++
    const name = `${route} ${code}`
    const count = counts.get(name)
    counts.set(name, (count ?? 0) + 1)
    if (count === undefined) {
      series.counter(Metric.withAttributes(errorsByCode, { route, code }), () => counts.get(name) ?? 0)
    }
  }
}

/** Labels contain no text that clients choose, except model names. `CallerMetrics` limits their number. */
export interface RequestMetrics {
  readonly begin: () => void
  /** Counts a response that starts streaming. Call the returned function when the stream ends. */
  readonly beginStream: () => () => void
  readonly end: (
    target: RoutedRequest | undefined,
    outcome: RequestOutcome,
    durationMs: number,
    key: KeyRecord | undefined
  ) => void
}

/** Updates plain numbers, because an Effect per request would be too slow. They are read when metrics are collected. */
export const make: Effect.Effect<RequestMetrics, never, Scope.Scope> = Effect.gen(function* () {
  const context = yield* Effect.context<never>()
  const series = yield* CallbackMetrics.make
  const countCaller = CallerMetrics.make(series)
  const groups = new Map<string, RequestGroup>()
  let runningRequests = 0
  let runningStreams = 0
  const countError = makeErrorCounter(series)
  const totals = { requests: 0, errors: 0, tokens: 0, costNanos: 0, aborts: 0, selections: 0, fallbacks: 0 }

  series.gauge(active, () => runningRequests)
  series.gauge(activeStreams, () => runningStreams)
  series.counter(requests, () => totals.requests)
  series.counter(errors, () => totals.errors)
  series.counter(tokens, () => totals.tokens)
  series.counter(cost, () => toDollars(totals.costNanos))
  series.counter(aborts, () => totals.aborts)
  series.counter(selections, () => totals.selections)
  series.counter(fallbacks, () => totals.fallbacks)

  const groupOf = (route: string, provider: string, streamed: boolean): RequestGroup => {
    const key = `${route} ${provider} ${streamed}`
    const found = groups.get(key)
    if (found !== undefined) return found
    const created: RequestGroup = {
      requests: [0, 0, 0, 0, 0, 0],
      duration: new CallbackMetrics.HistogramValues(boundaries),
      upstream: new CallbackMetrics.HistogramValues(boundaries),
      firstByte: new CallbackMetrics.HistogramValues(boundaries)
    }
    groups.set(key, created)
    const labels = { route, provider, stream: String(streamed) }
    for (const [{ ms, seconds }, observed] of [
      [duration, created.duration],
      [upstreamDuration, created.upstream],
      [firstByte, created.firstByte]
    ] as const) {
      series.histogram(Metric.withAttributes(seconds, labels), observed, 1 / 1000)
      series.histogram(Metric.withAttributes(ms, { ...labels, route: MetricLabel.of(route) }), observed, 1)
    }
    return created
  }

  /** Registers a counter for a status class when its first request ends. It sums streamed and unstreamed requests. */
  const countClass = (route: string, provider: string, statusClass: number) =>
    series.counter(
      Metric.withAttributes(byDimension, {
        route: MetricLabel.of(route),
        provider,
        status_class: `${statusClass}xx`
      }),
      () => [true, false].reduce((total, streamed) => total + requestsOf(route, provider, streamed, statusClass), 0)
    )
  const requestsOf = (route: string, provider: string, streamed: boolean, statusClass: number) =>
    groups.get(`${route} ${provider} ${streamed}`)?.requests[statusClass] ?? 0

  return {
    begin: () => {
      runningRequests++
    },
    beginStream: () => {
      runningStreams++
      return () => {
        runningStreams--
      }
    },
    end: (target, outcome, durationMs, key) => {
      const { aborted, bill, error, fallback, firstByteMs, status, streamed, upstreamMs } = outcome
      const route = target?.route ?? "unrouted"
      const provider = outcome.provider ?? target?.provider ?? "none"
      const kind = groupOf(route, provider, streamed)
      const statusClass = Math.floor(status / 100)
      runningRequests--
      totals.requests++
      if (kind.requests[statusClass] === 0 && requestsOf(route, provider, !streamed, statusClass) === 0) {
        countClass(route, provider, statusClass)
      }
      kind.requests[statusClass]!++
      if (key !== undefined) countCaller(key, provider, outcome)
      if (status >= 400) {
        totals.errors++
        countError(route, error?.code ?? `http_${status}`)
      }
      if (aborted) totals.aborts++
      if (upstreamMs !== undefined) totals.selections += fallback === undefined ? 1 : 2
      if (fallback !== undefined) {
        const { from, reason, to } = fallback
        totals.fallbacks++
        Metric.withAttributes(fallbacksByProvider, { from_provider: from, to_provider: to, reason }).updateUnsafe(
          1,
          context
        )
      }
      totals.tokens += bill.usage.total ?? 0
      totals.costNanos += bill.costNanos ?? 0
      kind.duration.add(durationMs)
      if (upstreamMs !== undefined) kind.upstream.add(upstreamMs)
      if (firstByteMs !== undefined) kind.firstByte.add(firstByteMs)
      const denial = error === undefined || upstreamMs !== undefined ? undefined : denialKind(error.code)
      if (error !== undefined && denial !== undefined) {
        refusals[error.code]?.updateUnsafe(1, context)
        Metric.withAttributes(denials, { kind: denial, route: MetricLabel.of(route), reason: error.code }).updateUnsafe(
          1,
          context
        )
      }
    }
  }
})
