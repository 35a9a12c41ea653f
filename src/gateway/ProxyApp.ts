import { Cause, Clock, Context, Effect, Exit, Layer, LogLevel, Option, Redacted, References, Result } from "effect"
import * as Headers from "../http/Headers.ts"
import { overdue, refusalOf } from "../policy/KeyState.ts"
import * as Routing from "../policy/Routing.ts"
import { compatConfig, type PolicyRoute } from "../policy/routes/CanonicalRoute.ts"
import * as Exposure from "../policy/routes/Exposure.ts"
import * as UpstreamPaths from "../policy/routes/UpstreamPaths.ts"
import { GatewaySettings } from "../process/Settings.ts"
import * as Seldom from "../services/Seldom.ts"
import * as Share from "../services/Share.ts"
import { Upstream } from "../services/Upstream.ts"
import { mistyped } from "../state/Secret.ts"
import * as Authentication from "./auth/Authentication.ts"
import * as FrontDoor from "./auth/FrontDoor.ts"
import { Identities } from "./auth/Identities.ts"
import type { Identity } from "./auth/Identity.ts"
import { KeyDigests } from "./auth/KeyDigests.ts"
import * as DelegatedRequest from "./DelegatedRequest.ts"
import { Destinations } from "./forward/Destination.ts"
import * as RequestEnd from "./forward/RequestEnd.ts"
import { controlStateUnavailable, GatewayError, internalError } from "./GatewayError.ts"
import { GovernedRequests } from "./GovernedRequests.ts"
import * as Request from "./request/Request.ts"
import { RunningRequests } from "./request/RunningRequests.ts"
import type { Wire } from "./request/Wire.ts"
import { ControlState } from "./snapshot/ControlState.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import * as AccessLog from "./telemetry/AccessLog.ts"
import type { Ended } from "./telemetry/Ended.ts"
import * as Telemetry from "./telemetry/Telemetry.ts"
import * as Tracing from "./telemetry/Tracing.ts"
import * as Billing from "./usage/Billing.ts"
import * as WildcardRequest from "./WildcardRequest.ts"

/** The proxy listener's program: one request, from its headers to the end of its answer. */
export class ProxyApp extends Context.Service<
  ProxyApp,
  {
    /** Answers on the wire, and tells `done` once how it ended. */
    readonly handleUnsafe: (wire: Wire, done: (ended: Ended) => void) => RequestEnd.HungUp
  }
