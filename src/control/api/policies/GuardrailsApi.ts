import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Action, Config, Execution, FailurePolicy, Mode, StreamMode, WindowChars } from "../../../policy/Guardrail.ts"
import { GuardrailName } from "../../../policy/GuardrailPolicy.ts"
import { Credential } from "../providers/ProvidersApi.ts"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import {
  CredentialCleared,
  Cursor,
  expectedUpdate,
  Id,
  NextCursor,
  orUnreadable,
  PageLimit,
  RangeTime,
  Timestamp
} from "../schema/Fields.ts"
import { operation, skipsUnreadable } from "../schema/Security.ts"
import { ExecutionBucket, ExecutionInterval, GuardrailTrial, GuardrailTrialResult } from "./GuardrailBench.ts"
import { CoveredKey, CoveredKeysQuery, GuardrailCoverage } from "./GuardrailCoverage.ts"

/** A guardrail of the catalogue. Only guardrails of kind `http` have an address, a timeout, a token and a stream mode. */
export const Guardrail = Schema.Struct({
  name: GuardrailName,
  description: Schema.String,
  provider_kind: Schema.Literals(["built_in", "http"]),
  modes: Schema.Array(Mode),
  default_on: Schema.Boolean,
  failure_policy: FailurePolicy,
  config_schema: Config,
  runtime_config: Config,
  enabled: Schema.Boolean,
  endpoint_configured: Schema.Boolean,
  endpoint_url: Schema.NullOr(Schema.String),
  timeout_ms: Schema.NullOr(Schema.Int),
  stream_mode: Schema.NullOr(StreamMode),
  window_chars: Schema.NullOr(WindowChars),
  token_configured: Schema.Boolean,
  updated_at: Timestamp
}).annotate({ identifier: "Guardrail" })
export type Guardrail = typeof Guardrail.Type

export const ChangedGuardrail = Guardrail.pipe(Schema.fieldsAssign({ credential_cleared: CredentialCleared }))
export type ChangedGuardrail = typeof ChangedGuardrail.Type

export const Modes = Schema.Array(Mode).check(Schema.isMaxLength(16))
export const Description = Schema.String.check(Schema.isMaxLength(1000))

export const timeoutBounds = { minimum: 100, maximum: 10_000 }

const optional = {
  description: Schema.optionalKey(Description),
  modes: Schema.optionalKey(Modes),
  default_on: Schema.optionalKey(Schema.Boolean),
  /** The timeout in milliseconds. A value outside the bounds is replaced by the nearest bound. */
  timeout_ms: Schema.optionalKey(Schema.Int),
  stream_mode: Schema.optionalKey(StreamMode).annotate({
    description:
      "How the guardrail judges a streamed response; default: buffer. With buffer, one call judges all texts before the client receives the first event. With window, a call judges each window_chars characters of a text, and the client receives what was allowed. A window cannot be changed: the action modify then counts as an invalid reply."
  }),
  window_chars: Schema.optionalKey(WindowChars).annotate({
    description:
      "The characters of a piece of text in the stream mode window; default: 512. Each call also has the last quarter of the window before, as context."
  }),
  /** Sent to the guardrail as `Authorization: Bearer …`, and never returned. `null` clears the token. */
  bearer_token: Schema.optionalKey(Schema.NullOr(Credential)),
  config_schema: Schema.optionalKey(Config),
  runtime_config: Schema.optionalKey(Config).annotate({
    description:
      "Visible to operators, in configuration exports and in audit events. Put secrets into bearer_token. Text members with names such as token, secret, password, api_key or authorization are refused."
  }),
  enabled: Schema.optionalKey(Schema.Boolean)
}

/** A guardrail that the gateway calls over HTTP. Without `modes` it checks requests and complete responses. */
export const NewGuardrail = Schema.Struct({
  name: GuardrailName,
  endpoint_url: Schema.String,
  failure_policy: FailurePolicy,
  ...optional
})
export type NewGuardrail = typeof NewGuardrail.Type

/** The address and the description of a built-in guardrail cannot be changed. */
export const GuardrailPatch = Schema.Struct({
  endpoint_url: Schema.optionalKey(Schema.String),
  failure_policy: Schema.optionalKey(FailurePolicy),
  ...optional,
  ...expectedUpdate
})
export type GuardrailPatch = typeof GuardrailPatch.Type

export const GuardrailExecution = Execution.pipe(
  Schema.fieldsAssign({
    id: Id,
    request_id: Schema.String,
    key_id: Id,
    project_id: Schema.NullOr(Id),
    route: Schema.String,
    model: Schema.NullOr(Schema.String),
    provider: Schema.String,
    created_at: Timestamp
  })
)
export type GuardrailExecution = typeof GuardrailExecution.Type

export const GuardrailSum = Schema.Struct({
  guardrail_name: Schema.String,
  mode: Mode,
  action: Action,
  failure_policy: FailurePolicy,
  count: Schema.Int,
  /** The executions in which the guardrail did not respond, or not as it should. */
  failed_count: Schema.Int,
  total_latency_ms: Schema.Int
})
export type GuardrailSum = typeof GuardrailSum.Type

const Text = Schema.optionalKey(Schema.String.check(Schema.isBetweenLength(1, 256)))

