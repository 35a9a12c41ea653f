import { Schema, Struct } from "effect"
import * as AllowList from "./AllowList.ts"
import { BodyBytes, PolicyRoute, Provider } from "./CanonicalRoute.ts"
import * as Limit from "./Limit.ts"
import { ServiceName } from "./Service.ts"

const Hour = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 23 }))
const ModelName = Schema.String.check(Schema.isBetweenLength(1, 256))

/**
 * What a key may do (reference §8.1), under its wire names. A limit or list that is `null` on the wire restricts
 * nothing, and so does a policy that says nothing: a new key works on every canonical route.
 */
export const KeyPolicy = Schema.Struct({
  deny: Schema.Boolean,
  allowed_routes: AllowList.listOf(PolicyRoute),
  allowed_models: AllowList.listOf(ModelName),
  allowed_providers: AllowList.listOf(Provider),
  allowed_services: AllowList.listOf(ServiceName),
  allowed_hours_utc: AllowList.listOf(Hour),
  allow_streaming: Schema.Boolean,
  allow_tools: Schema.Boolean,
  rpm_limit: Limit.CountLimit,
  tpm_limit: Limit.CountLimit,
  max_requests_per_day: Limit.CountLimit,
  max_tokens_per_day: Limit.CountLimit,
  daily_budget_usd: Limit.DollarLimit,
  monthly_budget_usd: Limit.DollarLimit,
  max_cost_per_request: Limit.DollarLimit,
  max_input_tokens_per_request: Limit.CountLimit,
  max_request_body_bytes: Schema.NullOr(BodyBytes),
  max_response_body_bytes: Schema.NullOr(BodyBytes)
})
export type KeyPolicy = typeof KeyPolicy.Type

/** Any part of a policy: what a request to create or change one says, and how one is read back from its row. */
export const KeyPolicyPatch = KeyPolicy.mapFields(Struct.map(Schema.optionalKey))
export type KeyPolicyPatch = typeof KeyPolicyPatch.Type

export const neutral: KeyPolicy = {
  deny: false,
  allowed_routes: AllowList.allowAll,
  allowed_models: AllowList.allowAll,
  allowed_providers: AllowList.allowAll,
  allowed_services: AllowList.allowAll,
  allowed_hours_utc: AllowList.allowAll,
  allow_streaming: true,
  allow_tools: true,
  rpm_limit: Limit.unlimited,
  tpm_limit: Limit.unlimited,
  max_requests_per_day: Limit.unlimited,
  max_tokens_per_day: Limit.unlimited,
  daily_budget_usd: Limit.unlimited,
  monthly_budget_usd: Limit.unlimited,
  max_cost_per_request: Limit.unlimited,
  max_input_tokens_per_request: Limit.unlimited,
  max_request_body_bytes: null,
  max_response_body_bytes: null
}

/** What `patch` names replaces what stood there; what it leaves out stays. */
export const patched = (base: KeyPolicy, patch: KeyPolicyPatch): KeyPolicy => ({ ...base, ...patch })
