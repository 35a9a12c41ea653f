import { Effect, Option, Redacted, Result } from "effect"
import * as Headers from "../http/Headers.ts"
import type { LiveTopic } from "../live/LiveFeed.ts"
import * as Routing from "../policy/Routing.ts"
import { compatConfig } from "../policy/routes/CanonicalRoute.ts"
import * as Exposure from "../policy/routes/Exposure.ts"
import * as UpstreamPaths from "../policy/routes/UpstreamPaths.ts"
import type { GatewaySettings } from "../process/GatewaySettings.ts"
import type { LogThrottle } from "../services/LogThrottle.ts"
import type { Upstream } from "../services/Upstream.ts"
import * as Authentication from "./auth/Authentication.ts"
import * as CallerAuth from "./auth/CallerAuth.ts"
import type { Identity } from "./auth/Identity.ts"
import * as DelegatedRequest from "./DelegatedRequest.ts"
import type { Destinations } from "./forward/Destination.ts"
import * as RequestLifecycle from "./forward/RequestLifecycle.ts"
import { GatewayError, internalError } from "./GatewayError.ts"
import type { GovernedRequests } from "./GovernedRequests.ts"
import type { RequestAuthentication } from "./RequestAuthentication.ts"
import * as Request from "./request/Request.ts"
import { RunningRequests } from "./request/RunningRequests.ts"
import type { Wire } from "./request/Wire.ts"
import type { ControlState } from "./snapshot/ControlState.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import * as AccessLog from "./telemetry/AccessLog.ts"
import * as LiveRequests from "./telemetry/LiveRequests.ts"
import type { RequestMetrics } from "./telemetry/RequestMetrics.ts"
import type { RequestOutcome } from "./telemetry/RequestOutcome.ts"
import type * as Tracing from "./telemetry/Tracing.ts"
import * as Billing from "./usage/Billing.ts"
import type { WildcardRequests } from "./WildcardRequest.ts"

interface HandlerServices {
  readonly control: ControlState["Service"]
  readonly destinations: Destinations["Service"]
  readonly governedRequests: GovernedRequests["Service"]
  readonly wildcardRequests: WildcardRequests
  readonly authentication: RequestAuthentication
  readonly upstream: Upstream["Service"]
  readonly settings: GatewaySettings["Service"]
  readonly requestMetrics: RequestMetrics
  readonly live: LiveTopic
  readonly startSpan: Tracing.StartSpan
  readonly accessLog: Option.Option<AccessLog.WriteLine>
  readonly log: (message: Effect.Effect<void>) => void
  readonly logThrottle: LogThrottle
  readonly now: () => number
}

/** Handles proxy requests: finds the route, authenticates the client, runs the request and records its metrics. */
export class RequestHandler {
  readonly #services: HandlerServices
  readonly #paths: Routing.RoutingPaths
  readonly #runningRequests = new RunningRequests()

