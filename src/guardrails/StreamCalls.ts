import { Effect, Exit, type Fiber, Result } from "effect"
import type { Guardrails } from "./Guardrails.ts"
import type { RequestContext } from "./HttpGuardrail.ts"
import type { Reply, StreamCall } from "./StreamJudge.ts"

interface StreamCallOptions {
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  readonly requestId: string
  readonly context: RequestContext
  /** Receives what the stream throws when a call returns. Otherwise the request would wait forever. */
  readonly onDefect: (defect: unknown) => void
}

/** Returns the function by which the HTTP guardrails of one stream are called. */
export const make =
  (guardrails: Guardrails["Service"], { context, fork, onDefect, requestId }: StreamCallOptions): StreamCall =>
  (step, text, done) => {
    const fiber = fork(guardrails.judgeStream(step, { requestId, context, text }))
    let isCancelled = false
    fiber.addObserver((exit) => {
      if (isCancelled) return
      if (Exit.isFailure(exit))
        fork(Effect.logError("a guardrail failed because of a gateway defect; its failure policy applies", exit.cause))
      try {
        done(Exit.isSuccess(exit) ? exit.value : unavailable)
      } catch (defect) {
        onDefect(defect)
      }
    })
    return () => {
      isCancelled = true
      fiber.interruptUnsafe()
    }
  }

const unavailable: Reply = Result.fail({ code: "guardrail_unavailable" })
