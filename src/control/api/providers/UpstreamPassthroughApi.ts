import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { maxBodyBytes, maxTimeoutMs } from "../../../policy/routes/CanonicalRoute.ts"
import { Ownership } from "../../../policy/routes/Ownership.ts"
import { AdminApiExposure, Passthrough, UiExposure, UnenforceablePolicy } from "../../../policy/routes/Passthrough.ts"
import { refusals } from "../schema/Errors.ts"
import { expectedUpdate, Timestamp, upTo } from "../schema/Fields.ts"
import { operation } from "../schema/Security.ts"

/** The settings for requests that match no route (the wildcard of the proxy listener). */
export const UpstreamPassthrough = Passthrough.pipe(Schema.fieldsAssign({ updated_at: Timestamp }))
export type UpstreamPassthrough = typeof UpstreamPassthrough.Type

const orNull = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
const choice = (words: ReadonlyArray<string>) =>
  orNull(Schema.String.annotate({ description: `One of ${words.join(", ")}.` }))

/** The OpenAPI description of `ownership`, used here and for routes that create objects. */
export const ownership = `The keys that may use an object (batch, response, file …) created at the upstream: those of the same project (for a key without a project, only itself), only the creating key, or every key. One of ${Ownership.literals.join(", ")}.`

/** The OpenAPI description of `limits_streams`, used here and for routes. */
export const limitsStreams =
  "Whether max_response_body_bytes also limits event streams. Setting that limit sets limits_streams to true, unless the same request sets limits_streams to false."

const unguardedChoice = (what: string) =>
  orNull(Schema.String.annotate({ description: `${what} One of ${UnenforceablePolicy.literals.join(", ")}.` }))

/** `null` resets a field to its default. Invalid values are refused with `invalid_provider_config_payload`. */
export const UpstreamPassthroughPatch = Schema.Struct({
  enabled: orNull(Schema.Boolean),
  allowed_paths: orNull(
    Schema.Array(Schema.String).annotate({ description: "1 to 64 paths. A * at the end matches any suffix." })
  ),
  allowed_methods: orNull(Schema.Array(Schema.String).annotate({ description: "1 to 16 HTTP methods." })),
  ui_exposure: choice(UiExposure.literals),
  admin_api_exposure: choice(AdminApiExposure.literals),
  guardrails: unguardedChoice(
    "Guardrails cannot check requests that match no route. This setting refuses such requests of keys with default or mandatory guardrails, or skips the guardrails."
  ),
  body_policies: unguardedChoice(
    "Bodies of requests that match no route are not parsed. This setting refuses bodies of keys whose policy depends on their content (such as allowed_models), or skips these checks."
  ),
  ownership: orNull(Schema.String.annotate({ description: ownership })),
  timeout_ms: orNull(upTo(maxTimeoutMs, "Milliseconds")),
  max_request_body_bytes: orNull(upTo(maxBodyBytes, "Bytes")),
  max_response_body_bytes: orNull(upTo(maxBodyBytes, "Bytes")),
  limits_streams: orNull(Schema.Boolean.annotate({ description: limitsStreams })),
  ...expectedUpdate
})
export type UpstreamPassthroughPatch = typeof UpstreamPassthroughPatch.Type

export const UpstreamPassthroughApi = HttpApiGroup.make("upstream-passthrough")
  .annotate(
    OpenApi.Description,
    "Requests that match no route: the paths that are forwarded to the upstream, and who may use them."
  )
  .add(
    HttpApiEndpoint.get("get", "/", { success: UpstreamPassthrough }).annotateMerge(
      operation("Show the passthrough settings", "usage:read")
    ),
    HttpApiEndpoint.patch("update", "/", {
      payload: UpstreamPassthroughPatch,
      success: UpstreamPassthrough,
      error: refusals("invalid_provider_config_payload", "changed_since_read")
    })
      .annotateMerge(operation("Change the passthrough settings", "providers:update"))
      .annotate(OpenApi.Description, "Any subset of the settings. null sets the default.")
  )
  .prefix("/providers/upstream-passthrough")
