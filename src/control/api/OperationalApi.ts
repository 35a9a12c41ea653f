import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"

export const NotReady = Schema.Struct({ status: Schema.Literal("not_ready") }).pipe(HttpApiSchema.status(503))

/** What load balancers and monitors ask; no authentication. */
export const OperationalApi = HttpApiGroup.make("operational").add(
  HttpApiEndpoint.get("health", "/healthz", { success: Schema.Struct({ status: Schema.Literal("ok") }) }),
  HttpApiEndpoint.get("readiness", "/readyz", {
    success: Schema.Struct({ status: Schema.Literal("ready") }),
    error: NotReady
  }),
  HttpApiEndpoint.get("metrics", "/metrics", {
    success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; version=0.0.4" }))
  })
)
