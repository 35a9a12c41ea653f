import { Clock, Context, Effect, Layer } from "effect"
import type * as Routing from "../policy/Routing.ts"
import * as Seldom from "../services/Seldom.ts"
import { Upstream } from "../services/Upstream.ts"
import { Destinations } from "./forward/Destination.ts"
import { ObjectOwners } from "./forward/ObjectOwners.ts"
import type * as RequestEnd from "./forward/RequestEnd.ts"
import { queueFull } from "./GatewayError.ts"
import { GovernedRequest, type Sender, type Shared } from "./GovernedRequest.ts"
import { Guarding } from "./Guarding.ts"
import { Limits } from "./limits/Limits.ts"
import * as Meters from "./limits/Meters.ts"
import { BodyAdmission } from "./request/BodyAdmission.ts"
import type * as Request from "./request/Request.ts"
import { ControlState } from "./snapshot/ControlState.ts"
import type * as Tracing from "./telemetry/Tracing.ts"
import * as UnpricedModels from "./usage/UnpricedModels.ts"
import { UsageLog } from "./usage/UsageLog.ts"

/** Requests that come with a gateway key. */
export class GovernedRequests extends Context.Service<
  GovernedRequests,
  {
    /** Refuses without a record only where none can be kept. Returns what to call when the client hangs up. */
    readonly run: (
      request: Request.Request,
      target: Routing.Target,
      sender: Sender,
      span: Tracing.Span,
      outcome: RequestEnd.RequestEnd
    ) => RequestEnd.HungUp
  }
>()("svc/gateway/GovernedRequests") {
  static readonly layer = Layer.effect(
    GovernedRequests,
    Effect.gen(function* () {
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const clock = yield* Clock.Clock
      const usageLog = yield* UsageLog
      const shared: Shared = {
        control: yield* ControlState,
        limits: yield* Limits,
        usageLog,
        admission: yield* BodyAdmission,
        destinations: yield* Destinations,
        guarding: yield* Guarding,
        owners: yield* ObjectOwners,
        upstream: yield* Upstream,
        metersOf: Meters.remembering(),
        now: () => clock.currentTimeMillisUnsafe(),
        later: (ms, run) => {
          const timer = fork(Effect.delay(Effect.sync(run), ms))
          return () => timer.interruptUnsafe()
        },
        unpriced: UnpricedModels.make(fork),
        log: fork,
        seldom: yield* Seldom.make
      }
      return GovernedRequests.of({
        run: (request, target, sender, span, outcome) => {
          if (usageLog.hasRoom()) return new GovernedRequest(shared, request, target, sender, span, outcome).run()
          // without a record: it would be one more in the queue that is full
          outcome.refused(queueFull)
          return () => {}
        }
      })
    })
  )
}
