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

/** What guards one request and its answer, and what came of it so far. */
export interface GuardrailRunner {
  readonly executions: ReadonlyArray<Execution>
  /** Says on the answer which guardrails are applied; to be asked when the request is on its way. */
  readonly responseHeaders: () => ReadonlyArray<readonly [string, string]>
  readonly inspectsResponse: boolean
  /** The request's body as it may go on. */
  readonly inspectRequest: (body: Buffer, done: (guarded: Result.Result<Buffer, GatewayError>) => void) => void
  /** Why the request may not go on, when its body is no JSON: nobody can look into it. */
  readonly refusalOfOpaqueBody: () => GatewayError | undefined
  /** The answer's text as it may go out. */
  readonly inspectResponse: (text: string, done: (guarded: Result.Result<string, GatewayError>) => void) => void
}

/** Guardrails on the way of a request: managed traffic only. */
export class RequestGuardrails extends Context.Service<
  RequestGuardrails,
  {
    /**
     * `undefined` where `policy` selects nothing: then nothing more is done. What a policy selects is remembered for
     * that very object, as long as the catalogue stays. `subject`: who sends it, where an identity says so.
     */
    readonly runnerFor: (
      request: Request,
      target: Target,
      key: KeyRecord,
      subject: string | undefined,
      policy: GuardrailPolicy,
      facts: Facts.Facts
    ) => Result.Result<GuardrailRunner | undefined, Selection.SelectionRefusal>
    /** The guardrails that `policy` selects without the client's word, or why it cannot be followed. */
    readonly defaultSelection: (policy: GuardrailPolicy) => Selection.SelectionResult
    /** Whether `policy` has anybody look at requests, whatever they ask for themselves. */
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
              fork(Effect.logError("guardrails failed", exit.cause))
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
            const ran = executions.map(({ guardrail_name }) => guardrail_name)
            const names = new Set([...ran, ...postCallSteps.map(({ definition }) => definition.name)])
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
            const outcome = runOnNonJson(Selection.inMode(selection, "pre_call"), "pre_call")
            if (outcome.executions.length === 0) return undefined
            executions.push(...outcome.executions)
            recordMetrics(outcome, target, facts.stream, clock.currentTimeMillisUnsafe())
            return outcome.stopped && new GatewayError(outcome.stopped)
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

/** Policy and limits were decided for what the client sent; a guardrail may change the words, and not that. */
const applyRewrite = (
  target: Target,
  before: Facts.Facts,
  text: string,
  changed: string
): Result.Result<Buffer, GatewayError> => {
  const body = Buffer.from(changed)
  // a registered service takes any JSON, and nothing is decided on what is no object
  if (target.routeId === "service" && !isObject(text) && !isObject(changed)) return Result.succeed(body)
  const parsed = Result.getOrUndefined(Facts.parse(target.routeId, body))
  // what the path names is among `before`, and no guardrail can change it
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

const sameStrings = (some: ReadonlyArray<string>, others: ReadonlyArray<string>): boolean =>
  some.length === others.length && some.every((one, index) => one === others[index])

const isObject = (json: string): boolean => json.trimStart().startsWith("{")

const rewroteTooMuch = new GatewayError({
  code: "guardrail_unavailable",
  message:
    "A guardrail changed more of the request than its words (the model, streaming, tools, output, service, or its form as a JSON object), so the request goes no further."
})

const guardrailsFailed = new GatewayError({
  code: "guardrail_unavailable",
  message:
    "The guardrails of this key failed, and nothing passes without them. The request id tells an operator where to look."
})

const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })
const runs = counter("gateway_guardrail_executions_total", "Runs of guardrails")
const failed = counter("gateway_guardrail_failures_total", "Runs in which the guardrail gave no answer")
const latency = counter("gateway_guardrail_latency_ms_total", "Time that runs of guardrails took, in milliseconds")
const duration = Metric.histogram("gateway_guardrail_duration_seconds", {
  description: "All guardrails of a request, or of its answer",
  boundaries: boundaries.map((ms) => ms / 1000),
  attributes: { unit: "s" }
})
const durationMs = Metric.histogram("gateway_guardrail_duration_ms", {
  description: "All guardrails of a request, or of its answer, in milliseconds",
  boundaries
})
