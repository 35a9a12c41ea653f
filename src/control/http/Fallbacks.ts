import { Effect, type Layer } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { ControlError, RequestId } from "../api/schema/Errors.ts"
import { authenticate, authenticationServices } from "../operators/Authentication.ts"
import type { OperatorTokens } from "../operators/OperatorTokens.ts"
import type { Sessions } from "../session/Sessions.ts"
import { toResponse } from "./ErrorResponses.ts"
import { tasksPath } from "./Paths.ts"
import { fallbackMethods, methods, notFound } from "./Probes.ts"

/** All paths below these paths return 401 without a valid operator token. This hides which paths exist. */
const operatorPath = "/admin-ui/admin"
const operatorPaths = [operatorPath, tasksPath]

const declaredMethods = (): ReadonlyMap<string, ReadonlySet<string>> => {
  const methodsByPath = new Map<string, Set<string>>()
  HttpApi.reflect(ControlApi, {
    onGroup: () => {},
    onEndpoint: ({ endpoint: { method, path } }) => {
      methodsByPath.set(path, (methodsByPath.get(path) ?? new Set()).add(method))
    }
  })
  return methodsByPath
}

const notAllowed = new ControlError(
  "method_not_allowed",
  "This path does not support the method. The Allow header lists the supported methods."
)

const noTask = new ControlError(
  "not_found",
  "There is nothing at this path of tasks. If the process was started without --tasks and --example, there is nothing at all."
)

/** Handles requests that match no endpoint: 405 if the path has endpoints for other methods, else 404. */
export const layer: Layer.Layer<
  never,
  never,
  HttpRouter.HttpRouter | OperatorTokens | Sessions | HttpRouter.Request<"Requires", RequestId>
> = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const services = yield* authenticationServices

    const refuse = (
      path: string,
      error: ControlError,
      headers: Readonly<Record<string, string>> = {}
    ): Effect.Effect<HttpServerResponse.HttpServerResponse, never, RequestId | HttpServerRequest.HttpServerRequest> =>
      Effect.gen(function* () {
        const requestId = yield* RequestId
        if (!operatorPaths.some((one) => path.startsWith(one)))
          return HttpServerResponse.setHeaders(toResponse(error, requestId), headers)
        return yield* authenticate.pipe(
          Effect.match({
            onFailure: (unknown) => toResponse(unknown, requestId),
            onSuccess: () => HttpServerResponse.setHeaders(toResponse(error, requestId), headers)
          })
        )
      }).pipe(Effect.provideContext(services))

    for (const [path, allowed] of declaredMethods()) {
      const refusal = refuse(path, notAllowed, { allow: [...allowed].join(", ") })
      for (const method of methods) {
        if (!allowed.has(method)) yield* router.add(method, `/${path.slice(1)}`, refusal)
      }
    }
    for (const method of fallbackMethods) {
      yield* router.add(method, `${operatorPath}/*`, refuse(operatorPath, notFound))
      yield* router.add(method, `${tasksPath}/*`, refuse(tasksPath, noTask))
      yield* router.add(method, "/*", refuse("/", notFound))
    }
  })
)
