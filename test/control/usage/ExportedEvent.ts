import { DateTime, Stream } from "effect"
import type { UsageEvent } from "../../../src/control/api/usage/UsageApi.ts"
import * as UsageExport from "../../../src/control/usage/UsageExport.ts"

/** The export of one event with the given members: the header and a line. */
export const exportedCsv = (members: Partial<UsageEvent>) =>
  UsageExport.csv(Stream.succeed([{ ...event, ...members }])).pipe(Stream.decodeText, Stream.mkString)

const event: UsageEvent = {
  id: "0198c0de-0000-7000-8000-000000000001",
  created_at: DateTime.makeUnsafe("2026-01-01T00:00:00Z"),
  request_id: "r-1",
  key_id: "0198c0de-0000-7000-8000-000000000002",
  key_name: null,
  key_prefix: null,
  project_id: null,
  project_name: null,
  team_id: null,
  route: "openai",
  model: null,
  provider: "openai",
  status: "success",
  status_code: 200,
  error_code: null,
  denied_by: null,
  denied_in_layer: null,
  latency_ms: 12,
  upstream_ms: null,
  first_byte_ms: null,
  gateway_ms: null,
  usage_source: "status_only",
  input_tokens: null,
  output_tokens: null,
  total_tokens: null,
  cached_input_tokens: null,
  cache_write_tokens: null,
  reasoning_tokens: null,
  cached_share: null,
  estimated_cost_usd: null,
  cost_source: "none",
  cost_mode: null,
  pricing_rule_name: null,
  streamed: false,
  service_name: null,
  http_method: null,
  endpoint_path: null,
  endpoint_template: null,
  task_id: null,
  run_id: null,
  trace_id: null,
  subject: null,
  end_user: null,
  session_id: null,
  client: null,
  fallback_count: 0,
  guardrail_action_count: 0,
  pre_call_ms: 0
}
