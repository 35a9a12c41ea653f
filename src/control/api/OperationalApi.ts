import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"

const checks = Schema.Record(Schema.String, Schema.String).annotate({
  description:
    "What was looked at: `database`, `redis` and `broker` are `up` or `down`; `listeners` are `opening`, `open` or `closing`; the `configuration` is `current`, `behind`, or has `unreadable_rows`."
})

/** Load balancers leave it alone. */
export const Ready = Schema.Struct({
  status: Schema.Literals(["ready", "degraded"]).annotate({
    description: "`degraded`: the process serves, and an operator should look."
  }),
  checks
})

export const NotReady = Schema.Struct({ status: Schema.Literal("not_ready"), checks }).pipe(HttpApiSchema.status(503))

/** What load balancers and monitors ask; no authentication. */
export const OperationalApi = HttpApiGroup.make("operational")
  .annotate(OpenApi.Description, "For load balancers and monitors; no authentication.")
  .add(
    HttpApiEndpoint.get("health", "/healthz", { success: Schema.Struct({ status: Schema.Literal("ok") }) }).annotate(
      OpenApi.Summary,
      "Say whether the process lives"
    ),
    HttpApiEndpoint.get("readiness", "/readyz", {
      success: Ready,
      error: NotReady
    }).annotate(OpenApi.Summary, "Say whether the process can take requests"),
    HttpApiEndpoint.get("metrics", "/metrics", {
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; version=0.0.4" }))
    }).annotate(OpenApi.Summary, "Show the metrics, for Prometheus")
  )
