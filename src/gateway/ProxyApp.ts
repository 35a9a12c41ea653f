import { Clock, Context, Effect, Exit, Layer, Option, Redacted, Result } from "effect"
import { Upstream } from "../services/Upstream.ts"
import * as Authentication from "./Authentication.ts"
import * as Billing from "./Billing.ts"
import { ControlState } from "./ControlState.ts"
import * as DelegatedRequest from "./DelegatedRequest.ts"
import { Destinations } from "./Destination.ts"
import { GatewayError } from "./GatewayError.ts"
import { controlStateUnavailable, GovernedRequest } from "./GovernedRequest.ts"
import * as Headers from "./Headers.ts"
import { unusable } from "./KeyRecord.ts"
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
    /** Answers on the wire, and here with the status that the client saw or would have seen. */
    readonly handle: (wire: Wire) => Effect.Effect<number>
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
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()

      const authenticate = Effect.fnUntraced(function* (raw: string) {
        const found = yield* control.key(digestHex(raw)).pipe(
          Effect.tapError(({ cause }) => Effect.logWarning("a key cannot be looked up", { cause })),
          Effect.mapError(() => controlStateUnavailable)
        )
        const code = Option.match(found, {
          onNone: () => "invalid_virtual_key" as const,
          onSome: (record) => unusable(record, now())
        })
        if (Option.isNone(found) || code !== undefined) {
          const refused = code ?? "invalid_virtual_key"
          return yield* new GatewayError({ code: refused, message: Authentication.refusals[refused] })
        }
        return found.value
      })

      const serve = Effect.fnUntraced(function* (request: Request.Request, target: Target.Target) {
        const presented = yield* Effect.fromResult(Authentication.presented(request.wire.headers, request.family))
        if (presented._tag === "GatewayKey") {
          const key = yield* phase("gateway.auth.verify", authenticate(presented.raw))
          return yield* governed.run(request, target, key)
        }
        if (target.config.mode !== "direct_upstream_passthrough") return yield* Authentication.malformed
        return yield* DelegatedRequest.run(
          request,
          target,
          destinations.delegated(Redacted.make(presented.raw)),
          now
        ).pipe(Effect.provideService(Upstream, upstream))
      })

      /** A refusal that leaves no record: nobody is known to have asked. */
      const refuse = (request: Request.Request, error: GatewayError): Telemetry.Ended => {
        Request.refuse(request, error, [], now())
        return { status: error.status, error, streamed: false, aborted: false, bill: Billing.nothing }
      }

      const handle = (wire: Wire): Effect.Effect<number> =>
        Effect.suspend(() => {
          telemetry.begin()
          const request = Request.make(wire, now(), settings.workerToken)
          const found = Target.find(wire.method, wire.target, control.snapshot())
          const target = Result.isSuccess(found) ? found.success : undefined
          return Effect.flatMap(Effect.fromResult(found), (to) => serve(request, to)).pipe(
            Effect.catchTag("GatewayError", (error) => Effect.sync(() => refuse(request, error))),
            Effect.catchDefect((defect) =>
              Effect.as(
                Effect.logError("a request failed in the gateway", { request_id: request.requestId, defect }),
                refuse(request, internalError)
              )
            ),
            Effect.tap(() =>
              Effect.annotateCurrentSpan({
                "gateway.request_id": request.requestId,
                "gateway.route": target?.route ?? "unrouted",
                "gateway.provider": target?.provider ?? "none"
              })
            ),
            Effect.tap((ended) =>
              ended.status >= 500
                ? Effect.logWarning("request failed", line(request, target, ended))
                : Effect.logDebug("request", line(request, target, ended))
            ),
            Effect.onExit((exit) =>
              Effect.sync(() =>
                telemetry.end(target, Exit.isSuccess(exit) ? exit.value : left, now() - request.startedAt)
              )
            ),
            Effect.map(({ status }) => status)
          )
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
