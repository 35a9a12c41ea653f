import { type Context, Effect, Exit, type Fiber, Option, Result } from "effect"
import { type Guardrails, type RunReport, runOnNonJson } from "../guardrails/Guardrails.ts"
import type { RequestContext as GuardrailContext } from "../guardrails/HttpGuardrail.ts"
import * as Selection from "../guardrails/Selection.ts"
import * as StreamCalls from "../guardrails/StreamCalls.ts"
import * as StreamChain from "../guardrails/StreamChain.ts"
import type { TextRoute } from "../guardrails/text/Place.ts"
import * as Facts from "../policy/facts/Facts.ts"
import type { Execution, Mode } from "../policy/Guardrail.ts"
import type { Target } from "../policy/Routing.ts"
import type { StreamFilterOptions } from "./forward/FilteredStream.ts"
import { GatewayError } from "./GatewayError.ts"
import type { Request } from "./request/Request.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import * as TextRoutes from "./TextRoutes.ts"
import * as GuardrailMetrics from "./telemetry/GuardrailMetrics.ts"
import type { Phase, Span } from "./telemetry/Tracing.ts"

export interface RunnerServices {
  readonly guardrails: Guardrails["Service"]
  readonly context: Context.Context<never>
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  readonly now: () => number
}

/** The request whose body and response are guarded. */
export interface GuardedRequest {
  readonly request: Request
  readonly target: Target
  readonly key: KeyRecord
  /** The user of the verified identity. */
  readonly subject: string | undefined
  readonly facts: Facts.Facts
  readonly span: Span
}

/** What the guardrails of a stream need of its request. */
interface StreamResources extends Pick<StreamFilterOptions, "lease" | "schedule"> {
  readonly onDefect: (defect: unknown) => void
}

/** Runs the selected guardrails on one request and its response. */
export class GuardrailRunner {
  readonly executions: Array<Execution> = []
  readonly #services: RunnerServices
  readonly #request: Request
  readonly #target: Target
  readonly #facts: Facts.Facts
  readonly #preCallSteps: Selection.Selection
  readonly #postCallSteps: Selection.Selection
  readonly #streamSteps: Selection.Selection
  readonly #context: GuardrailContext
  readonly #route: TextRoute
  readonly #placeholders = new Map<string, string>()
  readonly #span: Span
  #stream: StreamChain.StreamChain | undefined
  #streamPhase: Phase | undefined

