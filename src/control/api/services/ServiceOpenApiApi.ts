import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Endpoint } from "../../../policy/routes/Service.ts"
import { refusals } from "../schema/Errors.ts"
import { bodyOptional, requires } from "../schema/Security.ts"
import { Service } from "./ServicesApi.ts"

/** The path of the OpenAPI document, at the origin of the service's `upstream_base_url`. */
const SourcePath = Schema.optionalKey(Schema.String)

/** The service's current OpenAPI document, and its difference from the last document that was applied. */
export const OpenApiPreview = Schema.Struct({
  source_path: Schema.String,
  /** The SHA-256 hash of the document. `sync` requires it, so that it applies exactly the previewed document. */
  schema_hash: Schema.String,
  title: Schema.NullOr(Schema.String),
  version: Schema.NullOr(Schema.String),
  endpoints: Schema.Array(Endpoint),
  added: Schema.Array(Endpoint),
  removed: Schema.Array(Endpoint)
})
export type OpenApiPreview = typeof OpenApiPreview.Type

export const OpenApiSync = Schema.Struct({
  source_path: SourcePath,
  expected_schema_hash: Schema.String.check(
    Schema.isPattern(/^sha256:[0-9a-f]{64}$/, { expected: "the schema_hash of a preview (sha256:…)" })
  )
})
export type OpenApiSync = typeof OpenApiSync.Type

const params = { name: Schema.String }
const refused = [
  "missing_service",
  "incomplete_service",
  "invalid_service_upstream",
  "invalid_service_openapi",
  "service_openapi_unavailable"
] as const

export const ServiceOpenApiApi = HttpApiGroup.make("service-openapi")
  .annotate(
    OpenApi.Description,
    "Imports the endpoints of services from their OpenAPI documents, so that each endpoint can have its own price."
  )
  .add(
    HttpApiEndpoint.post("preview", "/:name/openapi/preview", {
      params,
      payload: [Schema.Struct({ source_path: SourcePath }), Schema.Null],
      success: OpenApiPreview,
      error: refusals(...refused)
    })
      .annotate(OpenApi.Summary, "Fetch a service's OpenAPI document")
      .annotate(OpenApi.Description, "Changes nothing. Without a body, the document is fetched from `/openapi.json`.")
      .annotateMerge(bodyOptional),
    HttpApiEndpoint.post("sync", "/:name/openapi/sync", {
      params,
      payload: OpenApiSync,
      success: Service,
      error: refusals(...refused, "service_openapi_changed")
    })
      .annotate(OpenApi.Summary, "Apply a service's OpenAPI document")
      .annotate(OpenApi.Description, "Applies the document only if its hash is still the `schema_hash` of the preview.")
  )
  .annotateEndpointsMerge(requires("services:update"))
  .prefix("/services")
