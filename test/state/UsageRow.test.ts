import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { UsageRecord } from "../../src/state/UsageRecord.ts"
import * as UsageRow from "../../src/state/UsageRow.ts"

describe("UsageRow", () => {
  it("has a field for each column, in their order, whatever the texts are", () => {
    fc.assert(
      fc.property(record, (record) => {
        const fields = UsageRow.columns.map(([name]) => {
          const value = record[name]
          const shown = typeof value === "object" ? JSON.stringify(value) : String(value ?? "")
          return shown.replaceAll(/[\t\n]/g, " ")
        })
        assert.deepStrictEqual(UsageRow.encode(record).split("\t"), fields)
      })
    )
  })
})

const count = fc.nat()
const text = fc.string({ unit: fc.constantFrom("a", "é", "\\", "\t", "\n", "\r") })

const record: fc.Arbitrary<UsageRecord> = fc.record(
  {
    id: fc.uuid(),
    created_at: count,
    request_id: text,
    key_id: fc.uuid(),
    project_id: fc.uuid(),
    route: fc.constant("/v1/messages" as const),
    model: text,
    provider: fc.constantFrom("upstream", "compat"),
    status_code: count,
    error_code: text,
    latency_ms: count,
    upstream_ms: count,
    first_byte_ms: count,
    gateway_ms: count,
    usage_source: fc.constantFrom("reported", "estimated", "status_only"),
    input_tokens: count,
    output_tokens: count,
    total_tokens: count,
    cached_input_tokens: count,
    cache_write_tokens: count,
    reasoning_tokens: count,
    cost_nanos: count,
    cost_source: fc.constantFrom("none", "price_table"),
    streamed: fc.boolean(),
    task_id: text,
    run_id: text,
    trace_id: text,
    subject: text,
    end_user: text,
    session_id: text,
    client: fc.constantFrom("curl", "other"),
    fallback_count: count,
    fallback_reason: text,
    service_name: text,
    http_method: text,
    endpoint_path: text,
    endpoint_template: text,
    cost_mode: fc.constantFrom("fixed", "none"),
    pricing_rule_name: text,
    policy_version: count,
    tools: fc.boolean(),
    estimated_input_tokens: count,
    denial: fc.constant({ check: "models", layer: "project" }),
    guardrail_action_count: count,
    request_hash: fc.stringMatching(/^[\w-]{22}$/),
    response_hash: fc.stringMatching(/^[\w-]{22}$/),
    guardrails: fc.constant([
      {
        guardrail_name: "pii-redact",
        mode: "pre_call",
        action: "modify",
        failure_policy: "fail_closed",
        latency_ms: 3,
        reason: "a\ttab",
        metadata: {}
      }
    ])
  },
  {
    requiredKeys: [
      "id",
      "created_at",
      "request_id",
      "key_id",
      "route",
      "provider",
      "status_code",
      "latency_ms",
      "usage_source",
      "cost_source",
      "streamed",
      "fallback_count"
    ]
  }
)
