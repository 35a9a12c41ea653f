import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { refusals } from "../schema/Errors.ts"
import { Id, Timestamp } from "../schema/Fields.ts"
import { operation } from "../schema/Security.ts"

const Text = Schema.NullOr(Schema.String)
const Trace = Schema.Array(Schema.String)

/**
 * Explains how the gateway handled one request. Its sources are the usage record and the guardrail executions. Traces
 * are lines such as `policy_version=1`, `pre_call:pii-redact:allow`, `provider=upstream`. `upstream_latency_ms` is the
 * sum over all upstreams that the gateway tried. Only keyed hashes of the bodies are stored.
 */
export const DebugBundle = Schema.Struct({
  request_id: Schema.String,
  key_id: Id,
  project_id: Schema.NullOr(Id),
  route: Schema.String,
  model: Text,
  provider: Schema.String,
  service_name: Text,
  trace_id: Text,
  status_code: Schema.Int,
  error_code: Text,
  latency_ms: Schema.Int,
  policy_trace: Trace,
  guardrail_trace: Trace,
  /** The executions that `guardrail_trace` sums up. */
  guardrails: Schema.Array(
    Schema.Struct({
      mode: Schema.String,
      name: Schema.String,
      action: Schema.String,
      reason: Text,
      latency_ms: Schema.Int
    })
  ),
  selection_trace: Trace,
  fallback_history: Schema.Array(
    Schema.Struct({
      from_provider: Text,
      to_provider: Schema.String,
      reason: Text,
      status_code: Schema.NullOr(Schema.Int),
      latency_ms: Schema.NullOr(Schema.Int)
    })
  ),
  upstream_latency_ms: Schema.NullOr(Schema.Int),
  request_hash: Text.annotate({
    description:
      "A keyed hash of the request body as the client sent it: `keyed-sha256:` and 128 bits in base64url. Equal bodies have equal hashes within one installation. The hash key never leaves the installation. Null for an empty body, for a body that was not read completely, and for requests that match no route."
  }),
  response_hash: Text.annotate({
    description:
      "A keyed hash of the upstream's response as the client received it, in the format of `request_hash`. Null for an empty or incomplete response, for refusals of the gateway, and for requests that match no route."
  }),
  redaction_version: Schema.Literal(1),
  created_at: Timestamp
})
export type DebugBundle = typeof DebugBundle.Type

export const DebugBundlesApi = HttpApiGroup.make("debug-bundles")
  .annotate(OpenApi.Description, "The decisions of the gateway about one request.")
  .add(
    HttpApiEndpoint.get("get", "/:request_id", {
      params: { request_id: Schema.String.check(Schema.isPattern(/^[\x21-\x7e]{1,128}$/)) },
      success: DebugBundle,
      error: refusals("debug_bundle_not_found")
    }).annotateMerge(operation("Show how the gateway handled a request", "usage:read"))
  )
  .prefix("/debug-bundles")
