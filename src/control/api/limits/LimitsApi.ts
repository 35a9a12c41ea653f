import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { limitFields } from "../../../policy/SharedLimits.ts"
import { refusals } from "../schema/Errors.ts"
import { Cursor, Id, NextCursor, NextSortedCursor, PageLimit, SortedCursor, Timestamp } from "../schema/Fields.ts"
import { operation, skipsUnreadable } from "../schema/Security.ts"
import { LimitRaise, NewLimitRaise } from "./LimitRaises.ts"
import { CountedScope, LimitReset, NewLimitReset } from "./LimitResets.ts"
import {
  GrantedModel,
  GrantedModelRequest,
  GrantedRaise,
  RaiseRequest,
  RaiseRequestQuery,
  RefusedRaise
} from "./RaiseRequests.ts"

/** Amounts are requests, tokens or US dollars, as `unit` says. */
const Amount = Schema.Finite

/** The use of one limit in its current window. */
export const LimitState = Schema.Struct({
  meter: Schema.Literals(limitFields),
  unit: Schema.Literals(["requests", "tokens", "usd"]),
  window: Schema.Literals(["minute", "day", "month"]),
  scope: CountedScope,
  scope_id: Schema.NullOr(Schema.String),
  /** The name of the key or of the layer, for people. */
  scope_name: Schema.String,
  /** Whom to ask: the owner of the key, else of its project, or the owner of the project of the layer. */
  owner_email: Schema.NullOr(Schema.String),
  project_name: Schema.NullOr(Schema.String),
  team_id: Schema.NullOr(Schema.String),
  /** The policy layer of a route or model to whose requests alone the limit applies. */
  within: Schema.NullOr(Schema.String),
  /**
   * `counted`: read from the counter that admits requests. `restored`: the counter was lost or has not begun, and the
   * amounts are the sums of the usage records. `unknown`: neither can be read.
   */
  state: Schema.Literals(["counted", "restored", "unknown"]),
  limit: Amount,
  /** The usage of ended requests. Also holds `reserved` where that is `null`. */
  used: Schema.NullOr(Amount),
  /** The amounts that running requests hold. `null` if they are too many to be added up. */
  reserved: Schema.NullOr(Amount),
  remaining: Schema.NullOr(Amount),
  /** The share of the limit that is used or reserved. 1 is the limit. */
  share: Schema.NullOr(Schema.Finite),
  resets_at: Timestamp,
  /** When the exception ends that raises the limit. */
  raised_until: Schema.NullOr(Timestamp),
  /** When the limit would be reached at the rate of this window so far. `null` if not before `resets_at`. */
  forecast: Schema.NullOr(Timestamp)
}).annotate({ identifier: "LimitState" })
export type LimitState = typeof LimitState.Type

export const LimitScopeName = Schema.Literals(["key", "project", "team", "layer", "global", "all"])
export type LimitScopeName = typeof LimitScopeName.Type

const LimitStateQuery = Schema.Struct({
  scope: LimitScopeName,
  /** The id of a key, a project or a policy layer, or the name of a team. */
  id: Schema.optionalKey(Schema.String.check(Schema.isBetweenLength(1, 256))),
  limit: Schema.optionalKey(PageLimit),
  cursor: Schema.optionalKey(SortedCursor)
})
export type LimitStateQuery = typeof LimitStateQuery.Type

export const LimitStatePage = Schema.Struct({
  limits: Schema.Array(LimitState),
  /** The number of keys whose limits were read for this page, and when the last of them was used. */
  keys_looked_at: Schema.Int,
  looked_back_to: Schema.NullOr(Timestamp),
  /** The number of limits that were read for this page and are further from their maximum than all of its limits. */
  left_out: Schema.Int
}).annotate({ identifier: "LimitStatePage" })
export type LimitStatePage = typeof LimitStatePage.Type

const ofKey = { key_id: Id }

