import { Effect, type Types } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { refusal } from "./ErrorBody.ts"

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const

/** Adds 405 responses for the methods that a path has no route for. */
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

/**
 * Responds to a defect with a 500 in the shape of these routers. Otherwise the server would respond with a bare status.
 */
export const catchDefects = <E, R>(
  handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
  Effect.catchDefect(handler, (defect) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method }) =>
      Effect.as(Effect.logError(`The handler of a ${method} request failed unexpectedly`, defect), internalError)
    )
  )

/**
 * For a listener with only these routers: gives unknown paths, and defects in other routes, responses in the same
 * shape.
 */
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
