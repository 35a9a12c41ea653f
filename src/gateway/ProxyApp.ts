import { Cause, Clock, Context, Effect, Exit, Layer, LogLevel, Option, Redacted, References, Result } from "effect"
import * as Headers from "../http/Headers.ts"
import { exceededUnusedDays, refusalOf } from "../policy/KeyState.ts"
import * as Routing from "../policy/Routing.ts"
import { compatConfig, type PolicyRoute } from "../policy/routes/CanonicalRoute.ts"
import * as Exposure from "../policy/routes/Exposure.ts"
import * as UpstreamPaths from "../policy/routes/UpstreamPaths.ts"
import { GatewaySettings } from "../process/GatewaySettings.ts"
import * as FairShare from "../services/FairShare.ts"
import * as LogThrottle from "../services/LogThrottle.ts"
import { Upstream } from "../services/Upstream.ts"
import { isMistyped } from "../state/Secret.ts"
import * as Authentication from "./auth/Authentication.ts"
import * as CallerAuth from "./auth/CallerAuth.ts"
import type { Identity } from "./auth/Identity.ts"
import { IdentityVerifier } from "./auth/IdentityVerifier.ts"
import { KeyDigests } from "./auth/KeyDigests.ts"
import * as DelegatedRequest from "./DelegatedRequest.ts"
import { Destinations } from "./forward/Destination.ts"
import * as RequestLifecycle from "./forward/RequestLifecycle.ts"
import { controlStateUnavailable, GatewayError, internalError } from "./GatewayError.ts"
import { GovernedRequests } from "./GovernedRequests.ts"
import * as Request from "./request/Request.ts"
import { RunningRequests } from "./request/RunningRequests.ts"
import type { Wire } from "./request/Wire.ts"
import { ControlState } from "./snapshot/ControlState.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import * as AccessLog from "./telemetry/AccessLog.ts"
import * as RequestMetrics from "./telemetry/RequestMetrics.ts"
import type { RequestOutcome } from "./telemetry/RequestOutcome.ts"
import * as Tracing from "./telemetry/Tracing.ts"
import * as Billing from "./usage/Billing.ts"
import * as WildcardRequest from "./WildcardRequest.ts"

/** The proxy listener's program: one request, from its headers to the end of its answer. */
export class ProxyApp extends Context.Service<
  ProxyApp,
  {
    /** Answers on the wire, and tells `done` once how it ended. */
    readonly handleUnsafe: (wire: Wire, done: (ended: RequestOutcome) => void) => RequestLifecycle.OnDisconnect
  }
