import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as AllowList from "../../src/policy/AllowList.ts"
import { KeyPolicy, KeyPolicyPatch, neutral, patched } from "../../src/policy/KeyPolicy.ts"
import * as Limit from "../../src/policy/Limit.ts"

describe("KeyPolicy on the wire", () => {
  it.effect("null restricts nothing, and that is how a neutral policy is written", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual<unknown>(yield* Schema.encodeEffect(KeyPolicy)(neutral), unrestricted)
      assert.deepStrictEqual(yield* Schema.decodeUnknownEffect(KeyPolicy)(unrestricted), neutral)
    })
  )

  it.effect("comes back as it was sent", () =>
    Effect.gen(function* () {
      const decoded = yield* Schema.decodeUnknownEffect(KeyPolicy)(full)
      assert.deepStrictEqual(decoded.allowed_models, AllowList.allow(["large", "small"]))
      assert.deepStrictEqual(decoded.allowed_routes, AllowList.allow([]))
      assert.deepStrictEqual([decoded.rpm_limit, decoded.monthly_budget_usd], [Limit.limited(0), Limit.limited(12.5)])
      assert.deepStrictEqual<unknown>(yield* Schema.encodeEffect(KeyPolicy)(decoded), full)
    })
  )

  it.effect("a patch replaces what it names, clears what it names with null, and leaves the rest", () =>
    Effect.gen(function* () {
      const base = yield* Schema.decodeUnknownEffect(KeyPolicy)(full)
      const patch = yield* Schema.decodeUnknownEffect(KeyPolicyPatch)({ rpm_limit: null, allowed_models: ["large"] })
      assert.deepStrictEqual(patched(base, patch), {
        ...base,
        rpm_limit: Limit.unlimited,
        allowed_models: AllowList.allow(["large"])
      })
      assert.deepStrictEqual(patched(base, yield* Schema.decodeUnknownEffect(KeyPolicyPatch)({})), base)
    })
  )

  it.effect.each([
    { allowed_routes: ["/v1/unknown"] },
    { allowed_providers: ["upstream", "elsewhere"] },
    { allowed_services: ["Not A Name"] },
    { max_output_tokens_per_request: -1 },
    { unused_key_auto_disable_after_days: 0 },
    { max_stream_duration_seconds: 0 },
    { max_sse_event_bytes: 104_857_601 },
    { max_tool_call_count: 1.5 },
    { max_tool_schema_bytes: "5" },
    { max_concurrent_requests: -1 },
    { allowed_hours_utc: [24] },
    { allowed_hours_utc: [1.5] },
    { allowed_models: [""] },
    { allowed_models: Array.from({ length: 1001 }, (_, i) => `model-${i}`) },
    { rpm_limit: -1 },
    { rpm_limit: 1.5 },
    { rpm_limit: "5" },
    { tpm_limit: Number.MAX_SAFE_INTEGER + 1 },
    { daily_budget_usd: -0.01 },
    { monthly_budget_usd: 9_000_001 },
    { deny: "yes" },
    { max_request_body_bytes: 0 },
    { max_response_body_bytes: 104_857_601 }
  ])("refuses %j", (patch) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Schema.decodeUnknownEffect(KeyPolicyPatch)(patch))
      assert.include(error.message, Object.keys(patch)[0] ?? "nothing")
    })
  )

  it.effect("refuses a field that it does not know, by name", () =>
    Effect.gen(function* () {
      const strict = { onExcessProperty: "error" } as const
      const error = yield* Effect.flip(Schema.decodeUnknownEffect(KeyPolicyPatch)({ rpm_limt: 5 }, strict))
      assert.include(error.message, "rpm_limt")
    })
  )

  it("of two limits the stricter holds, and zero is a limit", () => {
    const [none, zero, five] = [Limit.unlimited, Limit.limited(0), Limit.limited(5)]
    assert.deepStrictEqual([Limit.strictest(none, five), Limit.strictest(five, none)], [five, five])
    assert.deepStrictEqual([Limit.strictest(zero, five), Limit.strictest(none, none)], [zero, none])
    assert.deepStrictEqual(
      [Limit.exceeds(zero, 0), Limit.exceeds(zero, 1), Limit.exceeds(none, 1e300)],
      [false, true, false]
    )
  })
})

const unrestricted = {
  deny: false,
  allowed_routes: null,
  allowed_models: null,
  allowed_providers: null,
  allowed_services: null,
  allowed_hours_utc: null,
  allow_streaming: true,
  allow_tools: true,
  rpm_limit: null,
  tpm_limit: null,
  max_requests_per_day: null,
  max_tokens_per_day: null,
  daily_budget_usd: null,
  monthly_budget_usd: null,
  max_cost_per_request: null,
  unpriced_models: "flat",
  max_input_tokens_per_request: null,
  max_output_tokens_per_request: null,
  unused_key_auto_disable_after_days: null,
  max_request_body_bytes: null,
  max_response_body_bytes: null,
  max_stream_duration_seconds: null,
  max_sse_event_bytes: null,
  max_tool_call_count: null,
  max_tool_schema_bytes: null,
  max_concurrent_requests: null
}

const full = {
  deny: true,
  allowed_routes: [],
  allowed_models: ["large", "small"],
  allowed_providers: ["compat"],
  allowed_services: ["ocr", "a-1"],
  allowed_hours_utc: [0, 23],
  allow_streaming: false,
  allow_tools: false,
  rpm_limit: 0,
  tpm_limit: 1,
  max_requests_per_day: 2,
  max_tokens_per_day: 3,
  daily_budget_usd: 0.001,
  monthly_budget_usd: 12.5,
  max_cost_per_request: 0,
  unpriced_models: "refuse",
  max_input_tokens_per_request: 9,
  max_output_tokens_per_request: 0,
  unused_key_auto_disable_after_days: 7,
  max_request_body_bytes: 1,
  max_response_body_bytes: 104_857_600,
  max_stream_duration_seconds: 60,
  max_sse_event_bytes: 1024,
  max_tool_call_count: 0,
  max_tool_schema_bytes: 4096,
  max_concurrent_requests: 0
}
