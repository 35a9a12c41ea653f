import { Schema } from "effect"
import { BodyBytes, TimeoutMs } from "./CanonicalRoute.ts"
import { Ownership } from "./Ownership.ts"

/** The callers that may use the upstream's UI or administration through the gateway. */
export const UiExposure = Schema.Literals(["disabled", "operator_only", "explicitly_exposed", "trusted_ingress"])

export const AdminApiExposure = Schema.Literals(["disabled", "operator_only", "explicitly_exposed"])

/** If passthrough cannot enforce a policy, it refuses the key's requests (`refuse`) or ignores the policy (`skip`). */
export const UnenforceablePolicy = Schema.Literals(["refuse", "skip"])

export const Passthrough = Schema.Struct({
  enabled: Schema.Boolean,
  /** A `*` at the end matches anything. Other patterns match exactly. */
  allowed_paths: Schema.Array(Schema.String),
  allowed_methods: Schema.Array(Schema.String),
  ui_exposure: UiExposure,
  admin_api_exposure: AdminApiExposure,
  /** Applies to keys with guardrails that run on every request, because passthrough runs none. */
  guardrails: UnenforceablePolicy,
  /** Applies to policies that depend on the body, such as `allowed_models`, because passthrough reads no bodies. */
  body_policies: UnenforceablePolicy,
  ownership: Ownership,
  timeout_ms: TimeoutMs,
  max_request_body_bytes: BodyBytes,
  max_response_body_bytes: BodyBytes,
  /** True once an operator has set `max_response_body_bytes`. The limit then applies to event streams too. */
  limits_streams: Schema.Boolean
})
export type Passthrough = typeof Passthrough.Type

/** The database migration inserts the same values. */
export const defaults: Passthrough = {
  enabled: false,
  allowed_paths: ["/v1/*"],
  allowed_methods: ["GET", "POST"],
  ui_exposure: "disabled",
  admin_api_exposure: "disabled",
  guardrails: "refuse",
  body_policies: "refuse",
  ownership: "project",
  timeout_ms: 120_000,
  max_request_body_bytes: 1_048_576,
  max_response_body_bytes: 1_048_576,
  limits_streams: false
}
