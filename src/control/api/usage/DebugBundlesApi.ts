import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { refusals } from "../schema/Errors.ts"
import { Id, Timestamp } from "../schema/Fields.ts"
import { requires } from "../schema/Security.ts"

const Text = Schema.NullOr(Schema.String)
const Trace = Schema.Array(Schema.String)

/**
 * What the gateway did with one request, put together from its usage record and its guardrails' executions (reference
 * §2.13). Traces are lines such as `policy_version=1`, `pre_call:pii-redact:allow`, `provider=upstream`.
 * `upstream_latency_ms` is of all upstreams together. Of bodies only keyed fingerprints are kept.
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
      "`keyed-sha256:` and 128 bits in base64url, of the request's body as the client sent it. Equal bodies have equal hashes within one installation; the key never leaves it. Null for an empty body, one that was not read whole, and on the wildcard"
  }),
  response_hash: Text.annotate({
    description:
      "The same of the upstream's answer as the client got it. Null for an empty answer, one that did not end whole, the gateway's own refusals, and on the wildcard"
  }),
  redaction_version: Schema.Literal(1),
  created_at: Timestamp
})
export type DebugBundle = typeof DebugBundle.Type

export const DebugBundlesApi = HttpApiGroup.make("debug-bundles")
  .annotate(OpenApi.Description, "What was decided on the way of one request.")
  .add(
    HttpApiEndpoint.get("get", "/:request_id", {
      params: { request_id: Schema.String.check(Schema.isPattern(/^[\x21-\x7e]{1,128}$/)) },
      success: DebugBundle,
      error: refusals("debug_bundle_not_found")
    })
      .annotate(OpenApi.Summary, "Show how a request was treated")
      .annotateMerge(requires("usage:read"))
  )
  .prefix("/debug-bundles")
