import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"

export const NotReady = Schema.Struct({ status: Schema.Literal("not_ready") }).pipe(HttpApiSchema.status(503))

/** What load balancers and monitors ask; no authentication. */
export const OperationalApi = HttpApiGroup.make("operational")
  .annotate(OpenApi.Description, "For load balancers and monitors; no authentication.")
  .add(
    HttpApiEndpoint.get("health", "/healthz", { success: Schema.Struct({ status: Schema.Literal("ok") }) }).annotate(
      OpenApi.Summary,
      "Say whether the process lives"
    ),
    HttpApiEndpoint.get("readiness", "/readyz", {
      success: Schema.Struct({ status: Schema.Literal("ready") }),
      error: NotReady
    }).annotate(OpenApi.Summary, "Say whether the process can take requests"),
    HttpApiEndpoint.get("metrics", "/metrics", {
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; version=0.0.4" }))
    }).annotate(OpenApi.Summary, "Show the metrics, for Prometheus")
  )
