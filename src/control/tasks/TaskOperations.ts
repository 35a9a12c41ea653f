import { Deferred, Effect, Layer, Schema, Stream } from "effect"
import { HttpBody, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { RequestId } from "../api/schema/Errors.ts"
import { allows, Operator, type Scope } from "../api/schema/Security.ts"
import { Audit, Snapshots } from "../audit/Audit.ts"
import { toResponse } from "../http/ErrorResponses.ts"
import { tasksPath } from "../http/Paths.ts"
import { authenticate, authenticationServices, insufficientScope } from "../operators/Authentication.ts"
import * as CredentialWatch from "../operators/CredentialWatch.ts"

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
    const watch = yield* CredentialWatch.make
    const credentialsOfRequest = yield* CredentialWatch.credentialsOfRequest
    const admit = Effect.gen(function* () {
      const operator = yield* authenticate
      const { method, url } = yield* HttpServerRequest.HttpServerRequest
      const required = scopesOf(method)
      if (!allows(operator.scopes, required)) return yield* insufficientScope(required)
      if (!isRead(method)) yield* Effect.provideService(record(audit, { method, path: url }), Operator, operator)
    }).pipe(Effect.provideContext(services))
    /** An event stream ends soon after the credentials have lost the right to it. */
    const untilLost = (response: HttpServerResponse.HttpServerResponse) => {
      const { body } = response
      if (body._tag !== "Stream") return Effect.succeed(response)
      return Effect.map(credentialsOfRequest, (credentials) => {
        const stream = Effect.gen(function* () {
          const lost = yield* Deferred.make<void>()
          yield* watch({
            credentials,
            isAllowed: (scopes) => allows(scopes, scopesOf("GET")),
            onLost: () => Deferred.doneUnsafe(lost, Effect.void)
          })
          return Stream.interruptWhen(body.stream, Deferred.await(lost))
        })
        return HttpServerResponse.setBody(response, HttpBody.stream(Stream.unwrap(stream), body.contentType))
      })
    }
    return (httpEffect) =>
      Effect.flatMap(requestId, (id) =>
        Effect.matchEffect(Effect.provideService(admit, RequestId, id), {
          onFailure: (error) => Effect.succeed(toResponse(error, id)),
          onSuccess: () => Effect.flatMap(httpEffect, untilLost)
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
