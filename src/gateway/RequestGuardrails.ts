import { Clock, Context, Effect, Layer, Result } from "effect"
import { Guardrails } from "../guardrails/Guardrails.ts"
import * as Selection from "../guardrails/Selection.ts"
import type { GuardrailPolicy } from "../policy/GuardrailPolicy.ts"
import { type GuardedRequest, GuardrailRunner, type RunnerServices } from "./GuardrailRunner.ts"
import { ControlState } from "./snapshot/ControlState.ts"

/** Selects the guardrails of each request. */
export class RequestGuardrails extends Context.Service<
  RequestGuardrails,
  {
    /** Returns `undefined` when `policy` selects no guardrail. */
    readonly runnerFor: (
      guarded: GuardedRequest,
      policy: GuardrailPolicy
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
        runnerFor: (guarded, policy) => {
          const { facts, target } = guarded
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
          return Result.succeed(new GuardrailRunner(services, selection, guarded))
        }
      })
    })
  )
}

const noRunner: Result.Result<GuardrailRunner | undefined, Selection.SelectionRefusal> = Result.succeed(undefined)