  constructor(services: HandlerServices) {
    const { settings } = services
    this.#services = services
    this.#paths = {
      support: UpstreamPaths.uiSupportWith(settings.upstreamUiPaths),
      compat: settings.directCompatPaths,
      compatConfig: compatConfig(settings.directCompatLimits, settings.directCompatOwnership)
    }
  }

  handle(wire: Wire, done: (outcome: RequestOutcome) => void): RequestLifecycle.OnDisconnect {
    const { accessLog, control, live, log, now, requestMetrics, settings, startSpan } = this.#services
    requestMetrics.begin()
    const snapshot = control.snapshot()
    const { callerAuth } = snapshot
    const request = Request.make(wire, now(), settings.workerToken, callerAuth.keyHeader)
    const found = Routing.find(wire.method, wire.target, snapshot, this.#paths)
    const target = Result.getOrUndefined(found)
    const span = startSpan(request, target)
    let isOver = false
    let endStream: (() => void) | undefined
    let runningKeyId: string | undefined
    let key: KeyRecord | undefined
    if (live.isFollowed) live.add("started", () => LiveRequests.describeStart(request, target, key))
    const end = (outcome: RequestOutcome) => {
      // A callback may still fail after the request has ended. Its outcome is ignored.
      if (isOver) return
      isOver = true
      try {
        endStream?.()
        if (runningKeyId !== undefined) this.#runningRequests.end(runningKeyId)
        const endedAt = now()
        requestMetrics.end(target, outcome, endedAt - request.startedAt, key)
        if (live.isFollowed)
          live.add(LiveRequests.kindOf(outcome), () => LiveRequests.describeEnd(request, target, key, outcome, endedAt))
        span.end(outcome, key)
        if (Option.isSome(accessLog)) {
          const { traceId } = span
          accessLog.value(endedAt, AccessLog.formatFields({ request, target, key, outcome, endedAt, traceId }))
        }
        const isCutOff = outcome.aborted && outcome.error !== undefined
        if (outcome.status >= 500 || isCutOff) log(this.#logFailure(request, target, outcome, isCutOff))
      } finally {
        done(outcome)
      }
    }
    const lifecycle: RequestLifecycle.RequestLifecycle = {
      end,
      keyFound: (found) => {
        key = found
      },
      startRunning: (keyId) => {
        runningKeyId = keyId
        return this.#runningRequests.begin(keyId)
      },
      startStreaming: () => {
        endStream ??= requestMetrics.beginStream()
      },
      refuse: (error) => end(this.#sendRefusal(request, error)),
      fail: (defect) => {
        log(Effect.logError("request failed because of a gateway defect", { request_id: request.requestId, defect }))
        if (!isOver) end(this.#sendRefusal(request, internalError))
      }
    }
    try {
      if (Result.isSuccess(found)) return this.#serve(request, found.success, callerAuth, span, lifecycle)
      lifecycle.refuse(new GatewayError(found.failure))
    } catch (defect) {
      lifecycle.fail(defect)
    }
    return noop
  }

  #serve(
    request: Request.Request,
    target: Routing.Target | Routing.WildcardTarget,
    callerAuth: CallerAuth.CallerAuth,
    span: Tracing.Span,
    lifecycle: RequestLifecycle.RequestLifecycle
  ): RequestLifecycle.OnDisconnect {
    const { authentication, destinations, governedRequests, now, upstream, wildcardRequests } = this.#services
    if (target.routeId === "wildcard" && Exposure.decide(target.access, "nobody") === "forward") {
      return wildcardRequests.runWithoutKey(request, target, span, lifecycle)
    }
    const { family, wire } = request
    const isDirect = target.routeId !== "wildcard" && target.config.mode === "direct_upstream_passthrough"
    const runWithSecret = (secret: string, identity: Option.Option<Identity>) =>
      authentication.authenticate(secret, request, target.route, span, lifecycle, (key) => {
        if (target.routeId === "wildcard") return this.#runWildcard(request, target, key, identity, span, lifecycle)
        if (target.closed === undefined) {
          const subject = Option.getOrUndefined(identity)?.subject
          return governedRequests.run(request, target, { key, subject }, span, lifecycle)
        }
        lifecycle.refuse(new GatewayError(target.closed))
        return noop
      })
    if (
      CallerAuth.requiresIdentity(callerAuth) &&
      !(isDirect && !Authentication.hasGatewayCredential(wire.headers, family, callerAuth))
    ) {
      return authentication.identify(request, callerAuth, span, lifecycle, (identity) => {
        const key = Authentication.readKeyHeader(wire.headers, callerAuth)
        if (Result.isSuccess(key)) return runWithSecret(key.success, Option.some(identity))
        lifecycle.refuse(key.failure)
        return noop
      })
    }
    const credential = Authentication.readCredential(wire.headers, family)
    if (Result.isFailure(credential)) {
      lifecycle.refuse(credential.failure)
      return noop
    }
    const { _tag, raw } = credential.success
    if (_tag === "GatewayKey") return runWithSecret(raw, Option.none())
    if (!isDirect) {
      lifecycle.refuse(Authentication.malformedAuthorization)
      return noop
    }
    const destination = destinations.findDelegated(target, family, Redacted.make(raw))
    if (Result.isSuccess(destination)) {
      return DelegatedRequest.run(upstream, request, target, destination.success, now, span, lifecycle)
    }
    lifecycle.refuse(destination.failure)
    return noop
  }

  #runWildcard(
    request: Request.Request,
    target: Routing.WildcardTarget,
    key: KeyRecord,
    identity: Option.Option<Identity>,
    span: Tracing.Span,
    lifecycle: RequestLifecycle.RequestLifecycle
  ): RequestLifecycle.OnDisconnect {
    const caller = Option.isSome(identity) ? "identified" : "key"
    if (Exposure.decide(target.access, caller) === "forward") {
      return this.#services.wildcardRequests.runWithKey(request, target, key, span, lifecycle)
    }
    lifecycle.refuse(identityRequired)
    return noop
  }

  /** Logs at most one line per second for each code and message, because an outage fails every request. */
  #logFailure(
    request: Request.Request,
    target: Routing.RoutedRequest | undefined,
    outcome: RequestOutcome,
    isCutOff: boolean
  ) {
    const message = isCutOff ? "response cut off by an error before its end" : "request failed"
    return this.#services.logThrottle(`${message} ${outcome.error?.code ?? outcome.status}`, (suppressed) =>
      Effect.logWarning(message, { ...logFields(request, target, outcome), ...suppressed })
    )
  }

  /** Sends an error response without a usage record, because a record needs a known key. */
  #sendRefusal(request: Request.Request, error: GatewayError): RequestOutcome {
    RequestLifecycle.sendRefusal(request, error, [], this.#services.now())
    return { status: error.status, error, streamed: false, aborted: false, bill: Billing.unbilled }
  }
}

const identityRequired = new GatewayError({
  code: "insufficient_identity_authorization",
  message:
    "This path requires an identity in addition to the gateway key. Send an identity token, or use the trusted gateway that signs identity headers."
})

const noop: RequestLifecycle.OnDisconnect = () => {}

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
