import { Clock, Context, Effect, Exit, Layer, Metric, Option, Result } from "effect"
import { Guardrails, type RunReport, runOnNonJson } from "../guardrails/Guardrails.ts"
import type { RequestContext as GuardrailContext } from "../guardrails/HttpGuardrail.ts"
import * as Selection from "../guardrails/Selection.ts"
import * as Facts from "../policy/facts/Facts.ts"
import type { Execution, Mode } from "../policy/Guardrail.ts"
import type { GuardrailPolicy } from "../policy/GuardrailPolicy.ts"
import type { Target } from "../policy/Routing.ts"
import * as MetricLabel from "../policy/routes/MetricLabel.ts"
import { GatewayError } from "./GatewayError.ts"
import type { Request } from "./request/Request.ts"
import { ControlState } from "./snapshot/ControlState.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import { boundaries } from "./telemetry/RequestMetrics.ts"

/** The guardrails of one request and its response. */
export interface GuardrailRunner {
  readonly executions: ReadonlyArray<Execution>
  /** Response headers that name the applied guardrails. They are complete once `inspectRequest` has called `done`. */
  readonly responseHeaders: () => ReadonlyArray<readonly [string, string]>
  readonly inspectsResponse: boolean
  readonly inspectRequest: (body: Buffer, done: (guarded: Result.Result<Buffer, GatewayError>) => void) => void
  readonly refusalOfOpaqueBody: () => GatewayError | undefined
  readonly inspectResponse: (text: string, done: (guarded: Result.Result<string, GatewayError>) => void) => void
}

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
      const guardrails = yield* Guardrails
      const clock = yield* Clock.Clock
      const context = yield* Effect.context<never>()
      const fork = Effect.runForkWith(context)
      const selectDefault = Selection.makeCachedSelect()

      const recordMetrics = (
        { executions, failures }: RunReport,
        target: Target,
        streams: boolean,
        startedAt: number
      ) => {
        const labels = { route: MetricLabel.of(target.route), provider: target.provider, stream: String(streams) }
        const tookMs = clock.currentTimeMillisUnsafe() - startedAt
        Metric.withAttributes(duration, { ...labels, route: target.route }).updateUnsafe(tookMs / 1000, context)
        Metric.withAttributes(durationMs, labels).updateUnsafe(tookMs, context)
        for (const execution of executions) {
          const { action, failure_policy, guardrail_name: guardrail, latency_ms, mode } = execution
          const labels = { guardrail, mode, action, failure_policy }
          Metric.withAttributes(runs, labels).updateUnsafe(1, context)
          Metric.withAttributes(latency, labels).updateUnsafe(latency_ms, context)
          if (failures.includes(execution)) Metric.withAttributes(failed, labels).updateUnsafe(1, context)
        }
      }

      const makeRunner = (
        selection: Selection.Selection,
        request: Request,
        target: Target,
        key: KeyRecord,
        subject: string | undefined,
        facts: Facts.Facts
      ): GuardrailRunner => {
        const executions: Array<Execution> = []
        const placeholders = new Map<string, string>()
        const postCallSteps = Selection.inMode(selection, "post_call")
        const guardrailContext: GuardrailContext = {
          key_id: key.id,
          team_id: Option.getOrNull(key.teamId),
          user_id: subject ?? null,
          project_id: Option.getOrNull(key.projectId),
          model: facts.models[0] ?? null,
          route: target.route,
          provider: target.provider
        }

        const run = (
          mode: Mode,
          steps: Selection.Selection,
          text: string,
          done: (guarded: Result.Result<string, GatewayError>) => void
        ) => {
          if (steps.length === 0) return done(Result.succeed(text))
          const startedAt = clock.currentTimeMillisUnsafe()
          const subject = { requestId: request.requestId, mode, context: guardrailContext, text, placeholders }
          fork(guardrails.run(steps, subject)).addObserver((exit) => {
            if (Exit.isFailure(exit)) {
              fork(Effect.logError("guardrails failed because of a gateway defect", exit.cause))
              return done(Result.fail(guardrailsFailed))
            }
            executions.push(...exit.value.executions)
            recordMetrics(exit.value, target, facts.stream, startedAt)
            const { stopped } = exit.value
            done(stopped === undefined ? Result.succeed(exit.value.text) : Result.fail(new GatewayError(stopped)))
          })
        }

        return {
          executions,
          responseHeaders: () => {
            const executed = executions.map(({ guardrail_name }) => guardrail_name)
            const names = new Set([...executed, ...postCallSteps.map(({ definition }) => definition.name)])
            return names.size === 0 ? [] : [["x-svc-applied-guardrails", [...names].join(",")]]
          },
          inspectsResponse: postCallSteps.length > 0,
          inspectRequest: (body, done) => {
            const text = body.toString()
            run("pre_call", Selection.inMode(selection, "pre_call"), text, (guarded) =>
              done(
                Result.flatMap(guarded, (changed) =>
                  changed === text ? Result.succeed(body) : applyRewrite(target, facts, text, changed)
                )
              )
            )
          },
          refusalOfOpaqueBody: () => {
            const result = runOnNonJson(Selection.inMode(selection, "pre_call"), "pre_call")
            if (result.executions.length === 0) return undefined
            executions.push(...result.executions)
            recordMetrics(result, target, facts.stream, clock.currentTimeMillisUnsafe())
            return result.stopped && new GatewayError(result.stopped)
          },
          inspectResponse: (text, done) => run("post_call", postCallSteps, text, done)
        }
      }

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
          return Result.succeed(makeRunner(selection, request, target, key, subject, facts))
        }
      })
    })
  )
}

