import { Effect, Layer, Schema } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { RequestId } from "../api/schema/Errors.ts"
import { allows, Operator, type Scope } from "../api/schema/Security.ts"
import { Audit, Snapshots } from "../audit/Audit.ts"
import { toResponse } from "../http/ErrorResponses.ts"
import { tasksPath } from "../http/Paths.ts"
import { authenticate, authenticationServices, insufficientScope } from "../operators/Authentication.ts"

/** Serves `routes` below `tasksPath`, to operators with the scopes of `scopesOf`. */
export const layer = <E, R>(routes: Layer.Layer<never, E, R>) =>
  routes.pipe(Layer.provide([authorized.layer, belowPath]))

const belowPath = Layer.effect(
  HttpRouter.HttpRouter,
  Effect.map(HttpRouter.HttpRouter, (router) => router.prefixed(tasksPath))
)

/** One of the scopes is enough. */
const scopesOf = (method: string): ReadonlyArray<Scope> =>
  isRead(method) ? ["tasks:read", "tasks:operate"] : ["tasks:operate"]

const isRead = (method: string): boolean => method === "GET" || method === "HEAD"

const authorized = HttpRouter.middleware(
  Effect.gen(function* () {
    const services = yield* authenticationServices
    const audit = yield* Audit
    const admit = Effect.gen(function* () {
      const operator = yield* authenticate
      const { method, url } = yield* HttpServerRequest.HttpServerRequest
      const required = scopesOf(method)
      if (!allows(operator.scopes, required)) return yield* insufficientScope(required)
      if (!isRead(method)) yield* Effect.provideService(record(audit, { method, path: url }), Operator, operator)
    }).pipe(Effect.provideContext(services))
    return (httpEffect) =>
      Effect.flatMap(requestId, (id) =>
        Effect.matchEffect(Effect.provideService(admit, RequestId, id), {
          onFailure: (error) => Effect.succeed(toResponse(error, id)),
          onSuccess: () => httpEffect
        })
      )
  })
)

/** Every request of the listener has an id, but the type of a middleware for single routes cannot require it. */
const requestId = Effect.orDie(Effect.flatMap(Effect.serviceOption(RequestId), Effect.fromOption))

/**
 * Records what an operator asks for before it happens. It happens in Redis and RabbitMQ, so no transaction includes both
 * the event and the change.
 */
const record = (audit: Audit["Service"], operation: typeof Operation.Type) =>
  audit.mutate(function* () {
    return {
      result: undefined,
      auditAction: { target: "tasks", action: "tasks:operate" } as const,
      targetId: operation.path.slice(0, maxTargetId),
      snapshots: yield* snapshots(null, operation),
      changes: []
    }
  })

const Operation = Schema.Struct({ method: Schema.String, path: Schema.String })
const snapshots = Snapshots.of(Operation)
const maxTargetId = 256
