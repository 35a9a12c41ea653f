import { Schema, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { KeyPolicy } from "../../../policy/KeyPolicy.ts"
import { Key } from "../keys/KeysApi.ts"
import { LimitState } from "../limits/LimitsApi.ts"
import { HeldRaiseRequest, NewRaiseRequest } from "../limits/RaiseRequests.ts"
import { OfferedGuardrail } from "../policies/KeyGuardrailsApi.ts"
import { refusals } from "../schema/Errors.ts"
import { Cursor, PageLimit, RangeTime, Timestamp } from "../schema/Fields.ts"
import { bodyOptional } from "../schema/Security.ts"
import { TimeseriesBucket, UsageEvent, UsageTotal } from "../usage/UsageApi.ts"
import { KeyHistoryEntry, KeyTest, KeyTestResult } from "./KeyTest.ts"

const Text = Schema.String.check(Schema.isBetweenLength(1, 256))
const range = { from: Schema.optionalKey(RangeTime), to: Schema.optionalKey(RangeTime) }

/** The key itself. `policy` is what its own policy and the layers of its project and team allow together. */
export const HeldKey = Key.mapFields(
  Struct.pick([
    "id",
    "name",
    "key_prefix",
    "owner_type",
    "project_id",
    "team_id",
    "created_at",
    "expires_at",
    "rotation_due_at",
    "previous_key_expires_at",
    "last_used_at",
    "holder_rotation"
  ])
).pipe(Schema.fieldsAssign({ project_name: Schema.NullOr(Schema.String), policy: KeyPolicy }))
export type HeldKey = typeof HeldKey.Type

/** A limit that all keys of a layer share. Their usage is not shown, only whether nothing is left. */
export const HeldSharedLimit = LimitState.mapFields(
  Struct.pick(["meter", "unit", "window", "scope_name", "limit", "resets_at"])
).pipe(Schema.fieldsAssign({ full: Schema.NullOr(Schema.Boolean) }))

/** A limit of the key itself, without the e-mail address of its owner. */
export const HeldLimit = LimitState.mapFields(Struct.omit(["owner_email"]))

export const HeldLimits = Schema.Struct({
  limits: Schema.Array(HeldLimit),
  shared: Schema.Array(HeldSharedLimit)
})
export type HeldLimits = typeof HeldLimits.Type

export const HeldUsage = Schema.Struct({
  summary: UsageTotal,
  /** By the hour or the day, if `interval` is given. Without buckets that had no requests. */
  buckets: Schema.Array(TimeseriesBucket)
})

/** From the price book of the package, such as that long prompts cost more. */
const ModelNote = Schema.NullOr(Schema.String)

export const HeldModels = Schema.Struct({
  /** Names of models, and beginnings of names that end in `*`. `null` allows all models. */
  allowed: Schema.NullOr(Schema.Array(Schema.String)),
  /** The models with a price of their own that the key may use. At most 1,000. */
  priced: Schema.Array(
    Schema.Struct({
      model: Schema.String,
      input_usd_per_million: Schema.Finite,
      output_usd_per_million: Schema.Finite,
      note: ModelNote
    })
  ),
  /**
   * The models that the key used in the last 30 days and may use now, the most used first. At most 100. The list is empty
   * also if they cannot be read in time, or while another request reads the usage or the limits of the key.
   */
  used: Schema.Array(
    Schema.Struct({
      model: Schema.String,
      /** `null`: the model has no price. A price may be that of a pattern of names. */
      input_usd_per_million: Schema.NullOr(Schema.Finite),
      output_usd_per_million: Schema.NullOr(Schema.Finite),
      note: ModelNote
    })
  )
})
export type HeldModels = typeof HeldModels.Type

/** Why a request failed, and what its sender can do. */
export const Refusal = Schema.Struct({ sentence: Schema.String, what_to_do: Schema.String })
export type Refusal = typeof Refusal.Type

export const HeldRequest = UsageEvent.mapFields(
  Struct.pick([
    "id",
    "created_at",
    "request_id",
    "route",
    "model",
    "status",
    "status_code",
    "error_code",
    "latency_ms",
    "first_byte_ms",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cached_input_tokens",
    "estimated_cost_usd",
    "streamed",
    "service_name",
    "task_id",
    "session_id",
    "client"
  ])
).pipe(
  Schema.fieldsAssign({
    refusal: Schema.NullOr(Refusal),
    /** The limit that had too little left for the request: the one to ask more of. `null` also if several keys share it. */
    meter: Schema.NullOr(LimitState.fields.meter),
    /** The model that the policy refused: the one to ask for. */
    refused_model: Schema.NullOr(Schema.String)
  })
)
export type HeldRequest = typeof HeldRequest.Type

export const HeldUsageQuery = Schema.Struct({
  ...range,
  model: Schema.optionalKey(Text),
  interval: Schema.optionalKey(Schema.Literals(["hour", "day"])),
  /** Splits the buckets by model: the ten with the most requests. */
  split: Schema.optionalKey(Schema.Literal("model"))
})
export type HeldUsageQuery = typeof HeldUsageQuery.Type

export const HeldRequestsQuery = Schema.Struct({
  ...range,
  model: Schema.optionalKey(Text),
  status: Schema.optionalKey(Schema.Literals(["success", "failure"])),
  limit: Schema.optionalKey(PageLimit),
  cursor: Schema.optionalKey(Cursor)
})
export type HeldRequestsQuery = typeof HeldRequestsQuery.Type

const maxHolderGraceSeconds = 86_400

/** The time in seconds for which the replaced secret still works: 0 by default, and at most a day. */
export const HolderRotation = Schema.Struct({
  grace_seconds: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxHolderGraceSeconds })))
})

