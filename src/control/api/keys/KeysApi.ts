import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { GuardrailPolicy, GuardrailPolicyPatch } from "../../../policy/GuardrailPolicy.ts"
import { KeyPolicy, KeyPolicyInput } from "../../../policy/KeyPolicy.ts"
import { KeyPreset } from "../../../policy/KeyPreset.ts"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import {
  expectedUpdate,
  Id,
  NextSortedCursor,
  orUnreadable,
  PageLimit,
  SortedCursor,
  SortOrder,
  Timestamp,
  timestamps
} from "../schema/Fields.ts"
import { labelInputs, labels, SearchText, Tag } from "../schema/Labels.ts"
import { bodyOptional, operation, skipsUnreadable } from "../schema/Security.ts"
import { ServiceNames } from "../services/ServicesApi.ts"
import { CredentialOfKey } from "./CredentialMappingsApi.ts"

export const OwnerType = Schema.Literals(["project", "individual"])
export type OwnerType = typeof OwnerType.Type

export const TeamId = Schema.String.check(Schema.isPattern(/^[^\p{Cc}]{1,128}$/u))

const KeyName = Schema.String.check(
  Schema.isPattern(/^[^\p{Cc}]{1,128}$/u, { expected: "1 to 128 characters, and no control characters" })
)

export const Key = Schema.Struct({
  id: Id,
  name: Schema.NullOr(KeyName),
  ...labels,
  owner_type: OwnerType,
  project_id: Schema.NullOr(Id),
  /** The services that an individual key may call. If the list is empty, only policies restrict the services. */
  service_names: Schema.Array(Schema.String),
  /** The team whose policy layer applies to the key's requests. */
  team_id: Schema.NullOr(TeamId),
  key_prefix: Schema.String,
  disabled: Schema.Boolean,
  revoked_at: Schema.NullOr(Timestamp),
  expires_at: Schema.NullOr(Timestamp),
  rotation_due_at: Schema.NullOr(Timestamp),
  /** Until this time the key's previous secret also works. */
  previous_key_expires_at: Schema.NullOr(Timestamp),
  last_used_at: Schema.NullOr(Timestamp),
  /** True if the holder of the key may give it a new secret. */
  holder_rotation: Schema.Boolean,
  policy: KeyPolicy.pipe(Schema.fieldsAssign({ policy_version: Schema.Int })),
  guardrail_policy: GuardrailPolicy,
  ...timestamps
}).annotate({ identifier: "Key" })
export type Key = typeof Key.Type

/** `null` clears a field. A cleared `service_names` or policy restricts nothing. */
const settings = {
  name: Schema.optionalKey(Schema.NullOr(KeyName)),
  ...labelInputs,
  owner_type: Schema.optionalKey(OwnerType),
  project_id: Schema.optionalKey(Schema.NullOr(Id)),
  service_names: Schema.optionalKey(Schema.NullOr(ServiceNames)),
  team_id: Schema.optionalKey(Schema.NullOr(TeamId)),
  expires_at: Schema.optionalKey(Schema.NullOr(Timestamp)),
  rotation_due_at: Schema.optionalKey(Schema.NullOr(Timestamp)),
  holder_rotation: Schema.optionalKey(Schema.Boolean),
  policy: Schema.optionalKey(Schema.NullOr(KeyPolicyInput)),
  guardrail_policy: Schema.optionalKey(Schema.NullOr(GuardrailPolicyPatch))
}

/** `preset` selects the initial policy. The fields of `policy` override it. */
export const NewKey = Schema.Struct({ ...settings, preset: Schema.optionalKey(Schema.NullOr(KeyPreset)) })
export type NewKey = typeof NewKey.Type

export const KeyPatch = Schema.Struct({
  ...settings,
  disabled: Schema.optionalKey(Schema.Boolean),
  ...expectedUpdate
})
export type KeyPatch = typeof KeyPatch.Type

/** The only response that contains the raw key. */
export const MintedKey = Schema.Struct({ key: Key, raw_key: Schema.RedactedFromValue(Schema.String) })
export type MintedKey = typeof MintedKey.Type

export const maxGraceSeconds = 2_592_000

/** The time in seconds for which the replaced secret still works. It is 0 by default and at most 30 days. */
export const KeyRotation = Schema.Struct({
  grace_seconds: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxGraceSeconds })))
})

/** The state of a key. A key that is revoked, disabled and expired is `revoked`; one that is disabled and expired, `disabled`. */
export const KeyStateName = Schema.Literals(["active", "disabled", "expired", "revoked"])
export type KeyStateName = typeof KeyStateName.Type

/** A key with what people want to know of it. */
const ListedKey = Key.pipe(
  Schema.fieldsAssign({
    state: KeyStateName,
    /** Why the key cannot be used, in a sentence. */
    state_reason: Schema.NullOr(Schema.String),
    project_name: Schema.NullOr(Schema.String),
    /** The cost of the key's requests from the beginning of the month (UTC) to `spend_until`. */
    spend_this_month_usd: Schema.Finite,
    /** The requests before this time are summed up, usually five minutes ago. `null`: none yet. */
    spend_until: Schema.NullOr(Timestamp),
    /** The lowest monthly budget of the key and of the layers above it. It counts the requests of the key alone. */
    monthly_budget_usd: Schema.NullOr(Schema.Finite)
  })
).annotate({ identifier: "ListedKey" })
export type ListedKey = typeof ListedKey.Type

