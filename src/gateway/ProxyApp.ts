import { Clock, Context, Effect, Layer, LogLevel, Option, References } from "effect"
import { LiveFeed } from "../live/LiveFeed.ts"
import { GatewaySettings } from "../process/GatewaySettings.ts"
import * as LogThrottle from "../services/LogThrottle.ts"
import { Upstream } from "../services/Upstream.ts"
import { IdentityVerifier } from "./auth/IdentityVerifier.ts"
import { Destinations } from "./forward/Destination.ts"
import type * as RequestLifecycle from "./forward/RequestLifecycle.ts"
import { GovernedRequests } from "./GovernedRequests.ts"
import { RequestAuthentication } from "./RequestAuthentication.ts"
import { RequestHandler } from "./RequestHandler.ts"
import type { Wire } from "./request/Wire.ts"
import { ControlState } from "./snapshot/ControlState.ts"
import * as AccessLog from "./telemetry/AccessLog.ts"
import * as RequestMetrics from "./telemetry/RequestMetrics.ts"
import type { RequestOutcome } from "./telemetry/RequestOutcome.ts"
import * as Tracing from "./telemetry/Tracing.ts"
import * as WildcardRequest from "./WildcardRequest.ts"

export class ProxyApp extends Context.Service<
  ProxyApp,
  {
    /** Handles one request and calls `done` exactly once. Returns the function to call when the client disconnects. */
    readonly handleUnsafe: (wire: Wire, done: (outcome: RequestOutcome) => void) => RequestLifecycle.OnDisconnect
  }
>()("svc/gateway/ProxyApp") {
  static readonly layer = Layer.effect(
    ProxyApp,
    Effect.gen(function* () {
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()
      const control = yield* ControlState
      const identityVerifier = yield* IdentityVerifier
      const logThrottle = yield* LogThrottle.make
      const logLevel = yield* References.MinimumLogLevel
      const writeLine = yield* AccessLog.AccessLog
      const handler = new RequestHandler({
        control,
        destinations: yield* Destinations,
        governedRequests: yield* GovernedRequests,
        wildcardRequests: yield* WildcardRequest.make,
        authentication: new RequestAuthentication({ control, fork, identityVerifier, logThrottle, now }),
        upstream: yield* Upstream,
        settings: yield* GatewaySettings,
        requestMetrics: yield* RequestMetrics.make,
        live: (yield* LiveFeed).requests,
        startSpan: yield* Tracing.make,
        accessLog: Option.filter(writeLine, () => LogLevel.isLessThanOrEqualTo(logLevel, "Info")),
        log: fork,
        logThrottle,
        now
      })
      return ProxyApp.of({ handleUnsafe: (wire, done) => handler.handle(wire, done) })
    })
  )
}
