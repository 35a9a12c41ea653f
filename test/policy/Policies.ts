import fc from "fast-check"
import { type AllowList, allow, allowAll } from "../../src/policy/AllowList.ts"
import type { GuardrailPolicy } from "../../src/policy/GuardrailPolicy.ts"
import type { KeyPolicy } from "../../src/policy/KeyPolicy.ts"
import { type Limit, limited, unlimited } from "../../src/policy/Limit.ts"
import type { PolicyRequest } from "../../src/policy/Policy.ts"
import { PolicyRoute, Provider } from "../../src/policy/routes/CanonicalRoute.ts"

/** Few values, so that policies and what is asked for often meet. */
const models = ["small", "large", "huge"]
const patterns = [...models, "*", "s*", "large*", "larger*", "h*"]
const services = ["ocr", "summary"]

const listOf = <A>(values: ReadonlyArray<A>): fc.Arbitrary<AllowList<A>> =>
  fc.option(fc.subarray([...values])).map((chosen) => (chosen === null ? allowAll : allow(chosen)))
const limit = (max: number, min = 0): fc.Arbitrary<Limit> =>
  fc.option(fc.integer({ min, max })).map((chosen) => (chosen === null ? unlimited : limited(chosen)))
const bytes = fc.option(fc.integer({ min: 1, max: 200 }))

export const policy: fc.Arbitrary<KeyPolicy> = fc.record({
  deny: fc.boolean(),
  allowed_routes: listOf(PolicyRoute.literals),
  allowed_models: listOf(patterns),
  allowed_providers: listOf(Provider.literals),
  allowed_services: listOf(services),
  allowed_hours_utc: listOf([...Array(24).keys()]),
  allow_streaming: fc.boolean(),
  allow_tools: fc.boolean(),
  rpm_limit: limit(9),
  tpm_limit: limit(9),
  max_requests_per_day: limit(9),
  max_tokens_per_day: limit(9),
  daily_budget_usd: limit(9),
  monthly_budget_usd: limit(9),
  max_cost_per_request: limit(2),
  unpriced_models: fc.constantFrom("flat", "dearest", "refuse"),
  max_input_tokens_per_request: limit(200),
  max_output_tokens_per_request: limit(200),
  unused_key_auto_disable_after_days: limit(9, 1),
  max_request_body_bytes: bytes,
  max_response_body_bytes: bytes,
  max_stream_duration_seconds: limit(9, 1),
  max_sse_event_bytes: limit(9, 1),
  max_tool_call_count: limit(3),
  max_tool_schema_bytes: limit(200),
  max_concurrent_requests: limit(3)
})

export const question: fc.Arbitrary<PolicyRequest> = fc.record({
  route: fc.constantFrom(...PolicyRoute.literals),
  provider: fc.constantFrom(...Provider.literals),
  service: fc.option(
    fc.record({ name: fc.constantFrom(...services), linked: fc.subarray(services) }, { noNullPrototype: true }),
    { nil: undefined }
  ),
  requestBytes: fc.nat(200),
  responseBytes: fc.option(fc.nat(200), { nil: undefined }),
  hourUtc: fc.nat(23),
  running: fc.integer({ min: 1, max: 3 }),
  estimatedCostNanos: fc.nat(2_000_000_000),
  unpricedModels: fc.subarray([...models, ""]),
  worksLater: fc.boolean(),
  facts: fc.record({
    requests: fc.nat(3),
    models: fc.subarray(models),
    alternativeModels: fc.subarray(models),
    omitsModel: fc.boolean(),
    unjudgedMember: fc.option(fc.constantFrom("route", "api_base"), { nil: undefined }),
    stream: fc.boolean(),
    background: fc.boolean(),
    tools: fc.boolean(),
    toolCount: fc.nat(4),
    toolSchemaBytes: fc.nat(200),
    service: fc.option(fc.constantFrom(...services), { nil: undefined }),
    inputTokens: fc.nat(200),
    boundedOutput: fc.nat(200),
    openChoices: fc.nat(3),
    largestOutput: fc.nat(200),
    totalOutput: fc.nat(200),
    choices: fc.nat(3),
    guardrails: fc.subarray(["pii-redact"]),
    namesGuardrails: fc.boolean(),
    references: fc.constant([]),
    stored: fc.constant(undefined),
    audio: fc.boolean(),
    itemIds: fc.constant([]),
    endUser: fc.constant(undefined)
  })
})

const names = fc.subarray(["pii-redact", "toxicity", "secrets"])

export const guardrailPolicy: fc.Arbitrary<GuardrailPolicy> = fc.record({
  mandatory_guardrails: names,
  optional_guardrails: names,
  forbidden_guardrails: names,
  guardrail_config_overrides: fc.dictionary(fc.constantFrom("pii-redact", "secrets"), fc.constant({ on: true }), {
    noNullPrototype: true
  })
})
