import { Effect, type Types } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { refusal } from "./ErrorBody.ts"

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const

/** Refuses what a path has no route for. */
export const refuseOtherMethods = Effect.fnUntraced(function* (
  router: HttpRouter.HttpRouter,
  path: HttpRouter.PathInput,
  allowed: ReadonlyArray<"GET" | "POST">
) {
  const names = allowed.join(" and ")
  const allow = allowed.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ")
  const answer = refusal(405, `This path has the method ${names} only.`, { allow })
  for (const method of methods) if (!allowed.some((one) => one === method)) yield* router.add(method, path, answer)
})

const notFound = refusal(404, "There is nothing at this path.")

const internalError = refusal(500, "The request could not be answered, through no fault of its own. The log says why.")

/** What breaks is refused in the shape of these routers, too: a server answers it with nothing but a status. */
export const catchDefects = <E, R>(
  handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
  Effect.catchDefect(handler, (defect) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method }) =>
      Effect.as(Effect.logError(`A ${method} request broke its handler`, defect), internalError)
    )
  )

/**
 * For a listener of these routers alone: what no route answers is refused in their shape, and what breaks in others'
 * routes.
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
