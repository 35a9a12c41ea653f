import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { maxBodyBytes, maxTimeoutMs } from "../../../policy/routes/CanonicalRoute.ts"
import { Ownership } from "../../../policy/routes/Ownership.ts"
import { AdminApiExposure, Passthrough, UiExposure, UnenforceablePolicy } from "../../../policy/routes/Passthrough.ts"
import { refusals } from "../schema/Errors.ts"
import { Timestamp, upTo } from "../schema/Fields.ts"
import { requires } from "../schema/Security.ts"

/** What the wildcard of the proxy listener lets through, and to whom. There is one such object. */
export const UpstreamPassthrough = Passthrough.pipe(Schema.fieldsAssign({ updated_at: Timestamp }))
export type UpstreamPassthrough = typeof UpstreamPassthrough.Type

const orNull = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
const choice = (words: ReadonlyArray<string>) =>
  orNull(Schema.String.annotate({ description: `One of ${words.join(", ")}.` }))

/** Said of the wildcard and of the routes that create objects. */
export const ownership = `Who may use the objects (batches, responses, files …) that a key creates at the upstream: its project (a key without one for itself), the key alone, or every key. One of ${Ownership.literals.join(", ")}.`

/** Said of the same two. */
export const limitsStreams =
  "Whether max_response_body_bytes counts for event streams too. Setting that limit sets this to true, unless the same patch says false."

const unguardedChoice = (what: string) =>
  orNull(Schema.String.annotate({ description: `${what} One of ${UnenforceablePolicy.literals.join(", ")}.` }))

/**
 * Any subset; `null` is the default. What a value may be is said by `invalid_provider_config_payload`.
 */
export const UpstreamPassthroughPatch = Schema.Struct({
  enabled: orNull(Schema.Boolean),
  allowed_paths: orNull(
    Schema.Array(Schema.String).annotate({ description: "1 to 64 paths; a * at the end stands for any rest." })
  ),
  allowed_methods: orNull(Schema.Array(Schema.String).annotate({ description: "1 to 16 HTTP methods." })),
  ui_exposure: choice(UiExposure.literals),
  admin_api_exposure: choice(AdminApiExposure.literals),
  guardrails: unguardedChoice("Keys under a guardrail that they did not ask for: nothing here is shown to one."),
  body_policies: unguardedChoice(
    "Bodies of keys whose policy hangs on what a body says (allowed_models and the like)."
  ),
  ownership: orNull(Schema.String.annotate({ description: ownership })),
  timeout_ms: orNull(upTo(maxTimeoutMs, "Milliseconds")),
  max_request_body_bytes: orNull(upTo(maxBodyBytes, "Bytes")),
  max_response_body_bytes: orNull(upTo(maxBodyBytes, "Bytes")),
  limits_streams: orNull(Schema.Boolean.annotate({ description: limitsStreams }))
})
export type UpstreamPassthroughPatch = typeof UpstreamPassthroughPatch.Type

export const UpstreamPassthroughApi = HttpApiGroup.make("upstream-passthrough")
  .annotate(OpenApi.Description, "What no route takes: which paths go to the upstream, and to whom they are open.")
  .add(
    HttpApiEndpoint.get("get", "/", { success: UpstreamPassthrough })
      .annotate(OpenApi.Summary, "Show the passthrough settings")
      .annotateMerge(requires("usage:read")),
    HttpApiEndpoint.patch("update", "/", {
      payload: UpstreamPassthroughPatch,
      success: UpstreamPassthrough,
      error: refusals("invalid_provider_config_payload")
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Change the passthrough settings",
          description: "Any subset; null is the default."
        })
      )
      .annotateMerge(requires("providers:update"))
  )
  .prefix("/providers/upstream-passthrough")