/** Every filter is an exact match. `from` is inclusive, `to` exclusive. */
const filter = {
  from: Schema.optionalKey(RangeTime),
  to: Schema.optionalKey(RangeTime),
  key_id: Schema.optionalKey(Id),
  project_id: Schema.optionalKey(Id),
  route: Text,
  model: Text,
  provider: Text,
  guardrail: Text,
  mode: Schema.optionalKey(Mode),
  action: Schema.optionalKey(Action)
}
export const ExecutionFilter = Schema.Struct(filter)
export type ExecutionFilter = typeof ExecutionFilter.Type

const params = { name: GuardrailName }
const invalid = refusals("invalid_guardrail_request")

export const GuardrailsApi = HttpApiGroup.make("guardrails")
  .annotate(OpenApi.Description, "The catalogue of guardrails, and the record of their executions.")
  .add(
    HttpApiEndpoint.get("list", "/", {
      success: Schema.Struct({ guardrails: Schema.Array(Guardrail) })
    })
      .annotateMerge(operation("List the guardrails of the catalogue", "operators:manage"))
      .annotateMerge(skipsUnreadable),
    HttpApiEndpoint.post("create", "/", {
      payload: NewGuardrail,
      success: Guardrail,
      error: invalid
    })
      .annotateMerge(operation("Add a guardrail that the gateway calls over HTTP", "guardrails:update"))
      .annotate(
        OpenApi.Description,
        "The gateway posts each text to the guardrail's address and follows the response. If the guardrail does not respond, `failure_policy` applies."
      )
      .annotateMerge(
        bodyExample({
          name: "house-rules",
          endpoint_url: "https://guard.example.com/check",
          failure_policy: "fail_closed",
          modes: ["pre_call"]
        })
      ),
    HttpApiEndpoint.get("get", "/:name", { params, success: Guardrail }).annotateMerge(
      operation("Show a guardrail", "operators:manage")
    ),
    HttpApiEndpoint.patch("update", "/:name", {
      params,
      payload: GuardrailPatch,
      success: orUnreadable(ChangedGuardrail),
      error: refusals("invalid_guardrail_request", "changed_since_read")
    }).annotateMerge(operation("Change a guardrail", "guardrails:update")),
    HttpApiEndpoint.delete("remove", "/:name", {
      params,
      success: HttpApiSchema.NoContent,
      error: invalid
    })
      .annotateMerge(operation("Delete a guardrail", "guardrails:update"))
      .annotate(
        OpenApi.Description,
        "The guardrail is removed from every policy. The record of its executions stays. A built-in guardrail cannot be deleted."
      ),
    HttpApiEndpoint.post("test", "/:name/test", {
      params,
      payload: GuardrailTrial,
      success: GuardrailTrialResult,
      error: refusals("invalid_guardrail_request", "guardrail_test_busy")
    })
      .annotateMerge(operation("Try a guardrail on a text", "guardrails:update", "operators:manage"))
      .annotate(
        OpenApi.Description,
        "Runs the guardrail as a request would, also if it is disabled. Calls no upstream, counts against no limit, records nothing. A guardrail of kind `http` is called, with the gateway's token."
      )
      .annotateMerge(bodyExample({ request: { messages: [{ role: "user", content: "Write to jane@example.com." }] } })),
    HttpApiEndpoint.get("coverage", "/:name/coverage", { params, success: GuardrailCoverage }).annotateMerge(
      operation("Count the keys that get a guardrail", "operators:manage")
    ),
    HttpApiEndpoint.get("coveredKeys", "/:name/coverage/keys", {
      params,
      query: CoveredKeysQuery,
      success: HttpApiSchema.WithHeaders(Schema.Array(CoveredKey), NextCursor)
    })
      .annotateMerge(operation("List the keys that get a guardrail, newest first", "operators:manage"))
      .annotate(
        OpenApi.Description,
        "The usable keys that `coverage` counts, each with what becomes of its requests and what its own policy says."
      ),
    HttpApiEndpoint.get("series", "/timeseries", {
      query: { ...filter, interval: Schema.optionalKey(ExecutionInterval) },
      success: Schema.Struct({ interval: ExecutionInterval, buckets: Schema.Array(ExecutionBucket) }),
      error: refusals("invalid_usage_query")
    }).annotateMerge(operation("Count the executions of guardrails over time, by action", "operators:manage")),
    HttpApiEndpoint.get("executions", "/executions", {
      query: {
        ...filter,
        limit: Schema.optionalKey(PageLimit),
        /** For entries beyond the maximum offset, use `cursor`. */
        offset: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 }))),
        cursor: Schema.optionalKey(Cursor)
      },
      success: Schema.Struct({ executions: Schema.Array(GuardrailExecution), next_cursor: Schema.NullOr(Cursor) }),
      error: refusals("invalid_usage_query")
    })
      .annotateMerge(operation("List the executions of guardrails, newest first", "operators:manage"))
      .annotateMerge(skipsUnreadable),
    HttpApiEndpoint.get("summary", "/summary", {
      query: filter,
      success: Schema.Struct({ summary: Schema.Array(GuardrailSum) }),
      error: refusals("invalid_usage_query")
    }).annotateMerge(operation("Count the executions of guardrails", "operators:manage"))
  )
  .prefix("/guardrails")