export const RotatedKey = Schema.Struct({
  key_prefix: Schema.String,
  /** The new secret, which is never shown again. */
  raw_key: Schema.RedactedFromValue(Schema.String),
  previous_key_expires_at: Schema.NullOr(Timestamp)
})

/** `null`: no replaced secret works any more. */
export const EndedGrace = Schema.Struct({ previous_key_expires_at: Schema.NullOr(Timestamp) })

export const RevokedKey = Schema.Struct({ key_prefix: Schema.String, revoked_at: Schema.NullOr(Timestamp) })

const error = refusals("invalid_usage_query")

export const HolderApi = HttpApiGroup.make("me")
  .annotate(
    OpenApi.Description,
    "What the holder of a gateway key sees of this key alone. Authenticate with the key, as `Authorization: Bearer rk_live_…` or `x-api-key: rk_live_…`."
  )
  .add(
    HttpApiEndpoint.get("show", "/", { success: HeldKey }).annotate(OpenApi.Summary, "Show this key"),
    HttpApiEndpoint.get("limits", "/limits", { success: HeldLimits }).annotate(
      OpenApi.Summary,
      "Show how far the limits of this key are used"
    ),
    HttpApiEndpoint.get("usage", "/usage", { query: HeldUsageQuery, success: HeldUsage, error }).annotate(
      OpenApi.Summary,
      "Sum up the usage of this key"
    ),
    HttpApiEndpoint.get("models", "/models", { success: HeldModels }).annotate(
      OpenApi.Summary,
      "Show which models this key may use, and their prices"
    ),
    HttpApiEndpoint.get("requests", "/requests", {
      query: HeldRequestsQuery,
      success: Schema.Struct({ rows: Schema.Array(HeldRequest), next_cursor: Schema.NullOr(Cursor) }),
      error
    }).annotate(OpenApi.Summary, "List the requests of this key, with refusals in plain words"),
    HttpApiEndpoint.get("guardrails", "/guardrails", {
      success: Schema.Struct({ guardrails: Schema.Array(OfferedGuardrail) })
    }).annotate(OpenApi.Summary, "List the guardrails that check this key's requests or that a request may select"),
    HttpApiEndpoint.post("rotate", "/rotate", {
      payload: [HolderRotation, Schema.Null],
      success: RotatedKey,
      error: refusals("rotation_forbidden", "key_revoked")
    })
      .annotate(OpenApi.Summary, "Give this key a new secret")
      .annotate(
        OpenApi.Description,
        "Needs `holder_rotation` on the key, which operators set, and the current secret. The replaced secret works for another `grace_seconds` seconds; without a request body it stops working at once."
      )
      .annotateMerge(bodyOptional),
    HttpApiEndpoint.post("endGrace", "/end-grace", {
      payload: Schema.Struct({}),
      success: EndedGrace,
      error: refusals("rotation_forbidden", "key_revoked")
    })
      .annotate(OpenApi.Summary, "Stop the replaced secret of this key now")
      .annotate(
        OpenApi.Description,
        "Ends the `grace_seconds` of the last rotation. Needs `holder_rotation` on the key, and the current secret."
      ),
    HttpApiEndpoint.post("revoke", "/revoke", {
      payload: Schema.Struct({}),
      success: RevokedKey,
      error: refusals("rotation_forbidden", "key_revoked")
    })
      .annotate(OpenApi.Summary, "End this key for good")
      .annotate(
        OpenApi.Description,
        "Such as after others saw its secret. Needs `holder_rotation` on the key, and the current secret. The key cannot be enabled again."
      ),
    HttpApiEndpoint.get("history", "/history", { success: Schema.Array(KeyHistoryEntry) }).annotate(
      OpenApi.Summary,
      "Show what happened to the secret of this key"
    ),
    HttpApiEndpoint.post("test", "/test", {
      payload: KeyTest,
      success: KeyTestResult,
      error: refusals("key_test_busy")
    })
      .annotate(OpenApi.Summary, "Show what the gateway would do with a request of this key, and send one")
      .annotate(
        OpenApi.Description,
        "Decides on a short request without a limit of output tokens as the gateway does, with the policy and the limits of now. What the request may cost at most must fit the limits. Without `send` it sends nothing, costs nothing and counts against no limit. With `send: true`, if the gateway would let the request through, the smallest request of the protocol is sent through the gateway with the key that authenticated the call or signed in: one output token, or 16 in `responses`. The request is like any other of the key: it is recorded, costs what it costs and counts against the limits. A key sends 6 in a minute, and each waits 20 seconds for its answer."
      ),
    HttpApiEndpoint.get("raiseRequests", "/raise-requests", { success: Schema.Array(HeldRaiseRequest) }).annotate(
      OpenApi.Summary,
      "List the newest 50 raises that this key asked for, with the answers"
    ),
    HttpApiEndpoint.post("askForRaise", "/raise-requests", {
      payload: NewRaiseRequest,
      success: HeldRaiseRequest,
      error: refusals("too_many_raise_requests", "invalid_policy_payload")
    })
      .annotate(OpenApi.Summary, "Ask operators for a higher limit or for a model")
      .annotate(
        OpenApi.Description,
        "Operators see the request and grant or refuse it. At most 3 wait for an answer, and a key asks at most 20 times a day."
      )
  )
  .prefix("/me")
