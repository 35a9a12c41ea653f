import { Schema } from "effect"
import { BodyBytes, TimeoutMs } from "./CanonicalRoute.ts"
import { Ownership } from "./Ownership.ts"

/** Who may reach the upstream's UI through the wildcard (specification, "exposure modes"). */
export const UiExposure = Schema.Literals(["disabled", "operator_only", "explicitly_exposed", "trusted_ingress"])

/** Who may reach the upstream's admin-like paths. There is no trusted ingress of its own for them. */
export const AdminApiExposure = Schema.Literals(["disabled", "operator_only", "explicitly_exposed"])

/** Whether a request whose policy the wildcard cannot hold is refused, or goes without. */
export const UnenforceablePolicy = Schema.Literals(["refuse", "skip"])

/** What an operator decides about the wildcard, which takes what no other route has taken. */
export const Passthrough = Schema.Struct({
  enabled: Schema.Boolean,
  /** A `*` at the end stands for any rest; without one the path is meant exactly. */
  allowed_paths: Schema.Array(Schema.String),
  /** In capitals. */
  allowed_methods: Schema.Array(Schema.String),
  ui_exposure: UiExposure,
  admin_api_exposure: AdminApiExposure,
  /** About guardrails that a key is under without asking for them: nothing here is shown to one. */
  guardrails: UnenforceablePolicy,
  /** About policies that hang on what a body says, such as `allowed_models`: no body is read here. */
  body_policies: UnenforceablePolicy,
  /** Who may use the objects that keys create at the upstream. */
  ownership: Ownership,
  timeout_ms: TimeoutMs,
  max_request_body_bytes: BodyBytes,
  max_response_body_bytes: BodyBytes,
  /** Whether that counts for event streams too: from when an operator sets it. */
  limits_streams: Schema.Boolean
})
export type Passthrough = typeof Passthrough.Type

/** What holds until an operator decides otherwise; the migration seeds the same. */
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
