import { Schema } from "effect"
import { BodyBytes, TimeoutMs } from "./CanonicalRoute.ts"
import { Ownership } from "./Ownership.ts"

/** The access to the upstream's UI through the wildcard (specification, "exposure modes"). */
export const UiExposure = Schema.Literals(["disabled", "operator_only", "explicitly_exposed", "trusted_ingress"])

export const AdminApiExposure = Schema.Literals(["disabled", "operator_only", "explicitly_exposed"])

/** The handling of policies that the wildcard cannot enforce: refuse the request, or skip the policy. */
export const UnenforceablePolicy = Schema.Literals(["refuse", "skip"])

export const Passthrough = Schema.Struct({
  enabled: Schema.Boolean,
  /** A trailing `*` matches any rest; other patterns match exactly. */
  allowed_paths: Schema.Array(Schema.String),
  allowed_methods: Schema.Array(Schema.String),
  ui_exposure: UiExposure,
  admin_api_exposure: AdminApiExposure,
  /** For guardrails that a key has without asking for them: the wildcard runs no guardrails. */
  guardrails: UnenforceablePolicy,
  /** For policies that check bodies, such as `allowed_models`: the wildcard reads no bodies. */
  body_policies: UnenforceablePolicy,
  ownership: Ownership,
  timeout_ms: TimeoutMs,
  max_request_body_bytes: BodyBytes,
  max_response_body_bytes: BodyBytes,
  /** True once an operator sets `max_response_body_bytes`: the limit then applies to event streams too. */
  limits_streams: Schema.Boolean
})
export type Passthrough = typeof Passthrough.Type

/** The migration seeds the same values. */
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
