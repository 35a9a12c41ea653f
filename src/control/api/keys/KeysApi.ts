import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { GuardrailPolicy, GuardrailPolicyPatch } from "../../../policy/GuardrailPolicy.ts"
import { KeyPolicy, KeyPolicyInput } from "../../../policy/KeyPolicy.ts"
import { KeyPreset } from "../../../policy/KeyPreset.ts"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import { Cursor, Id, NextCursor, orUnreadable, PageLimit, Timestamp, timestamps } from "../schema/Fields.ts"
import { bodyOptional, requires, skipsUnreadable } from "../schema/Security.ts"
import { ServiceNames } from "../services/ServicesApi.ts"

export const OwnerType = Schema.Literals(["project", "individual"])
export type OwnerType = typeof OwnerType.Type

export const TeamId = Schema.String.check(Schema.isPattern(/^[^\p{Cc}]{1,128}$/u))

/** What people call a key; two keys may have the same name. */
const KeyName = Schema.String.check(
  Schema.isPattern(/^[^\p{Cc}]{1,128}$/u, { expected: "1 to 128 characters, and no control characters" })
)

export const Key = Schema.Struct({
  id: Id,
  name: Schema.NullOr(KeyName),
  owner_type: OwnerType,
  project_id: Schema.NullOr(Id),
  /**
   * Services that an individual key may call; none: every service that its policy allows. A project's key has its
   * project's.
   */
  service_names: Schema.Array(Schema.String),
  /** Which team's policy layer its requests are under. */
  team_id: Schema.NullOr(TeamId),
  key_prefix: Schema.String,
  disabled: Schema.Boolean,
  revoked_at: Schema.NullOr(Timestamp),
  expires_at: Schema.NullOr(Timestamp),
  rotation_due_at: Schema.NullOr(Timestamp),
  /** Until when the secret before the last rotation works too. */
  previous_key_expires_at: Schema.NullOr(Timestamp),
  last_used_at: Schema.NullOr(Timestamp),
  policy: KeyPolicy.pipe(Schema.fieldsAssign({ policy_version: Schema.Int })),
  guardrail_policy: GuardrailPolicy,
  ...timestamps
}).annotate({ identifier: "Key" })
export type Key = typeof Key.Type

/** `null` clears: the key has no name, never expires, belongs to no project or team, has no links, or has the neutral policy. */
const settings = {
  name: Schema.optionalKey(Schema.NullOr(KeyName)),
  owner_type: Schema.optionalKey(OwnerType),
  project_id: Schema.optionalKey(Schema.NullOr(Id)),
  service_names: Schema.optionalKey(Schema.NullOr(ServiceNames)),
  team_id: Schema.optionalKey(Schema.NullOr(TeamId)),
  expires_at: Schema.optionalKey(Schema.NullOr(Timestamp)),
  rotation_due_at: Schema.optionalKey(Schema.NullOr(Timestamp)),
  policy: Schema.optionalKey(Schema.NullOr(KeyPolicyInput)),
  guardrail_policy: Schema.optionalKey(Schema.NullOr(GuardrailPolicyPatch))
}

/** The preset is what the policy begins with; the fields of `policy` go over it. */
export const NewKey = Schema.Struct({ ...settings, preset: Schema.optionalKey(Schema.NullOr(KeyPreset)) })
export type NewKey = typeof NewKey.Type

export const KeyPatch = Schema.Struct({ ...settings, disabled: Schema.optionalKey(Schema.Boolean) })
export type KeyPatch = typeof KeyPatch.Type

/** The raw key is shown here and never again. */
export const MintedKey = Schema.Struct({ key: Key, raw_key: Schema.RedactedFromValue(Schema.String) })
export type MintedKey = typeof MintedKey.Type

export const maxGraceSeconds = 2_592_000

/** How long the secret that is replaced goes on to work: up to 30 days, and not at all unless it is said. */
export const KeyRotation = Schema.Struct({
  grace_seconds: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxGraceSeconds })))
})

