import { Effect, type Types } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest } from "effect/http"
import { refusal } from "./Detail.ts"

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const

/** Refuses what a path has no route for. */
export const otherMethods = Effect.fnUntraced(function* (
  router: HttpRouter.HttpRouter,
  path: HttpRouter.PathInput,
  allowed: ReadonlyArray<"GET" | "POST">
) {
  const names = allowed.join(" and ")
  const allow = allowed.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ")
  const answer = refusal(405, `This path has the method ${names} only.`, { allow })
  for (const method of methods) if (!allowed.some((one) => one === method)) yield* router.add(method, path, answer)
})

const nothing = refusal(404, "There is nothing at this path.")

const broken = refusal(500, "The request could not be answered, through no fault of its own. The log says why.")

/**
 * For a listener of these routers alone: what no route answers, and what breaks, is refused in their shape too. Without it a
 * server answers both with nothing but a status.
 */
export const layer = HttpRouter.middleware(
  (httpEffect) =>
    httpEffect.pipe(
      Effect.catch((error: Types.unhandled | HttpServerError.HttpServerError) =>
        HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"
          ? Effect.succeed(nothing)
          : Effect.fail(error)
      ),
      Effect.catchDefect((defect) =>
        Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method }) =>
          Effect.as(Effect.logError(`A ${method} request broke its handler`, defect), broken)
        )
      )
    ),
  { global: true }
)