export const LimitsApi = HttpApiGroup.make("limits")
  .annotate(OpenApi.Description, "The use of limits and budgets, and exceptions from them.")
  .add(
    HttpApiEndpoint.get("state", "/state", {
      query: LimitStateQuery,
      success: HttpApiSchema.WithHeaders(LimitStatePage, NextSortedCursor)
    })
      .annotateMerge(operation("Show how far limits and budgets are used", "usage:read"))
      .annotate(
        OpenApi.Description,
        "The limits nearest to their maximum come first. `key` shows all limits of a key and of the layers above it, `layer` those that the keys of a layer share, and `global` those that all keys share. `project`, `team` and `all` show the shared limits and those of the usable keys that were used in this month. A page looks at up to 500 keys, the latest used first, and the next page at those before."
      ),
    HttpApiEndpoint.post("raise", "/:key_id/raise", {
      params: ofKey,
      payload: NewLimitRaise,
      success: LimitRaise,
      error: refusals("invalid_policy_payload", "key_revoked")
    })
      .annotateMerge(operation("Raise limits of a key until a time", "policies:update"))
      .annotate(
        OpenApi.Description,
        "Until then the named limits of the key are at least these, also where layers would narrow them; limits that layers share stay. Each must be higher than what is in force. What was counted stays counted, and at that time the former limits are back."
      ),
    HttpApiEndpoint.get("raises", "/:key_id/raises", {
      params: ofKey,
      query: { limit: Schema.optionalKey(PageLimit), cursor: Schema.optionalKey(Cursor) },
      success: HttpApiSchema.WithHeaders(Schema.Array(LimitRaise), NextCursor)
    })
      .annotateMerge(operation("List the exceptions of a key", "policies:update", "usage:read"))
      .annotateMerge(skipsUnreadable),
    HttpApiEndpoint.post("endRaise", "/:key_id/raises/:id/end", {
      params: { ...ofKey, id: Id },
      success: LimitRaise
    }).annotateMerge(operation("End an exception before its time", "policies:update")),
    HttpApiEndpoint.post("reset", "/reset", { payload: NewLimitReset, success: LimitReset })
      .annotateMerge(operation("Set what is used of a limit back to zero", "policies:update"))
      .annotate(
        OpenApi.Description,
        "For the current day or month of UTC. `scope` and `scope_id` are those of `limits/state`. What running requests hold of tokens and budgets stays reserved; `max_requests_per_day` counts requests when they begin, so running ones are forgiven too. The usage records stay as they are: reports show the usage, and a lost counter is restored without it. Limits of a minute begin anew by themselves. Gateways notice it within five seconds."
      ),
    HttpApiEndpoint.get("raiseRequests", "/raise-requests", {
      query: RaiseRequestQuery.pipe(
        Schema.fieldsAssign({ limit: Schema.optionalKey(PageLimit), cursor: Schema.optionalKey(Cursor) })
      ),
      success: HttpApiSchema.WithHeaders(Schema.Array(RaiseRequest), NextCursor)
    })
      .annotateMerge(operation("List what holders of keys ask for", "policies:update", "usage:read"))
      .annotateMerge(skipsUnreadable),
    HttpApiEndpoint.post("grantRequest", "/raise-requests/:id/grant", {
      params: { id: Id },
      payload: GrantedRaise,
      success: RaiseRequest,
      error: refusals("invalid_policy_payload", "key_revoked", "raise_request_answered")
    })
      .annotateMerge(operation("Raise limits of a key as its holder asks", "policies:update"))
      .annotate(
        OpenApi.Description,
        "Makes an exception as `raise` does; its limits may differ from what the holder asked for. The holder sees them, until when they hold, and `answer`."
      ),
    HttpApiEndpoint.post("grantModel", "/raise-requests/:id/grant-model", {
      params: { id: Id },
      payload: GrantedModel,
      success: GrantedModelRequest,
      error: refusals("invalid_policy_payload", "key_revoked", "raise_request_answered")
    })
      .annotateMerge(operation("Allow a key the model that its holder asks for", "policies:update"))
      .annotate(
        OpenApi.Description,
        "Adds the model to `allowed_models` of the key's own policy, unless that allows it already. While a layer above the key refuses the model, or the model needs a price and has none, nothing changes, and the error says which layer it is. The holder sees `answer`."
      ),
    HttpApiEndpoint.post("refuseRequest", "/raise-requests/:id/refuse", {
      params: { id: Id },
      payload: RefusedRaise,
      success: RaiseRequest,
      error: refusals("raise_request_answered")
    })
      .annotateMerge(operation("Refuse what the holder of a key asks for", "policies:update"))
      .annotate(OpenApi.Description, "The holder sees `answer`.")
  )
  .prefix("/limits")
