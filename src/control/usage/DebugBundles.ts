import { Context, Effect, Layer, Schema } from "effect"
import { Database } from "../../services/Database.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { DebugBundle } from "../api/usage/DebugBundlesApi.ts"
import { Count, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"

export class DebugBundles extends Context.Service<
  DebugBundles,
  {
    /** Clients may use a request id twice. The latest request counts. */
    readonly get: (requestId: string) => Effect.Effect<DebugBundle, Refused<"debug_bundle_not_found"> | StoreFailure>
  }
>()("svc/control/DebugBundles") {
  static readonly layer = Layer.suspend(() => Layer.effect(DebugBundles, make))
}

/** The limit is higher than the number of guardrails that a policy can name. */
const maxExecutions = 500

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  return DebugBundles.of({
    get: Effect.fn("DebugBundles.get")(function* (requestId) {
      const record = yield* requestRows.first(sql`
        SELECT request_id, key_id, project_id, route, model, provider, service_name, endpoint_template, trace_id, status_code,
          error_code, latency_ms, upstream_ms, usage_source, cost_source, streamed, fallback_count, fallback_reason,
          policy_version, tools, estimated_input_tokens, denial, request_hash, response_hash, created_at
        FROM usage_events WHERE request_id = ${requestId} ORDER BY created_at DESC, id DESC LIMIT 1`)
      if (record === undefined) {
        return yield* new ControlError(
          "debug_bundle_not_found",
          "There is no record of this request id. Records are written within seconds after a request ends."
        )
      }
      const guardrails = yield* executionRows.all(sql`
        SELECT mode, guardrail_name, action, reason, latency_ms FROM guardrail_execution_events
        WHERE request_id = ${requestId} ORDER BY created_at, id LIMIT ${maxExecutions}`)
      return toDebugBundle(record, guardrails)
    }, toStoreFailures)
  })
})

const Text = Schema.NullOr(Schema.String)

const RequestRow = Schema.Struct({
  request_id: Schema.String,
  key_id: Schema.String,
  project_id: Text,
  route: Schema.String,
  model: Text,
  provider: Schema.String,
  service_name: Text,
  endpoint_template: Text,
  trace_id: Text,
  status_code: Schema.Int,
  error_code: Text,
  latency_ms: Count,
  upstream_ms: Schema.NullOr(Count),
  usage_source: Schema.String,
  cost_source: Schema.String,
  streamed: Schema.Boolean,
  fallback_count: Schema.Int,
  fallback_reason: Text,
  policy_version: Schema.NullOr(Count),
  tools: Schema.NullOr(Schema.Boolean),
  estimated_input_tokens: Schema.NullOr(Count),
  denial: Schema.NullOr(Schema.Struct({ check: Schema.String, layer: Schema.optionalKey(Text) })),
  request_hash: Text,
  response_hash: Text,
  created_at: Schema.DateTimeUtcFromDate
})

const ExecutionRow = Schema.Struct({
  mode: Schema.String,
  guardrail_name: Schema.String,
  action: Schema.String,
  reason: Text,
  latency_ms: Count
})

const requestRows = storedRows(RequestRow, { table: "usage_events", key: ["request_id"] })
const executionRows = storedRows(ExecutionRow, { table: "guardrail_execution_events", key: ["guardrail_name"] })

const traceEntry = (name: string, value: string | number | boolean | null | undefined): ReadonlyArray<string> =>
  value === null || value === undefined ? [] : [`${name}=${value}`]

/** The label tells operators that this is a keyed hash, not the SHA-256 of the body. */
const labelledHash = (hash: string | null): string | null => (hash === null ? null : `keyed-sha256:${hash}`)

const statusOfReason = (reason: string | null): number | null => {
  const [, status] = /^http_(\d{3})$/.exec(reason ?? "") ?? []
  return status === undefined ? null : Number(status)
}

const toDebugBundle = (
  record: typeof RequestRow.Type,
  guardrails: ReadonlyArray<typeof ExecutionRow.Type>
): DebugBundle => {
  const { denial, policy_version } = record
  return {
    request_id: record.request_id,
    key_id: record.key_id,
    project_id: record.project_id,
    route: record.route,
    model: record.model,
    provider: record.provider,
    service_name: record.service_name,
    trace_id: record.trace_id,
    status_code: record.status_code,
    error_code: record.error_code,
    latency_ms: record.latency_ms,
    policy_trace: [
      ...(policy_version === null ? ["policy_not_loaded"] : [`policy_version=${policy_version}`]),
      ...traceEntry("streamed", record.streamed),
      ...traceEntry("tools", record.tools),
      ...traceEntry("estimated_input_tokens", record.estimated_input_tokens),
      ...traceEntry("denied_by", denial?.check),
      ...traceEntry("denied_in_layer", denial?.layer)
    ],
    guardrail_trace: guardrails.map(({ action, guardrail_name, mode, reason }) =>
      [mode, guardrail_name, action, ...(reason === null ? [] : [reason])].join(":")
    ),
    guardrails: guardrails.map(({ guardrail_name, ...execution }) => ({ ...execution, name: guardrail_name })),
    selection_trace: [
      ...traceEntry("provider", record.provider),
      ...traceEntry("service", record.service_name),
      ...traceEntry("endpoint", record.endpoint_template),
      ...traceEntry("usage_source", record.usage_source),
      ...traceEntry("cost_source", record.cost_source),
      // This error occurred after the client received the response head, so the status does not show the error.
      ...traceEntry("terminal_error", record.status_code < 400 ? record.error_code : null)
    ],
    // Only requests to `/providers/compat/*` can fall back to another provider.
    fallback_history: Array.from({ length: Math.min(record.fallback_count, 1) }, () => ({
      from_provider: "compat",
      to_provider: record.provider,
      reason: record.fallback_reason,
      status_code: statusOfReason(record.fallback_reason),
      latency_ms: null
    })),
    upstream_latency_ms: record.upstream_ms,
    request_hash: labelledHash(record.request_hash),
    response_hash: labelledHash(record.response_hash),
    redaction_version: 1,
    created_at: record.created_at
  }
}