const KeysQuery = Schema.Struct({
  project_id: Schema.optionalKey(Id),
  team_id: Schema.optionalKey(TeamId),
  key_prefix: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^rk_live_.{8}$/, { expected: "the first 16 characters of a key" }))
  ),
  limit: Schema.optionalKey(PageLimit),
  cursor: Schema.optionalKey(Cursor)
})
export type KeysQuery = typeof KeysQuery.Type

const params = { id: Id }

export const KeysApi = HttpApiGroup.make("keys")
  .annotate(OpenApi.Description, "Gateway keys of clients, with their policies.")
  .add(
    HttpApiEndpoint.post("create", "/", {
      payload: NewKey,
      success: MintedKey,
      error: refusals(
        "invalid_project_payload",
        "missing_project",
        "missing_service",
        "invalid_guardrail_request",
        "guardrail_forbidden"
      )
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Create a key",
          description:
            "The answer has the raw key, which is never shown again. A preset is what the policy begins with. Forbidding guardrails, or changing what they are configured with, takes the scope `policies:update` as well."
        })
      )
      .annotateMerge(
        bodyExample({
          name: "ada, laptop",
          owner_type: "individual",
          team_id: "blue",
          preset: "developer",
          policy: { allowed_models: ["gpt-5*", "claude-*"], rpm_limit: 60, daily_budget_usd: 5 }
        })
      )
      .annotateMerge(requires("keys:create")),
    HttpApiEndpoint.get("list", "/", {
      query: KeysQuery,
      success: HttpApiSchema.WithHeaders(Schema.Array(Key), NextCursor)
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "List keys, newest first",
          description: "Every filter is an exact match."
        })
      )
      .annotateMerge(skipsUnreadable)
      .annotateMerge(requires("operators:manage")),
    HttpApiEndpoint.get("get", "/:id", { params, success: Key })
      .annotate(OpenApi.Summary, "Show a key")
      .annotateMerge(requires("operators:manage")),
    // Which of the two is needed depends on the fields; the handler asks for each that applies.
    HttpApiEndpoint.patch("update", "/:id", {
      params,
      payload: KeyPatch,
      success: Key,
      error: refusals(
        "invalid_project_payload",
        "missing_project",
        "missing_service",
        "invalid_guardrail_request",
        "guardrail_forbidden"
      )
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Change a key",
          description:
            "`disabled` takes the scope `keys:disable`, every other field `policies:update`; `owner_type` and `project_id` take `keys:create` as well."
        })
      )
      .annotateMerge(requires("keys:disable", "policies:update")),
    HttpApiEndpoint.post("rotate", "/:id/rotate", {
      params,
      payload: [KeyRotation, Schema.Null],
      success: MintedKey,
      error: refusals("key_revoked")
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Give a key a new secret",
          description: "The secret that it replaces goes on to work for `grace_seconds`; without a body, not at all."
        })
      )
      .annotateMerge(requires("keys:rotate"))
      .annotateMerge(bodyOptional),
    HttpApiEndpoint.post("revoke", "/:id/revoke", { params, success: orUnreadable(Key) })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Revoke a key for good",
          description:
            "Its requests are refused within a second, on every gateway. Nothing brings it back: `enable` does not."
        })
      )
      .annotateMerge(requires("keys:disable")),
    HttpApiEndpoint.post("disable", "/:id/disable", { params, success: orUnreadable(Key) })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Disable a key",
          description: "Its requests are refused until it is enabled again; its counters go on."
        })
      )
      .annotateMerge(requires("keys:disable")),
    HttpApiEndpoint.post("enable", "/:id/enable", { params, success: Key })
      .annotateMerge(
        OpenApi.annotations({ summary: "Enable a key", description: "A key that was revoked stays revoked." })
      )
      .annotateMerge(requires("keys:disable"))
  )
  .prefix("/keys")
