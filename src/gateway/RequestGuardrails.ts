import { Clock, Context, Effect, Layer, Result } from "effect"
import { Guardrails } from "../guardrails/Guardrails.ts"
import * as Selection from "../guardrails/Selection.ts"
import type * as Facts from "../policy/facts/Facts.ts"
import type { GuardrailPolicy } from "../policy/GuardrailPolicy.ts"
import type { Target } from "../policy/Routing.ts"
import { GuardrailRunner, type RunnerServices } from "./GuardrailRunner.ts"
import type { Request } from "./request/Request.ts"
import { ControlState } from "./snapshot/ControlState.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
export class RequestGuardrails extends Context.Service<
  RequestGuardrails,
  {
    /** Returns `undefined` when `policy` selects no guardrail. `subject` is the user of the verified identity. */
    readonly runnerFor: (
      request: Request,
      target: Target,
      key: KeyRecord,
      subject: string | undefined,
      policy: GuardrailPolicy,
      facts: Facts.Facts
    ) => Result.Result<GuardrailRunner | undefined, Selection.SelectionRefusal>
    /** The guardrails that apply when the request names none. */
    readonly defaultSelection: (policy: GuardrailPolicy) => Selection.SelectionResult
    readonly inspectsRequests: (policy: GuardrailPolicy) => boolean
  }
>()("svc/gateway/RequestGuardrails") {
  static readonly layer = Layer.effect(
    RequestGuardrails,
    Effect.gen(function* () {
      const control = yield* ControlState
      const clock = yield* Clock.Clock
      const context = yield* Effect.context<never>()
      const services: RunnerServices = {
        guardrails: yield* Guardrails,
        context,
        fork: Effect.runForkWith(context),
        now: () => clock.currentTimeMillisUnsafe()
      }
      const selectDefault = Selection.makeCachedSelect()
      return RequestGuardrails.of({
        defaultSelection: (policy) => selectDefault(control.snapshot().guardrails, policy),
        inspectsRequests: (policy) => {
          const selected = selectDefault(control.snapshot().guardrails, policy)
          return Result.isFailure(selected) || Selection.inMode(selected.success, "pre_call").length > 0
        },
        runnerFor: (request, target, key, subject, policy, facts) => {
          if (target.config.mode !== "managed_by_gateway") return noRunner
          const definitions = control.snapshot().guardrails
          const selected = Selection.forRequest(
            facts.guardrails.length === 0
              ? selectDefault(definitions, policy)
              : Selection.select(definitions, policy, facts.guardrails),
            facts
          )
          if (Result.isFailure(selected)) return Result.fail(selected.failure)
          const selection = selected.success
          if (selection.length === 0) return noRunner
          return Result.succeed(new GuardrailRunner(services, selection, request, target, key, subject, facts))
        }
      })
    })
  )
}

const noRunner: Result.Result<GuardrailRunner | undefined, Selection.SelectionRefusal> = Result.succeed(undefined)