const noRunner: Result.Result<GuardrailRunner | undefined, Selection.SelectionRefusal> = Result.succeed(undefined)

/**
 * Policy and limits are checked before the guardrails run. A guardrail may therefore rewrite text, but nothing that
 * policy or limits depend on.
 */
const applyRewrite = (
  target: Target,
  before: Facts.Facts,
  text: string,
  changed: string
): Result.Result<Buffer, GatewayError> => {
  const body = Buffer.from(changed)
  // Policy reads only JSON objects, so a guardrail may freely rewrite other JSON for a registered service.
  if (target.routeId === "service" && !isObject(text) && !isObject(changed)) return Result.succeed(body)
  const parsed = Result.getOrUndefined(Facts.parse(target.routeId, body))
  // `before` includes the models named in the path, so add them to `after` too.
  const after = parsed && Facts.withTarget(parsed.facts, target)
  const same =
    after !== undefined &&
    after.stream === before.stream &&
    after.background === before.background &&
    after.requests === before.requests &&
    after.toolCount <= before.toolCount &&
    after.openChoices <= before.openChoices &&
    (before.openChoices > 0 || after.totalOutput <= before.totalOutput) &&
    after.service === before.service &&
    after.unjudgedMember === before.unjudgedMember &&
    sameStrings(after.models, before.models) &&
    sameStrings(after.alternativeModels, before.alternativeModels)
  return same ? Result.succeed(body) : Result.fail(rewroteTooMuch)
}

const sameStrings = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): boolean =>
  left.length === right.length && left.every((value, index) => value === right[index])

const isObject = (json: string): boolean => json.trimStart().startsWith("{")

const rewroteTooMuch = new GatewayError({
  code: "guardrail_unavailable",
  message:
    "A guardrail changed more of the request than its text (model, streaming, tools, output, service, or whether the body is a JSON object), so the gateway refused it. Ask the operator to check the guardrail."
})

const guardrailsFailed = new GatewayError({
  code: "guardrail_unavailable",
  message: "The guardrails of this key failed, so the gateway refused the request. Give the operator the request id."
})

const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })
const runs = counter("gateway_guardrail_executions_total", "Runs of guardrails")
const failed = counter("gateway_guardrail_failures_total", "Runs in which the guardrail failed to decide")
const latency = counter("gateway_guardrail_latency_ms_total", "Total time of guardrail runs, in milliseconds")
const duration = Metric.histogram("gateway_guardrail_duration_seconds", {
  description: "Time for all guardrails of a request, or of its response",
  boundaries: boundaries.map((ms) => ms / 1000),
  attributes: { unit: "s" }
})
const durationMs = Metric.histogram("gateway_guardrail_duration_ms", {
  description: "Time for all guardrails of a request, or of its response, in milliseconds",
  boundaries
})
