import { Context, Effect, Layer } from "effect"
import type * as Routing from "../policy/Routing.ts"
import type * as RequestLifecycle from "./forward/RequestLifecycle.ts"
import { queueFull } from "./GatewayError.ts"
import { GovernedRequest, type GovernedServices, type Sender } from "./GovernedRequest.ts"
import * as KeyedRequest from "./KeyedRequest.ts"
import type * as Request from "./request/Request.ts"
import type * as Tracing from "./telemetry/Tracing.ts"
import * as UnpricedModels from "./usage/UnpricedModels.ts"

export class GovernedRequests extends Context.Service<
  GovernedRequests,
  {
    /**
     * Starts a request and returns its disconnect handler. If the usage queue is full, refuses the request without a
     * record.
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
      const services = yield* KeyedRequest.makeServices
      const { fork, usageLog } = services
      const governedServices: GovernedServices = {
        ...services,
        schedule: (ms, run) => {
          const timer = fork(Effect.delay(Effect.sync(run), ms))
          return () => timer.interruptUnsafe()
        },
        reportUnpriced: UnpricedModels.make(fork)
      }
      return GovernedRequests.of({
        run: (request, target, sender, span, lifecycle) => {
          if (usageLog.hasRoom())
            return new GovernedRequest(governedServices, request, target, sender, span, lifecycle).run()
          // This refusal has no usage record, because the queue of usage records is full.
          lifecycle.refuse(queueFull)
          return () => {}
        }
      })
    })
  )
}
