import { Schema, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Execution, Mode } from "../../../policy/Guardrail.ts"
import { GuardrailName } from "../../../policy/GuardrailPolicy.ts"
import { refusals } from "../schema/Errors.ts"
import { Guardrail } from "./GuardrailsApi.ts"

/** A guardrail that checks the requests of this key, or that a request with this key may select. */
export const OfferedGuardrail = Guardrail.mapFields(
  Struct.pick(["name", "description", "modes", "default_on", "failure_policy", "config_schema"])
).pipe(
  Schema.fieldsAssign({
    /** It checks every request of this key: by default, or because the key's policy says so. */
    always_on: Schema.Boolean
  })
)
export type OfferedGuardrail = typeof OfferedGuardrail.Type

const maxChunks = 1000
const maxChunkLength = 4096

export const GuardrailTest = Schema.Struct({
  /** Additional guardrails, as a request would select them in its member `guardrails`. */
  guardrails: Schema.optionalKey(Schema.Array(GuardrailName).check(Schema.isMaxLength(100))),
  mode: Mode,
  /** The body to check: a request body for `pre_call`, a response body for `post_call`. */
  input: Schema.optionalKey(Schema.Json),
  /** For `during_call`: the pieces of a model's text, as an event stream would deliver them. */
  chunks: Schema.optionalKey(
    Schema.Array(Schema.String.check(Schema.isMaxLength(maxChunkLength))).check(Schema.isMaxLength(maxChunks))
  )
})
export type GuardrailTest = typeof GuardrailTest.Type

export const GuardrailTestResult = Schema.Struct({
  /** Only of `pre_call` and `post_call`. */
  input: Schema.optionalKey(Schema.Json),
  /** Only of `during_call`: what is sent to the client after each chunk. One more item has what follows at the end. */
  sent: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Only of `during_call`: the error with which a guardrail ends the stream. The last item of `sent` stands before it. */
  stopped: Schema.optionalKey(Schema.Struct({ code: Schema.String, message: Schema.String })),
  applied_guardrails: Schema.Array(Schema.String),
  results: Schema.Array(Execution)
})
export type GuardrailTestResult = typeof GuardrailTestResult.Type

export const KeyGuardrailsApi = HttpApiGroup.make("key-guardrails")
  .annotate(
    OpenApi.Description,
    "Endpoints for holders of a gateway key. Authenticate with `Authorization: Bearer rk_live_…`."
  )
  .add(
    HttpApiEndpoint.get("list", "/", {
      success: Schema.Struct({ guardrails: Schema.Array(OfferedGuardrail) })
    }).annotate(OpenApi.Summary, "List the guardrails that check this key's requests or that a request may select"),
    HttpApiEndpoint.post("test", "/test", {
      payload: GuardrailTest,
      success: GuardrailTestResult,
      error: refusals(
        "invalid_guardrail_request",
        "guardrail_blocked",
        "guardrail_forbidden",
        "guardrail_test_busy",
        "guardrail_unavailable"
      )
    })
      .annotate(OpenApi.Summary, "Try guardrails on a text")
      .annotate(
        OpenApi.Description,
        "Runs the same guardrails as a request, but calls no upstream, counts against no limit and writes no usage record. Send `input` with the modes pre_call and post_call, and `chunks` with the mode during_call."
      )
  )
  .prefix("/guardrails")