  constructor(
    services: RunnerServices,
    selection: Selection.Selection,
    { facts, key, request, span, subject, target }: GuardedRequest
  ) {
    this.#services = services
    this.#span = span
    this.#request = request
    this.#target = target
    this.#facts = facts
    this.#preCallSteps = Selection.inMode(selection, "pre_call")
    this.#postCallSteps = Selection.inMode(selection, "post_call")
    this.#streamSteps = Selection.ofResponses(selection)
    this.#route = TextRoutes.of(target)
    this.#context = {
      key_id: key.id,
      team_id: Option.getOrNull(key.teamId),
      user_id: subject ?? null,
      project_id: Option.getOrNull(key.projectId),
      model: facts.models[0] ?? null,
      route: target.route,
      provider: target.provider
    }
  }

  get inspectsResponse(): boolean {
    return this.#streamSteps.length > 0
  }

  /** Response headers that name the applied guardrails. They are complete once `inspectRequest` has called `done`. */
  responseHeaders(): ReadonlyArray<readonly [string, string]> {
    const executed = this.executions.map(({ guardrail_name }) => guardrail_name)
    const steps = this.#facts.stream ? this.#streamSteps : this.#postCallSteps
    const names = new Set([...executed, ...steps.map(({ definition }) => definition.name)])
    return names.size === 0 ? [] : [["x-svc-applied-guardrails", [...names].join(",")]]
  }

  inspectRequest(body: Buffer, done: (guarded: Result.Result<Buffer, GatewayError>) => void): void {
    const text = body.toString()
    this.#run("pre_call", this.#preCallSteps, text, (guarded) =>
      done(
        Result.flatMap(guarded, (changed) =>
          changed === text ? Result.succeed(body) : applyRewrite(this.#target, this.#facts, text, changed)
        )
      )
    )
  }

  refusalOfOpaqueBody(): GatewayError | undefined {
    const report = runOnNonJson(this.#preCallSteps, "pre_call")
    if (report.executions.length === 0) return undefined
    this.#record(report, this.#services.now())
    return report.stopped && new GatewayError(report.stopped)
  }

  /** Returns the filter for an event stream. Each exchange with an upstream needs its own. */
  streamFilter(resources: StreamResources): StreamFilterOptions {
    const { lease, onDefect, schedule } = resources
    const { fork, guardrails, now } = this.#services
    const { requestId } = this.#request
    this.#stream = undefined
    return {
      holdsWholeStream: this.#streamSteps.some(StreamChain.holdsWholeStream),
      lease,
      schedule,
      open: (output) => {
        const phase = this.#span.startPhase(phaseName)
        this.#streamPhase = phase
        const call = StreamCalls.make(guardrails, {
          fork: (effect) => fork(phase.run(effect)),
          requestId,
          context: this.#context,
          onDefect
        })
        const options = { route: this.#route, known: this.#placeholders, now, call }
        this.#stream = new StreamChain.StreamChain(this.#streamSteps, options, {
          push: (bytes) => output.push(bytes),
          end: () => output.end(),
          ready: () => output.ready(),
          stop: (by) => output.block(new GatewayError(by))
        })
        return this.#stream
      }
    }
  }

  /** Records the guardrails that read the event stream of the last exchange. */
  endStream(): void {
    const { executions = [], failures = [] } = this.#stream?.report() ?? {}
    this.#stream = undefined
    this.#streamPhase?.end()
    this.#streamPhase = undefined
    if (executions.length > 0) this.#record({ executions, failures, stopped: undefined }, this.#services.now())
  }

  inspectResponse(text: string, done: (guarded: Result.Result<string, GatewayError>) => void): void {
    // The upstream may respond to a request for a stream without one.
    if (this.#facts.stream) this.#run("during_call", this.#streamSteps, text, done)
    else this.#run("post_call", this.#postCallSteps, text, done)
  }

  #run(
    mode: Mode,
    steps: Selection.Selection,
    text: string,
    done: (guarded: Result.Result<string, GatewayError>) => void
  ) {
    if (steps.length === 0) return done(Result.succeed(text))
    const { fork, guardrails, now } = this.#services
    const startedAt = now()
    const { requestId } = this.#request
    const input = {
      requestId,
      mode,
      context: this.#context,
      route: this.#route,
      text,
      placeholders: this.#placeholders
    }
    const phase = this.#span.startPhase(phaseName)
    fork(phase.run(guardrails.run(steps, input))).addObserver((exit) => {
      phase.end()
      if (Exit.isFailure(exit)) {
        fork(Effect.logError("guardrails failed because of a gateway defect; the request is refused", exit.cause))
        return done(Result.fail(guardrailsFailed))
      }
      this.#record(exit.value, startedAt)
      const { stopped } = exit.value
      done(stopped === undefined ? Result.succeed(exit.value.text) : Result.fail(new GatewayError(stopped)))
    })
  }

  #record(report: RunReport, startedAt: number) {
    this.executions.push(...report.executions)
    const { context, now } = this.#services
    const { provider, route } = this.#target
    GuardrailMetrics.record(report, { route, provider, stream: this.#facts.stream, tookMs: now() - startedAt }, context)
  }
}

const phaseName = "gateway.guardrails"

/**
 * Policy and limits were checked before the guardrails ran. A guardrail may therefore rewrite text, but not change
 * members that policy or limits depend on, such as the model.
 */
const applyRewrite = (
  target: Target,
  before: Facts.Facts,
  text: string,
  changed: string
): Result.Result<Buffer, GatewayError> => {
  const body = Buffer.from(changed)
  // For a registered service, policy reads only JSON objects. Other bodies may be rewritten freely.
  if (target.routeId === "service" && !isObject(text) && !isObject(changed)) return Result.succeed(body)
  const parsed = Result.getOrUndefined(Facts.parse(target.routeId, body))
  // `before` includes models that the request path names, so `after` must include them too.
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
    !after.namesGuardrails &&
    isSubset(after.references, before.references) &&
    sameStrings(after.models, before.models) &&
    sameStrings(after.alternativeModels, before.alternativeModels)
  return same ? Result.succeed(body) : Result.fail(rewroteTooMuch)
}

/** A guardrail must not make a request use an object whose owner was not checked. */
const isSubset = (after: Facts.Facts["references"], before: Facts.Facts["references"]): boolean => {
  const checked = new Set(before.map((object) => JSON.stringify(object)))
  return after.every((object) => checked.has(JSON.stringify(object)))
}

const sameStrings = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): boolean =>
  left.length === right.length && left.every((value, index) => value === right[index])

const isObject = (json: string): boolean => json.trimStart().startsWith("{")

const rewroteTooMuch = new GatewayError({
  code: "guardrail_unavailable",
  message:
    "A guardrail may change only the text of a request, but it changed something else, such as the model, the tools or the output limit. The gateway refused the request. Ask the operator to check the guardrail."
})

const guardrailsFailed = new GatewayError({
  code: "guardrail_unavailable",
  message: "The guardrails of this key failed, so the gateway refused the request. Give the operator the request id."
})