>()("svc/gateway/ProxyApp") {
  static readonly layer = Layer.effect(
    ProxyApp,
    Effect.gen(function* () {
      const control = yield* ControlState
      const destinations = yield* Destinations
      const governed = yield* GovernedRequests
      const identities = yield* Identities
      const settings = yield* GatewaySettings
      const paths: Routing.Paths = {
        support: UpstreamPaths.supportWith(settings.upstreamUiPaths),
        compat: settings.directCompatPaths,
        compatConfig: compatConfig(settings.directCompatLimits, settings.directCompatOwnership)
      }
      const upstream = yield* Upstream
      const wildcard = yield* WildcardRequest.make
      const telemetry = yield* Telemetry.make
      const digests = new KeyDigests()
      const running = new RunningRequests()
      const traced = yield* Tracing.make
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const seldom = yield* Seldom.make
      const level = yield* References.MinimumLogLevel
      /** Where no line is written for each request, none is made. */
      const written = Option.filter(yield* AccessLog.AccessLog, () => LogLevel.isLessThanOrEqualTo(level, "Info"))
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()

      /** Waits for what is not in memory, unless the client hangs up first; then it is over, and nothing follows. */
      const awaited = <A, E>(
        asked: Effect.Effect<A, E>,
        ended: () => void,
        outcome: RequestEnd.RequestEnd,
        then: (exit: Exit.Exit<A, E>) => RequestEnd.HungUp
      ): RequestEnd.HungUp => {
        let gone = false
        let hungUp: RequestEnd.HungUp = () => {
          gone = true
          outcome.ended(RequestEnd.left)
        }
        fork(asked).addObserver((exit) => {
          ended()
          if (gone) return
          hungUp = ignored
          try {
            hungUp = then(exit)
          } catch (defect) {
            outcome.failed(defect)
          }
        })
        return () => hungUp()
      }

      /** The key that was presented, at once if it is in memory. */
      const authenticate = (
        raw: string,
        request: Request.Request,
        route: PolicyRoute,
        span: Tracing.Span,
        outcome: RequestEnd.RequestEnd,
        then: (key: KeyRecord) => RequestEnd.HungUp
      ): RequestEnd.HungUp => {
        const digest = digests.of(request.wire.connection, raw)
        const admitted = (key: KeyRecord): RequestEnd.HungUp => {
          outcome.known(key)
          const reason = refusalOf(key, now())
          if (reason === undefined) return then(key)
          outcome.refused(new GatewayError(reason))
          return ignored
        }
        const lookUp = (asked: ReturnType<typeof control.key>, found: typeof admitted): RequestEnd.HungUp =>
          awaited(asked, span.phase("gateway.auth.verify"), outcome, (exit) => {
            if (Exit.isFailure(exit)) {
              const cause = Cause.squash(exit.cause)
              fork(
                seldom("a key cannot be looked up", (leftOut) =>
                  Effect.logWarning("a key cannot be looked up", { cause, ...leftOut })
                )
              )
              outcome.refused(controlStateUnavailable)
            } else if (Option.isNone(exit.value)) outcome.refused(Authentication.unknownKey)
            else return found(exit.value.value)
            return ignored
          })
        const usable =
          (then: typeof admitted) =>
          (key: KeyRecord): RequestEnd.HungUp => {
            const days = overdue(key, control.policyOf(key, route, []).policy, now())
            if (days === undefined || refusalOf(key, now()) !== undefined) return admitted(key)
            return lookUp(control.retired(digest, key, days, request.requestId), then)
          }
        // a record that came in between, for whatever reason, has its turn as well
        const first = usable(usable(admitted))
        const known = control.knownKey(digest)
        if (known !== undefined) return first(known)
        if (!mistyped(raw)) return lookUp(control.key(digest, Share.callerAt(request.wire.address)), first)
        outcome.refused(Authentication.unknownKey)
        return ignored
      }

      /** Who sends the request, at once unless it is a token that is new here. */
      const identify = (
        { wire }: Request.Request,
        frontDoor: FrontDoor.FrontDoor,
        span: Tracing.Span,
        outcome: RequestEnd.RequestEnd,
        then: (identity: Identity) => RequestEnd.HungUp
      ): RequestEnd.HungUp => {
        const proven = (result: Result.Result<Identity, GatewayError>): RequestEnd.HungUp => {
          if (Result.isSuccess(result)) return then(result.success)
          outcome.refused(result.failure)
          return ignored
        }
        const known = identities.known(wire.headers, frontDoor, now())
        if (known !== undefined) return proven(known)
        const verified = Effect.result(identities.verify(wire.headers, frontDoor))
        return awaited(verified, span.phase("gateway.auth.identity"), outcome, (exit) => {
          if (Exit.isSuccess(exit)) return proven(exit.value)
          outcome.failed(Cause.squash(exit.cause))
          return ignored
        })
      }

      /** `identity`: who a provider or a trusted gateway says the caller is, beside its key. */
      const passThrough = (
        request: Request.Request,
        target: Routing.Wildcard,
        key: KeyRecord,
        identity: Option.Option<Identity>,
        span: Tracing.Span,
        outcome: RequestEnd.RequestEnd
      ): RequestEnd.HungUp => {
        const caller = Option.isSome(identity) ? "identified" : "key"
        if (Exposure.decide(target.access, caller) === "forward") {
          return wildcard.keyed(request, target, key, span, outcome)
        }
        outcome.refused(identityRequired)
        return ignored
      }

      const serve = (
        request: Request.Request,
        target: Routing.Target | Routing.Wildcard,
        frontDoor: FrontDoor.FrontDoor,
        span: Tracing.Span,
        outcome: RequestEnd.RequestEnd
      ): RequestEnd.HungUp => {
        if (target.routeId === "wildcard" && Exposure.decide(target.access, "nobody") === "forward") {
          return wildcard.open(request, target, span, outcome)
        }
        const { family, wire } = request
        const direct = target.routeId !== "wildcard" && target.config.mode === "direct_upstream_passthrough"
        const admitted = (raw: string, identity: Option.Option<Identity>) =>
          authenticate(raw, request, target.route, span, outcome, (key) => {
            if (target.routeId === "wildcard") return passThrough(request, target, key, identity, span, outcome)
            if (target.closed === undefined) {
              const subject = Option.getOrUndefined(identity)?.subject
              return governed.run(request, target, { key, subject }, span, outcome)
            }
            outcome.refused(new GatewayError(target.closed))
            return ignored
          })
        if (
          FrontDoor.asksForIdentity(frontDoor) &&
          !(direct && !Authentication.bringsOurs(wire.headers, family, frontDoor))
        ) {
          return identify(request, frontDoor, span, outcome, (identity) => {
            const key = Authentication.keyBesideIdentity(wire.headers, frontDoor)
            if (Result.isSuccess(key)) return admitted(key.success, Option.some(identity))
            outcome.refused(key.failure)
            return ignored
          })
        }
        const presented = Authentication.presented(wire.headers, family)
        if (Result.isFailure(presented)) {
          outcome.refused(presented.failure)
          return ignored
        }
        const { _tag, raw } = presented.success
        if (_tag === "GatewayKey") return admitted(raw, Option.none())
        if (!direct) {
          outcome.refused(Authentication.malformed)
          return ignored
        }
        const destination = destinations.delegated(target, family, Redacted.make(raw))
        if (Result.isSuccess(destination)) {
          return DelegatedRequest.run(upstream, request, target, destination.success, now, span, outcome)
        }
        outcome.refused(destination.failure)
        return ignored
      }

      /** Requests that fail alike share a line, so that an outage does not write one for each of them. */
      const complaint = (request: Request.Request, target: Routing.Routed | undefined, ended: Ended, cut: boolean) => {
        const message = cut ? "an answer was cut" : "request failed"
        return seldom(`${message} ${ended.error?.code ?? ended.status}`, (leftOut) =>
          Effect.logWarning(message, { ...line(request, target, ended), ...leftOut })
        )
      }

      /** A refusal that leaves no record: nobody is known to have asked. */
      const refuse = (request: Request.Request, error: GatewayError): Ended => {
        RequestEnd.refuse(request, error, [], now())
        return { status: error.status, error, streamed: false, aborted: false, bill: Billing.nothing }
      }

      const handleUnsafe: ProxyApp["Service"]["handleUnsafe"] = (wire, done) => {
        telemetry.begin()
        const snapshot = control.snapshot()
        const { frontDoor } = snapshot
        const request = Request.make(wire, now(), settings.workerToken, frontDoor.keyHeader)
        const found = Routing.find(wire.method, wire.target, snapshot, paths)
        const target = Result.getOrUndefined(found)
        const span = traced(request, target)
        let over = false
        let streamEnded: (() => void) | undefined
        let runsFor: string | undefined
        let key: KeyRecord | undefined
        const ended = (ended: Ended) => {
          // what fails behind the end changes nothing of it
          if (over) return
          over = true
          try {
            streamEnded?.()
            if (runsFor !== undefined) running.end(runsFor)
            const endedAt = now()
            telemetry.end(target, ended, endedAt - request.startedAt, key)
            span.end(ended, key)
            if (Option.isSome(written)) {
              const { traceId } = span
              written.value(endedAt, AccessLog.members({ request, target, key, ended, endedAt, traceId }))
            }
            const cut = ended.aborted && ended.error !== undefined
            if (ended.status >= 500 || cut) fork(complaint(request, target, ended, cut))
          } finally {
            done(ended)
          }
        }
        const outcome: RequestEnd.RequestEnd = {
          ended,
          known: (found) => {
            key = found
          },
          runs: (keyId) => {
            runsFor = keyId
            return running.begin(keyId)
          },
          streams: () => {
            streamEnded ??= telemetry.stream()
          },
          refused: (error) => ended(refuse(request, error)),
          failed: (defect) => {
            fork(Effect.logError("a request failed in the gateway", { request_id: request.requestId, defect }))
            if (!over) ended(refuse(request, internalError))
          }
        }
        try {
          if (Result.isSuccess(found)) return serve(request, found.success, frontDoor, span, outcome)
          outcome.refused(new GatewayError(found.failure))
        } catch (defect) {
          outcome.failed(defect)
        }
        return ignored
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

const ignored: RequestEnd.HungUp = () => {}

/** What a log line says of a request: nothing that the client wrote but its id. */
const line = (request: Request.Request, target: Routing.Routed | undefined, { error, status }: Ended) => ({
  request_id: request.requestId,
  route: target?.route ?? "unrouted",
  provider: target?.provider ?? "none",
  status,
  ...(request.traceparent === undefined ? {} : { trace_id: Headers.traceId(request.traceparent) }),
  ...(error === undefined ? {} : { code: error.code })
})
