import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Endpoint } from "../../../policy/routes/Service.ts"
import { refusals } from "../schema/Errors.ts"
import { bodyOptional, requires } from "../schema/Security.ts"
import { Service } from "./ServicesApi.ts"

/** At the origin of the service's `upstream_base_url`. */
const SourcePath = Schema.optionalKey(Schema.String)

/** What a service's document describes now, and how that differs from what was synced last. */
export const OpenApiPreview = Schema.Struct({
  source_path: Schema.String,
  /** Of the document's bytes; `sync` takes it, so that what was looked at is what is taken over. */
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
  .annotate(OpenApi.Description, "What a service says of itself, for prices by endpoint.")
  .add(
    HttpApiEndpoint.post("preview", "/:name/openapi/preview", {
      params,
      payload: [Schema.Struct({ source_path: SourcePath }), Schema.Null],
      success: OpenApiPreview,
      error: refusals(...refused)
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Fetch a service's OpenAPI document",
          description: "Changes nothing; without a body, from `/openapi.json`."
        })
      )
      .annotateMerge(bodyOptional),
    HttpApiEndpoint.post("sync", "/:name/openapi/sync", {
      params,
      payload: OpenApiSync,
      success: Service,
      error: refusals(...refused, "service_openapi_changed")
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Take over a service's OpenAPI document",
        description: "Only the one that `expected_schema_hash` of the preview stands for."
      })
    )
  )
  .annotateEndpointsMerge(requires("services:update"))
  .prefix("/services")
