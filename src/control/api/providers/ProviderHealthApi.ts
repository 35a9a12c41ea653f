import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Provider } from "../../../policy/routes/CanonicalRoute.ts"
import { refusals } from "../schema/Errors.ts"
import { RangeTime, Timestamp } from "../schema/Fields.ts"
import { operation, skipsUnreadable } from "../schema/Security.ts"

const Count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))
const Milliseconds = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 86_400_000 }))

/** The last checked or recorded health of a provider row or service. Routing ignores it. */
export const HealthState = Schema.Struct({
  name: Schema.String,
  provider: Provider,
  status: Schema.Literals(["healthy", "degraded", "unhealthy", "unknown"]),
  circuit_state: Schema.Literals(["closed", "open", "half_open"]).annotate({
    description:
      "The state that an operator recorded. A successful check closes the circuit. A failed check does not open it, and requests continue."
  }),
  active_check_ok: Schema.NullOr(Schema.Boolean),
  passive_success_count: Count,
  passive_failure_count: Count,
  consecutive_failures: Count,
  average_latency_ms: Schema.NullOr(Milliseconds),
  last_error_code: Schema.NullOr(Schema.String).annotate({
    description:
      "The error of a check: unreachable, timeout, not_http, busy (no connection was free), http_<status>, credential_refused (the server responds but refuses the credential), missing_upstream_url, invalid_upstream_url."
  }),
  cooldown_until: Schema.NullOr(Timestamp),
  checked_at: Schema.NullOr(Timestamp),
  status_since: Schema.NullOr(Timestamp).annotate({
    description: "When the status became what it is. `null` if it has not changed since an older version recorded it."
  }),
  updated_at: Timestamp
})
export type HealthState = typeof HealthState.Type

const { fields } = HealthState

/** A complete state that replaces the stored state. Omitted fields become `null` or zero. */
export const NewHealthState = Schema.Struct({
  name: Schema.String.check(Schema.isBetweenLength(1, 120)),
  provider: fields.provider,
  status: fields.status,
  circuit_state: fields.circuit_state,
  active_check_ok: Schema.optionalKey(fields.active_check_ok),
  passive_success_count: Schema.optionalKey(fields.passive_success_count),
  passive_failure_count: Schema.optionalKey(fields.passive_failure_count),
  consecutive_failures: Schema.optionalKey(fields.consecutive_failures),
  average_latency_ms: Schema.optionalKey(fields.average_latency_ms),
  last_error_code: Schema.optionalKey(Schema.NullOr(Schema.String.check(Schema.isBetweenLength(1, 128)))),
  cooldown_until: Schema.optionalKey(fields.cooldown_until),
  checked_at: Schema.optionalKey(fields.checked_at),
  /** These are accepted but ignored, so that clients can send back a state exactly as they read it. */
  status_since: Schema.optionalKey(fields.status_since),
  updated_at: Schema.optionalKey(Timestamp)
})
export type NewHealthState = typeof NewHealthState.Type

export const HealthResults = Schema.Struct({ results: Schema.Array(HealthState) })
export type HealthResults = typeof HealthResults.Type

export const ObservedHealth = Schema.Struct({
  name: Schema.String,
  request_count: Schema.Int,
  error_count: Schema.Int,
  timeout_count: Schema.Int,
  fallback_count: Schema.Int,
  total_latency_ms: Schema.Int
})
export type ObservedHealth = typeof ObservedHealth.Type

/** `from` is inclusive, `to` exclusive. The default range is the last 24 hours. */
export const ObservedQuery = Schema.Struct({
  from: Schema.optionalKey(RangeTime),
  to: Schema.optionalKey(RangeTime)
})
export type ObservedQuery = typeof ObservedQuery.Type

export const ProviderHealthApi = HttpApiGroup.make("provider-health")
  .annotate(
    OpenApi.Description,
    "Request statistics and check results of providers and services. They do not affect routing."
  )
  .add(
    HttpApiEndpoint.get("observed", "/", {
      query: ObservedQuery.fields,
      success: Schema.Array(ObservedHealth),
      error: refusals("invalid_usage_query")
    }).annotateMerge(operation("Count requests, errors and timeouts by provider and service", "usage:read")),
    HttpApiEndpoint.get("states", "/state", { success: Schema.Array(HealthState) })
      .annotateMerge(skipsUnreadable)
      .annotateMerge(operation("List recorded states", "usage:read")),
    HttpApiEndpoint.post("put", "/state", { payload: NewHealthState, success: HealthState }).annotateMerge(
      operation("Record a state by hand", "providers:update")
    ),
    HttpApiEndpoint.post("check", "/check", { success: HealthResults })
      .annotateMerge(operation("Check every enabled provider and service now", "providers:update"))
      .annotate(
        OpenApi.Description,
        "Upstreams, including those of the environment, are checked at /v1/models with their credential. A status below 500 is healthy. 401 and 403 are degraded if a credential was sent. A service must respond with 2xx at its health_check_path or, if it has none, with any status below 500."
      )
  )
  .prefix("/provider-health")
