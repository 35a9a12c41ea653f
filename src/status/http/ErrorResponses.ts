import { Effect, type Types } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { refusal } from "./ErrorBody.ts"

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const

/** Adds a 405 response for each method that a path does not support. */
export const refuseOtherMethods = Effect.fnUntraced(function* (
  router: HttpRouter.HttpRouter,
  path: HttpRouter.PathInput,
  allowed: ReadonlyArray<"GET" | "POST">
) {
  const names = allowed.join(" and ")
  const allow = allowed.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ")
  const answer = refusal(405, `This path accepts only ${names}.`, { allow })
  for (const method of methods) if (!allowed.some((one) => one === method)) yield* router.add(method, path, answer)
})

const notFound = refusal(404, "There is nothing at this path.")

const internalError = refusal(500, "The service failed to process this request. The reason is in its log.")

/** Responds to an unexpected error with status 500 and an error body. The response of the HTTP server has no body. */
export const catchDefects = <E, R>(
  handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
  Effect.catchDefect(handler, (defect) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method }) =>
      Effect.as(
        Effect.logError(`A ${method} request failed with 500, because its handler threw an unexpected error`, defect),
        internalError
      )
    )
  )

/** Responds to unknown paths and unexpected errors with an error body. Use it only if this library owns all routes. */
export const layer = HttpRouter.middleware(
  (httpEffect) =>
    catchDefects(
      Effect.catch(httpEffect, (error: Types.unhandled | HttpServerError.HttpServerError) =>
        HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"
          ? Effect.succeed(notFound)
          : Effect.fail(error)
      )
    ),
  { global: true }
)