export const KeySort = Schema.Literals(["created_at", "last_used_at", "expires_at", "rotation_due_at", "spend"])
export type KeySort = typeof KeySort.Type

export const keyFilters = {
  q: Schema.optionalKey(SearchText),
  project_id: Schema.optionalKey(Id),
  team_id: Schema.optionalKey(TeamId),
  tag: Schema.optionalKey(Tag),
  state: Schema.optionalKey(KeyStateName)
}

const KeysQuery = Schema.Struct({
  ...keyFilters,
  key_prefix: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^rk_live_.{8}$/, { expected: "the first 16 characters of a key" }))
  ),
  /** Leaves out the keys that have used less than 80 % of each limit of days and months. `limit` then says how many are looked at. */
  near_limit: Schema.optionalKey(Schema.Literals(["true", "false"])),
  sort_by: Schema.optionalKey(KeySort),
  sort_order: Schema.optionalKey(SortOrder),
  limit: Schema.optionalKey(PageLimit),
  cursor: Schema.optionalKey(SortedCursor)
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
      .annotateMerge(operation("Create a key", "keys:create"))
      .annotate(
        OpenApi.Description,
        "The response contains the raw key, which is never shown again. The policy starts with the preset, and `policy` overrides it. Forbidding guardrails or overriding their configuration also requires the scope `policies:update`."
      )
      .annotateMerge(
        bodyExample({
          name: "ada, laptop",
          owner_email: "ada@example.com",
          tags: ["laptop", "research"],
          owner_type: "individual",
          team_id: "blue",
          preset: "developer",
          policy: { allowed_models: ["gpt-5*", "claude-*"], rpm_limit: 60, daily_budget_usd: 5 }
        })
      ),
    HttpApiEndpoint.get("list", "/", {
      query: KeysQuery,
      success: HttpApiSchema.WithHeaders(Schema.Array(ListedKey), NextSortedCursor)
    })
      .annotateMerge(operation("Find and list keys", "operators:manage"))
      .annotate(
        OpenApi.Description,
        "`q` finds keys whose name, prefix, `owner_email` and tags have words that begin with each of its words. Other filters are exact matches. The list starts with the newest (`created_at`), the latest used (`last_used_at`), the next to expire (`expires_at`), the next to get a new secret (`rotation_due_at`) or the dearest of this month (`spend`), unless `sort_order` reverses it. With `near_limit=true` a page looks at `limit` keys and has those of them that have used 80 % or more of a limit of a day or month."
      )
      .annotateMerge(skipsUnreadable),
    HttpApiEndpoint.get("get", "/:id", { params, success: ListedKey }).annotateMerge(
      operation("Show a key", "operators:manage")
    ),
    HttpApiEndpoint.get("upstreamCredentials", "/:id/upstream-credentials", {
      params,
      success: Schema.Array(CredentialOfKey)
    })
      .annotateMerge(operation("Show which upstream credential the requests of a key carry", "usage:read"))
      .annotate(
        OpenApi.Description,
        "Of each API family: the upstream, and whose credential is sent to it. The credential itself is never shown. Upstreams and credentials in variables are those of the process that answers."
      ),
    // The caller needs one of these scopes. The handler then checks the scope that each changed field requires.
    HttpApiEndpoint.patch("update", "/:id", {
      params,
      payload: KeyPatch,
      success: Key,
      error: refusals(
        "invalid_project_payload",
        "missing_project",
        "missing_service",
        "invalid_guardrail_request",
        "guardrail_forbidden",
        "changed_since_read"
      )
    })
      .annotateMerge(operation("Change a key", "keys:disable", "policies:update"))
      .annotate(
        OpenApi.Description,
        "Changing `disabled` requires the scope `keys:disable`. Every other field requires `policies:update`. `owner_type` and `project_id` also require `keys:create`."
      ),
    HttpApiEndpoint.post("rotate", "/:id/rotate", {
      params,
      payload: [KeyRotation, Schema.Null],
      success: MintedKey,
      error: refusals("key_revoked")
    })
      .annotateMerge(operation("Give a key a new secret", "keys:rotate"))
      .annotate(
        OpenApi.Description,
        "The replaced secret works for another `grace_seconds` seconds. Without a request body it stops working at once."
      )
      .annotateMerge(bodyOptional),
    HttpApiEndpoint.post("endGrace", "/:id/end-grace", { params, success: orUnreadable(Key) })
      .annotateMerge(operation("Stop the replaced secret of a key now", "keys:rotate"))
      .annotate(
        OpenApi.Description,
        "Ends the `grace_seconds` of the last rotation, such as after others saw the replaced secret. The new secret keeps working."
      ),
    HttpApiEndpoint.post("revoke", "/:id/revoke", { params, success: orUnreadable(Key) })
      .annotateMerge(operation("Revoke a key permanently", "keys:disable"))
      .annotate(
        OpenApi.Description,
        "Every gateway refuses the key within a second. A revoked key cannot be enabled again."
      ),
    HttpApiEndpoint.post("disable", "/:id/disable", { params, success: orUnreadable(Key) })
      .annotateMerge(operation("Disable a key", "keys:disable"))
      .annotate(
        OpenApi.Description,
        "Requests with the key are refused until it is enabled again. Its usage counters keep their values."
      ),
    HttpApiEndpoint.post("enable", "/:id/enable", { params, success: Key })
      .annotateMerge(operation("Enable a key", "keys:disable"))
      .annotate(OpenApi.Description, "A revoked key stays revoked.")
  )
  .prefix("/keys")