>()("svc/gateway/ProxyApp") {
  static readonly layer = Layer.effect(
    ProxyApp,
    Effect.gen(function* () {
      const control = yield* ControlState
      const destinations = yield* Destinations
      const governedRequests = yield* GovernedRequests
      const identityVerifier = yield* IdentityVerifier
      const settings = yield* GatewaySettings
      const paths: Routing.RoutingPaths = {
        support: UpstreamPaths.uiSupportWith(settings.upstreamUiPaths),
        compat: settings.directCompatPaths,
        compatConfig: compatConfig(settings.directCompatLimits, settings.directCompatOwnership)
      }
      const upstream = yield* Upstream
      const wildcardRequests = yield* WildcardRequest.make
      const requestMetrics = yield* RequestMetrics.make
      const keyDigests = new KeyDigests()
      const runningRequests = new RunningRequests()
      const startSpan = yield* Tracing.make
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const seldom = yield* LogThrottle.make
      const level = yield* References.MinimumLogLevel
      /** Where no line is written for each request, none is made. */
      const accessLog = Option.filter(yield* AccessLog.AccessLog, () => LogLevel.isLessThanOrEqualTo(level, "Info"))
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()

      /** Waits for what is not in memory, unless the client hangs up first; then it is over, and nothing follows. */
      const awaitUnlessDisconnected = <A, E>(
        asked: Effect.Effect<A, E>,
        ended: () => void,
        outcome: RequestLifecycle.RequestLifecycle,
        then: (exit: Exit.Exit<A, E>) => RequestLifecycle.OnDisconnect
      ): RequestLifecycle.OnDisconnect => {
        let gone = false
        let onDisconnect: RequestLifecycle.OnDisconnect = () => {
          gone = true
          outcome.end(RequestLifecycle.clientClosedOutcome)
        }
        fork(asked).addObserver((exit) => {
          ended()
          if (gone) return
          onDisconnect = noop
          try {
            onDisconnect = then(exit)
          } catch (defect) {
            outcome.fail(defect)
          }
        })
        return () => onDisconnect()
      }

      /** The key that was presented, at once if it is in memory. */
      const authenticate = (
        raw: string,
        request: Request.Request,
        route: PolicyRoute,
        span: Tracing.Span,
        outcome: RequestLifecycle.RequestLifecycle,
        then: (key: KeyRecord) => RequestLifecycle.OnDisconnect
      ): RequestLifecycle.OnDisconnect => {
        const digest = keyDigests.of(request.wire.connection, raw)
        const admitted = (key: KeyRecord): RequestLifecycle.OnDisconnect => {
          outcome.keyFound(key)
          const reason = refusalOf(key, now())
          if (reason === undefined) return then(key)
          outcome.refuse(new GatewayError(reason))
          return noop
        }
        const lookUp = (
          asked: ReturnType<typeof control.findKey>,
          found: typeof admitted
        ): RequestLifecycle.OnDisconnect =>
          awaitUnlessDisconnected(asked, span.startPhase("gateway.auth.verify"), outcome, (exit) => {
            if (Exit.isFailure(exit)) {
              const cause = Cause.squash(exit.cause)
              fork(
                seldom("a key cannot be looked up", (leftOut) =>
                  Effect.logWarning("a key cannot be looked up", { cause, ...leftOut })
                )
              )
              outcome.refuse(controlStateUnavailable)
            } else if (Option.isNone(exit.value)) outcome.refuse(Authentication.unknownKey)
            else return found(exit.value.value)
            return noop
          })
        const usable =
          (then: typeof admitted) =>
          (key: KeyRecord): RequestLifecycle.OnDisconnect => {
            const days = exceededUnusedDays(key, control.policyOf(key, route, []).policy, now())
            if (days === undefined || refusalOf(key, now()) !== undefined) return admitted(key)
            return lookUp(control.retireUnusedKey(digest, key, days, request.requestId), then)
          }
        // a record that came in between, for whatever reason, has its turn as well
        const first = usable(usable(admitted))
        const known = control.cachedKey(digest)
        if (known !== undefined) return first(known)
        if (!isMistyped(raw))
          return lookUp(control.findKey(digest, FairShare.callerOfAddress(request.wire.address)), first)
        outcome.refuse(Authentication.unknownKey)
        return noop
      }

      /** Who sends the request, at once unless it is a token that is new here. */
      const identify = (
        { wire }: Request.Request,
        frontDoor: CallerAuth.CallerAuth,
        span: Tracing.Span,
        outcome: RequestLifecycle.RequestLifecycle,
        then: (identity: Identity) => RequestLifecycle.OnDisconnect
      ): RequestLifecycle.OnDisconnect => {
        const proven = (result: Result.Result<Identity, GatewayError>): RequestLifecycle.OnDisconnect => {
          if (Result.isSuccess(result)) return then(result.success)
          outcome.refuse(result.failure)
          return noop
        }
        const known = identityVerifier.verifySync(wire.headers, frontDoor, now())
        if (known !== undefined) return proven(known)
        const verified = Effect.result(identityVerifier.verify(wire.headers, frontDoor))
        return awaitUnlessDisconnected(verified, span.startPhase("gateway.auth.identity"), outcome, (exit) => {
          if (Exit.isSuccess(exit)) return proven(exit.value)
          outcome.fail(Cause.squash(exit.cause))
          return noop
        })
      }

      /** `identity`: who a provider or a trusted gateway says the caller is, beside its key. */
      const runWildcard = (
        request: Request.Request,
        target: Routing.WildcardTarget,
        key: KeyRecord,
        identity: Option.Option<Identity>,
        span: Tracing.Span,
        outcome: RequestLifecycle.RequestLifecycle
      ): RequestLifecycle.OnDisconnect => {
        const caller = Option.isSome(identity) ? "identified" : "key"
        if (Exposure.decide(target.access, caller) === "forward") {
          return wildcardRequests.runWithKey(request, target, key, span, outcome)
        }
        outcome.refuse(identityRequired)
        return noop
      }

      const serve = (
        request: Request.Request,
        target: Routing.Target | Routing.WildcardTarget,
        frontDoor: CallerAuth.CallerAuth,
        span: Tracing.Span,
        outcome: RequestLifecycle.RequestLifecycle
      ): RequestLifecycle.OnDisconnect => {
        if (target.routeId === "wildcard" && Exposure.decide(target.access, "nobody") === "forward") {
          return wildcardRequests.runWithoutKey(request, target, span, outcome)
        }
        const { family, wire } = request
        const direct = target.routeId !== "wildcard" && target.config.mode === "direct_upstream_passthrough"
        const admitted = (raw: string, identity: Option.Option<Identity>) =>
          authenticate(raw, request, target.route, span, outcome, (key) => {
            if (target.routeId === "wildcard") return runWildcard(request, target, key, identity, span, outcome)
            if (target.closed === undefined) {
              const subject = Option.getOrUndefined(identity)?.subject
              return governedRequests.run(request, target, { key, subject }, span, outcome)
            }
            outcome.refuse(new GatewayError(target.closed))
            return noop
          })
        if (
          CallerAuth.requiresIdentity(frontDoor) &&
          !(direct && !Authentication.hasGatewayCredential(wire.headers, family, frontDoor))
        ) {
          return identify(request, frontDoor, span, outcome, (identity) => {
            const key = Authentication.readKeyHeader(wire.headers, frontDoor)
            if (Result.isSuccess(key)) return admitted(key.success, Option.some(identity))
            outcome.refuse(key.failure)
            return noop
          })
        }
        const presented = Authentication.readCredential(wire.headers, family)
        if (Result.isFailure(presented)) {
          outcome.refuse(presented.failure)
          return noop
        }
        const { _tag, raw } = presented.success
        if (_tag === "GatewayKey") return admitted(raw, Option.none())
        if (!direct) {
          outcome.refuse(Authentication.malformedAuthorization)
          return noop
        }
        const destination = destinations.findDelegated(target, family, Redacted.make(raw))
        if (Result.isSuccess(destination)) {
          return DelegatedRequest.run(upstream, request, target, destination.success, now, span, outcome)
        }
        outcome.refuse(destination.failure)
        return noop
      }

      /** Requests that fail alike share a line, so that an outage does not write one for each of them. */
      const logFailure = (
        request: Request.Request,
        target: Routing.RoutedRequest | undefined,
        ended: RequestOutcome,
        cut: boolean
      ) => {
        const message = cut ? "an answer was cut" : "request failed"
        return seldom(`${message} ${ended.error?.code ?? ended.status}`, (leftOut) =>
          Effect.logWarning(message, { ...logFields(request, target, ended), ...leftOut })
        )
      }

      /** A refusal that leaves no record: nobody is known to have asked. */
      const refuse = (request: Request.Request, error: GatewayError): RequestOutcome => {
        RequestLifecycle.sendRefusal(request, error, [], now())
        return { status: error.status, error, streamed: false, aborted: false, bill: Billing.unbilled }
      }

      const handleUnsafe: ProxyApp["Service"]["handleUnsafe"] = (wire, done) => {
        requestMetrics.begin()
        const snapshot = control.snapshot()
        const { callerAuth } = snapshot
        const request = Request.make(wire, now(), settings.workerToken, callerAuth.keyHeader)
        const found = Routing.find(wire.method, wire.target, snapshot, paths)
        const target = Result.getOrUndefined(found)
        const span = startSpan(request, target)
        let over = false
        let streamEnded: (() => void) | undefined
        let runsFor: string | undefined
        let key: KeyRecord | undefined
        const ended = (ended: RequestOutcome) => {
          // what fails behind the end changes nothing of it
          if (over) return
          over = true
          try {
            streamEnded?.()
            if (runsFor !== undefined) runningRequests.end(runsFor)
            const endedAt = now()
            requestMetrics.end(target, ended, endedAt - request.startedAt, key)
            span.end(ended, key)
            if (Option.isSome(accessLog)) {
              const { traceId } = span
              accessLog.value(endedAt, AccessLog.formatFields({ request, target, key, ended, endedAt, traceId }))
            }
            const cut = ended.aborted && ended.error !== undefined
            if (ended.status >= 500 || cut) fork(logFailure(request, target, ended, cut))
          } finally {
            done(ended)
          }
        }
        const outcome: RequestLifecycle.RequestLifecycle = {
          end: ended,
          keyFound: (found) => {
            key = found
          },
          startRunning: (keyId) => {
            runsFor = keyId
            return runningRequests.begin(keyId)
          },
          startStreaming: () => {
            streamEnded ??= requestMetrics.beginStream()
          },
          refuse: (error) => ended(refuse(request, error)),
          fail: (defect) => {
            fork(Effect.logError("a request failed in the gateway", { request_id: request.requestId, defect }))
            if (!over) ended(refuse(request, internalError))
          }
        }
        try {
          if (Result.isSuccess(found)) return serve(request, found.success, callerAuth, span, outcome)
          outcome.refuse(new GatewayError(found.failure))
        } catch (defect) {
          outcome.fail(defect)
        }
        return noop
      }

      return ProxyApp.of({ handleUnsafe })
    })
  )
}

const identityRequired = new GatewayError({
  code: "insufficient_identity_authorization",
  message:
    "This path is exposed to operators only: beside the gateway key it needs an identity that this gateway can verify."
})

const noop: RequestLifecycle.OnDisconnect = () => {}

/** What a log line says of a request: nothing that the client wrote but its id. */
const logFields = (
  request: Request.Request,
  target: Routing.RoutedRequest | undefined,
  { error, status }: RequestOutcome
) => ({
  request_id: request.requestId,
  route: target?.route ?? "unrouted",
  provider: target?.provider ?? "none",
  status,
  ...(request.traceparent === undefined ? {} : { trace_id: Headers.traceId(request.traceparent) }),
  ...(error === undefined ? {} : { code: error.code })
})
