import { Schema } from "effect"
import { allow } from "./AllowList.ts"
import { hasBudget, type KeyPolicy, type KeyPolicyPatch, neutral, patched } from "./KeyPolicy.ts"
import { limited } from "./Limit.ts"

/** The name of an initial policy. A key stores the policy but not the name of the preset. */
export const KeyPreset = Schema.Literals([
  "developer",
  "coding_agent",
  "production_worker",
  "read_only_service",
  "external_partner",
  "temporary_debugging"
])
export type KeyPreset = typeof KeyPreset.Type

/**
 * The policy of a new key. With a budget in money it refuses models without a price, unless `own` says otherwise,
 * because a flat charge would let such a model spend more than the budget.
 */
export const policyOf = (preset: KeyPreset | undefined, own: KeyPolicyPatch = {}): KeyPolicy => {
  const policy = patched(preset === undefined ? neutral : { ...neutral, ...presets[preset] }, own)
  return hasBudget(policy) && own.unpriced_models === undefined ? { ...policy, unpriced_models: "refuse" } : policy
}

const presets: Record<KeyPreset, Partial<KeyPolicy>> = {
  developer: {
    rpm_limit: limited(60),
    tpm_limit: limited(30_000),
    daily_budget_usd: limited(10),
    max_request_body_bytes: 1_048_576,
    max_response_body_bytes: 2_097_152
  },
  // Each step of a coding agent sends the whole context, at least ten thousand tokens. Codex sets no output limit. The
  // policy therefore allows as much output as current models write.
  coding_agent: {
    rpm_limit: limited(120),
    tpm_limit: limited(2_000_000),
    daily_budget_usd: limited(25),
    max_output_tokens_per_request: limited(128_000)
  },
  production_worker: {
    allow_tools: false,
    rpm_limit: limited(600),
    tpm_limit: limited(300_000),
    daily_budget_usd: limited(100),
    max_request_body_bytes: 1_048_576,
    max_response_body_bytes: 4_194_304
  },
  read_only_service: {
    allow_streaming: false,
    allow_tools: false,
    allowed_routes: allow(["/summary", "/embeddings"]),
    allowed_providers: allow(["internal-service"]),
    rpm_limit: limited(120),
    daily_budget_usd: limited(5),
    max_request_body_bytes: 524_288,
    max_response_body_bytes: 1_048_576
  },
  external_partner: {
    allow_streaming: false,
    allow_tools: false,
    rpm_limit: limited(30),
    tpm_limit: limited(10_000),
    daily_budget_usd: limited(3),
    max_cost_per_request: limited(0.25),
    max_request_body_bytes: 262_144,
    max_response_body_bytes: 524_288
  },
  temporary_debugging: {
    allow_tools: false,
    rpm_limit: limited(20),
    tpm_limit: limited(5_000),
    daily_budget_usd: limited(1),
    max_request_body_bytes: 131_072,
    max_response_body_bytes: 262_144,
    unused_key_auto_disable_after_days: limited(7)
  }
}
