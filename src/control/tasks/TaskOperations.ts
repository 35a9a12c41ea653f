import { Deferred, Effect, Layer, Option, Schema, Stream } from "effect"
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

/** A check of an edit or a replay is sent as a change, and changes nothing. The query of a request must not make it look like one. */
const changesSomething = (method: string, url: string): boolean => !isRead(method) && !check.test(url)

const check = /^\/dlq\/(messages\/[^/?#;]+\/edits|replays)\/check(\?.*)?$/

interface Recorded {
  readonly operation: typeof Operation.Type
  readonly operator: Operator["Service"]
}

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
      if (!changesSomething(method, url)) return undefined
      const operation = { method, path: url }
      yield* Effect.provideService(record(audit, operation), Operator, operator)
      return { operation, operator }
    }).pipe(Effect.provideContext(services))
    const recordOutcome = (
      { operation, operator }: Recorded,
      response: HttpServerResponse.HttpServerResponse,
      id: string
    ) =>
      recordResult(audit, operation, response).pipe(
        Effect.provideService(Operator, operator),
        Effect.provideService(RequestId, id),
        Effect.catch((error) => Effect.logWarning("the result of an operation is not in the audit log", error))
      )
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
          onSuccess: (recorded) =>
            Effect.flatMap(
              recorded === undefined
                ? httpEffect
                : // A client that hangs up meanwhile would otherwise hide what its operation has changed.
                  Effect.uninterruptible(Effect.tap(httpEffect, (response) => recordOutcome(recorded, response, id))),
              untilLost
            )
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

/** Records what came of it: the status, and what the response says of the objects. Payloads are not recorded. */
const recordResult = (
  audit: Audit["Service"],
  operation: typeof Operation.Type,
  response: HttpServerResponse.HttpServerResponse
) =>
  audit.mutate(function* () {
    return {
      result: undefined,
      auditAction: { target: "tasks", action: "tasks:operated" } as const,
      targetId: operation.path.slice(0, maxTargetId),
      snapshots: yield* resultSnapshots(null, { ...operation, status: response.status, result: toldBy(response) }),
      changes: []
    }
  })

/** The members of responses that name objects, their states and the places of a change. */
const told = [
  "cancellation_id",
  "dlq_id",
  "edited_from",
  "task_id",
  "replay_id",
  "queue",
  "queue_name",
  "target_queue_name",
  "state",
  "changed",
  "problem",
  "query",
  "total"
]

const maxToldBytes = 65_536

const toldBy = ({ body }: HttpServerResponse.HttpServerResponse): typeof Told.Type => {
  if (body._tag !== "Uint8Array" || body.contentLength > maxToldBytes) return {}
  const members = Option.getOrElse(decodeMembers(body.text ?? Buffer.from(body.body).toString()), () => ({}))
  return Object.fromEntries(Object.entries(members).filter(([name, value]) => told.includes(name) && value !== null))
}

const Told = Schema.Record(Schema.String, Schema.Json)
const decodeMembers = Schema.decodeUnknownOption(Schema.fromJsonString(Told))

const Operation = Schema.Struct({ method: Schema.String, path: Schema.String })
const snapshots = Snapshots.of(Operation)
const resultSnapshots = Snapshots.of(Operation.pipe(Schema.fieldsAssign({ status: Schema.Int, result: Told })))
const maxTargetId = 256
