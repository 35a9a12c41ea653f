import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"

const checks = Schema.Record(Schema.String, Schema.String).annotate({
  description:
    "The checked parts. `database`, `redis` and `broker` are `up` or `down`. `listeners` are `opening`, `open` or `closing`. `configuration` is `current`, `behind` (a newer configuration is stored but not applied yet) or `unreadable_rows` (this version cannot decode some rows)."
})

/** The response while the process accepts requests. Load balancers then keep sending requests to the process. */
export const Ready = Schema.Struct({
  status: Schema.Literals(["ready", "degraded"]).annotate({
    description: "`degraded`: the process accepts requests, but an operator should check it."
  }),
  checks
})

export const NotReady = Schema.Struct({ status: Schema.Literal("not_ready"), checks }).pipe(HttpApiSchema.status(503))

const health = HttpApiEndpoint.get("health", "/healthz", {
  success: Schema.Struct({ status: Schema.Literal("ok") })
}).annotate(OpenApi.Summary, "Report whether the process runs")

const readiness = HttpApiEndpoint.get("readiness", "/readyz", { success: Ready, error: NotReady }).annotate(
  OpenApi.Summary,
  "Report whether the process accepts requests"
)

/** The probes of listeners that do not show metrics. */
export const ProbesApi = HttpApiGroup.make("probes").add(health, readiness)

export const OperationalApi = HttpApiGroup.make("operational")
  .annotate(OpenApi.Description, "Endpoints for load balancers and monitors, without authentication.")
  .add(
    health,
    readiness,
    HttpApiEndpoint.get("metrics", "/metrics", {
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; version=0.0.4" }))
    }).annotate(OpenApi.Summary, "Show the metrics in Prometheus format")
  )
