import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { PrometheusMetrics } from "effect/observability"
import { Readiness } from "../../process/Readiness.ts"
import { OperationalApi } from "../api/OperationalApi.ts"
import { ControlError, RequestId } from "../api/schema/Errors.ts"
import { toResponse } from "./ErrorResponses.ts"
import { KnownHosts } from "./KnownHosts.ts"
import { RequestIds } from "./RequestIds.ts"

/** For `HttpRouter.serve`: a path is what it says, and a percent-encoded model name is one segment of it. */
export const routerConfig = {
  caseSensitive: true,
  ignoreTrailingSlash: false,
  ignoreDuplicateSlashes: false,
  maxParamLength: 1024
} as const

/** The router runs a middleware inside those that were added before it: a refused host has its request id, too. */
export const hostAndRequestIdMiddleware = KnownHosts.pipe(Layer.provideMerge(RequestIds))

/** What load balancers and monitors are told. */
export const probeHandlers = Effect.map(Readiness, (ready) => ({
  health: () => Effect.succeed({ status: "ok" as const }),
  readiness: () =>
    Effect.flatMap(ready, ({ checks, status }) =>
      status === "not_ready" ? Effect.fail({ status, checks }) : Effect.succeed({ status, checks })
    ),
  metrics: () => PrometheusMetrics.format()
}))

export const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const

export const notFound = new ControlError("not_found", "There is nothing at this path.")

/** HEAD is left out: the router answers it as GET, unless something has it for its own. */
export const fallbackMethods = [...methods, "QUERY"] as const

/** For a listener that guards nothing: what it does not have is not there. */
const notFoundRoutes = HttpRouter.addAll(
  fallbackMethods.map((method) =>
    HttpRouter.route(
      method,
      "/*",
      Effect.map(RequestId, (requestId) => toResponse(notFound, requestId))
    )
  )
)

/** What a process without the operator API still answers: probes and metrics. */
const ProbesApi = HttpApi.make("probes").add(OperationalApi).prefix("/admin-ui")

const handlers = HttpApiBuilder.group(
  ProbesApi,
  "operational",
  Effect.fn(function* (handlers) {
    return handlers.handleAll(yield* probeHandlers)
  })
)

/** The routes of a control listener without the operator API: health, readiness and metrics. */
export const layer = Layer.mergeAll(HttpApiBuilder.layer(ProbesApi).pipe(Layer.provide(handlers)), notFoundRoutes).pipe(
  Layer.provide(hostAndRequestIdMiddleware)
)
