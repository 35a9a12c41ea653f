import { Clock, Context, Effect, Layer } from "effect"
import type * as Routing from "../policy/Routing.ts"
import * as LogThrottle from "../services/LogThrottle.ts"
import { Upstream } from "../services/Upstream.ts"
import { Destinations } from "./forward/Destination.ts"
import { ObjectOwners } from "./forward/ObjectOwners.ts"
import type * as RequestLifecycle from "./forward/RequestLifecycle.ts"
import { queueFull } from "./GatewayError.ts"
import { GovernedRequest, type Sender, type SharedServices } from "./GovernedRequest.ts"
import * as Meters from "./limits/Meters.ts"
import { UsageLimits } from "./limits/UsageLimits.ts"
import { RequestGuardrails } from "./RequestGuardrails.ts"
import { BodyAdmission } from "./request/BodyAdmission.ts"
import type * as Request from "./request/Request.ts"
import { ControlState } from "./snapshot/ControlState.ts"
import type * as Tracing from "./telemetry/Tracing.ts"
import * as UnpricedModels from "./usage/UnpricedModels.ts"
import { UsageLog } from "./usage/UsageLog.ts"

export class GovernedRequests extends Context.Service<
  GovernedRequests,
  {
    /**
     * Starts the request and returns the disconnect handler. Every request is recorded except when the usage queue is
     * full.
     */
    readonly run: (
      request: Request.Request,
      target: Routing.Target,
      sender: Sender,
      span: Tracing.Span,
      lifecycle: RequestLifecycle.RequestLifecycle
    ) => RequestLifecycle.OnDisconnect
  }
>()("svc/gateway/GovernedRequests") {
  static readonly layer = Layer.effect(
    GovernedRequests,
    Effect.gen(function* () {
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const clock = yield* Clock.Clock
      const usageLog = yield* UsageLog
      const shared: SharedServices = {
        control: yield* ControlState,
        limits: yield* UsageLimits,
        usageLog,
        admission: yield* BodyAdmission,
        destinations: yield* Destinations,
        guardrails: yield* RequestGuardrails,
        owners: yield* ObjectOwners,
        upstream: yield* Upstream,
        metersFor: Meters.memoizedMeters(),
        now: () => clock.currentTimeMillisUnsafe(),
        schedule: (ms, run) => {
          const timer = fork(Effect.delay(Effect.sync(run), ms))
          return () => timer.interruptUnsafe()
        },
        reportUnpriced: UnpricedModels.make(fork),
        log: fork,
        logThrottle: yield* LogThrottle.make
      }
      return GovernedRequests.of({
        run: (request, target, sender, span, lifecycle) => {
          if (usageLog.hasRoom()) return new GovernedRequest(shared, request, target, sender, span, lifecycle).run()
          // A record of this refusal would need room in the same full queue.
          lifecycle.refuse(queueFull)
          return () => {}
        }
      })
    })
  )
}
