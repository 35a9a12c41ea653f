import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { MetricsPage } from "../../process/MetricsPage.ts"
import { Readiness } from "../../process/Readiness.ts"
import { OperationalApi } from "../api/OperationalApi.ts"
import { ControlError, RequestId } from "../api/schema/Errors.ts"
import { toResponse } from "./ErrorResponses.ts"
import { KnownHosts } from "./KnownHosts.ts"
import { RequestIds } from "./RequestIds.ts"

export const routerConfig = {
  caseSensitive: true,
  ignoreTrailingSlash: false,
  ignoreDuplicateSlashes: false,
  maxParamLength: 1024
} as const

/** `RequestIds` wraps `KnownHosts`, so a response that refuses the host name also has a request id. */
export const hostAndRequestIdMiddleware = KnownHosts.pipe(Layer.provideMerge(RequestIds))

export const probeHandlers = Effect.map(Effect.all([Readiness, MetricsPage]), ([ready, metrics]) => ({
  health: () => Effect.succeed({ status: "ok" as const }),
  readiness: () =>
    Effect.flatMap(ready, ({ checks, status }) =>
      status === "not_ready" ? Effect.fail({ status, checks }) : Effect.succeed({ status, checks })
    ),
  metrics: () => metrics
}))

export const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const

export const notFound = new ControlError("not_found", "There is nothing at this path.")

/** HEAD is not in the list, because the router handles HEAD as GET unless a route declares HEAD. */
export const fallbackMethods = [...methods, "QUERY"] as const

export const notFoundRoutes = HttpRouter.addAll(
  fallbackMethods.map((method) =>
    HttpRouter.route(
      method,
      "/*",
      Effect.map(RequestId, (requestId) => toResponse(notFound, requestId))
    )
  )
)

/** The endpoints of a process without the operator API: health, readiness and metrics. */
const OnlyProbesApi = HttpApi.make("probes").add(OperationalApi).prefix("/admin-ui")

const handlers = HttpApiBuilder.group(
  OnlyProbesApi,
  "operational",
  Effect.fn(function* (handlers) {
    return handlers.handleAll(yield* probeHandlers)
  })
)

export const layer = Layer.mergeAll(
  HttpApiBuilder.layer(OnlyProbesApi).pipe(Layer.provide(handlers)),
  notFoundRoutes
).pipe(Layer.provide(hostAndRequestIdMiddleware))
