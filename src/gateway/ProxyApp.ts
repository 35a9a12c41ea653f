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
import type { KeyRecord } from "./KeyRecord.ts"
import type { PolicyRoute } from "./model/CanonicalRoute.ts"
import { overdue, unusable } from "./model/KeyState.ts"
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
    /** Answers on the wire, and tells `done` once how it ended. */
    readonly handle: (wire: Wire, done: (ended: Telemetry.Ended) => void) => Request.HungUp
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
      const traced = yield* Tracing.make
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      /** A line per request is for debugging: where it is not written, it is not made. */
      const verbose = LogLevel.isLessThanOrEqualTo(yield* References.MinimumLogLevel, "Debug")
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()

      /** The key that was presented, at once if it is in memory. */
      const authenticate = (
        raw: string,
        request: Request.Request,
        route: PolicyRoute,
        span: Tracing.Span,
        outcome: Request.Outcome,
        then: (key: KeyRecord) => Request.HungUp
      ): Request.HungUp => {
        const digest = digestHex(raw)
        const admitted = (key: KeyRecord): Request.HungUp => {
          const code = unusable(key, now())
          if (code === undefined) return then(key)
          outcome.refused(Authentication.refusal(code))
          return ignored
        }
        const lookUp = (key: ReturnType<typeof control.key>, found: typeof admitted): Request.HungUp => {
          let gone = false
          let hungUp: Request.HungUp = () => {
            gone = true
            outcome.ended(Request.left)
          }
          const verified = span.phase("gateway.auth.verify")
          fork(key).addObserver((exit) => {
            verified()
            if (gone) return
            hungUp = ignored
            try {
              if (Exit.isFailure(exit)) {
                fork(Effect.logWarning("a key cannot be looked up", { cause: Cause.squash(exit.cause) }))
                outcome.refused(controlStateUnavailable)
              } else if (Option.isNone(exit.value)) outcome.refused(Authentication.refusal("invalid_virtual_key"))
              else hungUp = found(exit.value.value)
            } catch (defect) {
              outcome.failed(defect)
            }
          })
          return () => hungUp()
        }
        const usable = (key: KeyRecord): Request.HungUp => {
          const days = overdue(key, control.policyOf(key, route, []).policy, now())
          if (days === undefined || unusable(key, now()) !== undefined) return admitted(key)
          return lookUp(control.retired(digest, key, days, request.requestId), admitted)
        }
        const known = control.knownKey(digest)
        return known === undefined ? lookUp(control.key(digest), usable) : usable(known)
      }

      const serve = (
        request: Request.Request,
        target: Target.Target,
        span: Tracing.Span,
        outcome: Request.Outcome
      ): Request.HungUp => {
        const presented = Authentication.presented(request.wire.headers, request.family)
        if (Result.isFailure(presented)) {
          outcome.refused(presented.failure)
          return ignored
        }
        const { _tag, raw } = presented.success
        if (_tag === "GatewayKey") {
          return authenticate(raw, request, target.route, span, outcome, (key) =>
            governed.run(request, target, key, span, outcome)
          )
        }
        if (target.config.mode !== "direct_upstream_passthrough") {
          outcome.refused(Authentication.malformed)
          return ignored
        }
        return DelegatedRequest.run(upstream, request, target, destinations.delegated(Redacted.make(raw)), now, outcome)
      }

      /** A refusal that leaves no record: nobody is known to have asked. */
      const refuse = (request: Request.Request, error: GatewayError): Telemetry.Ended => {
        Request.refuse(request, error, [], now())
        return { status: error.status, error, streamed: false, aborted: false, bill: Billing.nothing }
      }

      const handle: ProxyApp["Service"]["handle"] = (wire, done) => {
        telemetry.begin()
        const request = Request.make(wire, now(), settings.workerToken)
        const found = Target.find(wire.method, wire.target, control.snapshot())
        const target = Result.getOrUndefined(found)
        const span = traced(request, target)
        let over = false
        const ended = (ended: Telemetry.Ended) => {
          // what fails behind the end changes nothing of it
          if (over) return
          over = true
          try {
            telemetry.end(target, ended, now() - request.startedAt)
            span.end(ended.status)
            if (ended.status >= 500) fork(Effect.logWarning("request failed", line(request, target, ended)))
            else if (verbose) fork(Effect.logDebug("request", line(request, target, ended)))
          } finally {
            done(ended)
          }
        }
        const outcome: Request.Outcome = {
          ended,
          refused: (error) => ended(refuse(request, error)),
          failed: (defect) => {
            fork(Effect.logError("a request failed in the gateway", { request_id: request.requestId, defect }))
            if (!over) ended(refuse(request, internalError))
          }
        }
        try {
          if (Result.isSuccess(found)) return serve(request, found.success, span, outcome)
          outcome.refused(found.failure)
        } catch (defect) {
          outcome.failed(defect)
        }
        return ignored
      }

      return ProxyApp.of({ handle })
    })
  )
}

const internalError = new GatewayError({
  code: "internal_error",
  message: "The gateway failed. The request id tells an operator where to look."
})

const ignored: Request.HungUp = () => {}

/** What a log line says of a request: nothing that the client wrote but its id. */
const line = (request: Request.Request, target: Target.Target | undefined, { error, status }: Telemetry.Ended) => ({
  request_id: request.requestId,
  route: target?.route ?? "unrouted",
  provider: target?.provider ?? "none",
  "http.response.status_code": status,
  ...(request.traceparent === undefined ? {} : { trace_id: Headers.traceId(request.traceparent) }),
  ...(error === undefined ? {} : { code: error.code })
})
