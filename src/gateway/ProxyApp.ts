import { Cause, Clock, Context, Effect, Exit, Layer, LogLevel, Option, Redacted, References, Result } from "effect"
import { Upstream } from "../services/Upstream.ts"
import * as Authentication from "./Authentication.ts"
import * as Billing from "./Billing.ts"
import { ControlState } from "./ControlState.ts"
import * as DelegatedRequest from "./DelegatedRequest.ts"
import { Destinations } from "./Destination.ts"
import { GatewayError } from "./GatewayError.ts"
import { controlStateUnavailable, GovernedRequest } from "./GovernedRequest.ts"
import * as Headers from "./Headers.ts"
import { type KeyRecord, unusable } from "./KeyRecord.ts"
import { digestHex } from "./model/Secret.ts"
import { GatewaySettings } from "./model/Settings.ts"
import * as Request from "./Request.ts"
import * as Target from "./Target.ts"
import * as Telemetry from "./Telemetry.ts"
import * as Tracing from "./Tracing.ts"
import type { Wire } from "./Wire.ts"

/** The proxy listener's program: one request, from its headers to the end of its answer. */
export class ProxyApp extends Context.Service<
  ProxyApp,
  {
    /** Answers on the wire, and here with how it ended. */
    readonly handle: (wire: Wire) => Effect.Effect<Telemetry.Ended>
  }
>()("svc/gateway/ProxyApp") {
  static readonly layer = Layer.effect(
    ProxyApp,
    Effect.gen(function* () {
      const control = yield* ControlState
      const destinations = yield* Destinations
      const governed = yield* GovernedRequest
      const settings = yield* GatewaySettings
      const upstream = yield* Upstream
      const telemetry = yield* Telemetry.make
      const phase = yield* Tracing.phase
      const traced = yield* Tracing.request
      /** A line per request is for debugging: where it is not written, it is not made. */
      const verbose = LogLevel.isLessThanOrEqualTo(yield* References.MinimumLogLevel, "Debug")
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()

      const authenticate = (raw: string): Effect.Effect<KeyRecord, GatewayError> =>
        Effect.matchEffect(control.key(digestHex(raw)), {
          onFailure: ({ cause }) =>
            Effect.andThen(
              Effect.logWarning("a key cannot be looked up", { cause }),
              Effect.fail(controlStateUnavailable)
            ),
          onSuccess: (found) => {
            const refused = Option.match(found, {
              onNone: () => "invalid_virtual_key" as const,
              onSome: (record) => unusable(record, now())
            })
            return Option.isSome(found) && refused === undefined
              ? Effect.succeed(found.value)
              : Effect.fail(Authentication.refusal(refused ?? "invalid_virtual_key"))
          }
        })

      const serve = (request: Request.Request, target: Target.Target): Effect.Effect<Telemetry.Ended, GatewayError> => {
        const presented = Authentication.presented(request.wire.headers, request.family)
        if (Result.isFailure(presented)) return Effect.fail(presented.failure)
        const { _tag, raw } = presented.success
        if (_tag === "GatewayKey") {
          return Effect.flatMap(phase("gateway.auth.verify", authenticate(raw)), (key) =>
            governed.run(request, target, key)
          )
        }
        return target.config.mode === "direct_upstream_passthrough"
          ? DelegatedRequest.run(upstream, request, target, destinations.delegated(Redacted.make(raw)), now)
          : Effect.fail(Authentication.malformed)
      }

      /** A refusal that leaves no record: nobody is known to have asked. */
      const refuse = (request: Request.Request, error: GatewayError): Telemetry.Ended => {
        Request.refuse(request, error, [], now())
        return { status: error.status, error, streamed: false, aborted: false, bill: Billing.nothing }
      }

      const refuseCause = (
        request: Request.Request,
        cause: Cause.Cause<GatewayError>
      ): Effect.Effect<Telemetry.Ended> => {
        const error = Cause.findError(cause)
        if (Result.isSuccess(error)) return Effect.succeed(refuse(request, error.success))
        // the client has hung up
        if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
        return Effect.as(
          Effect.logError("a request failed in the gateway", {
            request_id: request.requestId,
            defect: Cause.squash(cause)
          }),
          refuse(request, internalError)
        )
      }

      const logged = (request: Request.Request, target: Target.Target | undefined, ended: Telemetry.Ended) => {
        if (ended.status >= 500) return Effect.logWarning("request failed", line(request, target, ended))
        return verbose ? Effect.logDebug("request", line(request, target, ended)) : Effect.void
      }

      const handle = (wire: Wire): Effect.Effect<Telemetry.Ended> =>
        Effect.suspend(() => {
          telemetry.begin()
          const request = Request.make(wire, now(), settings.workerToken)
          const found = Target.find(wire.method, wire.target, control.snapshot())
          const target = Result.getOrUndefined(found)
          const served = Result.isSuccess(found) ? serve(request, found.success) : Effect.fail(found.failure)
          const answered = Effect.tap(
            Effect.catchCause(served, (cause) => refuseCause(request, cause)),
            (ended) => logged(request, target, ended)
          )
          return Effect.onExit(traced(request, target, answered), (exit) => {
            telemetry.end(target, Exit.isSuccess(exit) ? exit.value : left, now() - request.startedAt)
            return Effect.void
          })
        })

      return ProxyApp.of({ handle })
    })
  )
}

const internalError = new GatewayError({
  code: "internal_error",
  message: "The gateway failed. The request id tells an operator where to look."
})

const left: Telemetry.Ended = {
  status: Request.clientClosed,
  error: undefined,
  streamed: false,
  aborted: false,
  bill: Billing.nothing
}

/** What a log line says of a request: nothing that the client wrote but its id. */
const line = (request: Request.Request, target: Target.Target | undefined, { error, status }: Telemetry.Ended) => ({
  request_id: request.requestId,
  route: target?.route ?? "unrouted",
  provider: target?.provider ?? "none",
  "http.response.status_code": status,
  ...(request.traceparent === undefined ? {} : { trace_id: Headers.traceId(request.traceparent) }),
  ...(error === undefined ? {} : { code: error.code })
})
