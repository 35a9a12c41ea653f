import { Clock, Context, Effect, Layer, Result } from "effect"
import type { Execution, Mode } from "../policy/Guardrail.ts"
import { Egress } from "../services/Egress.ts"
import * as GuardrailOutcome from "./GuardrailOutcome.ts"
import * as GuardrailSpan from "./GuardrailSpan.ts"
import * as HttpGuardrail from "./HttpGuardrail.ts"
import * as PiiRedact from "./PiiRedact.ts"
import { type HttpStep, isHttp, type SelectedGuardrail, type Selection } from "./Selection.ts"
import type { Reply } from "./StreamJudge.ts"
import { nodesOf } from "./text/JsonTape.ts"
import type { TextRoute } from "./text/Place.ts"

/** A text to check, and the placeholders that replaced values in its request. */
export interface GuardrailInput {
  readonly requestId: string
  readonly mode: Mode
  readonly context: HttpGuardrail.RequestContext
  /** Tells where the text stands in the document. */
  readonly route: TextRoute
  readonly text: string
  /** The replaced values by placeholder. `pre_call` adds values, and `post_call` restores them in the response. */
  readonly placeholders: Map<string, string>
}

export interface RunReport {
  readonly executions: ReadonlyArray<Execution>
  /** The runs in which the guardrail did not reply or its reply is invalid. */
  readonly failures: ReadonlyArray<Execution>
  /** The guardrail that blocked the text. Later guardrails did not run. */
  readonly stopped: GuardrailOutcome.StoppedBy | undefined
}

export interface GuardrailRun extends RunReport {
  readonly text: string
}

/** Runs guardrails on requests, on responses, and on texts of the operators' test endpoint. */
export class Guardrails extends Context.Service<
  Guardrails,
  {
    /** Runs the guardrails in order. Each one gets the text of the previous one. All must support the mode. */
    readonly run: (selection: Selection, input: GuardrailInput) => Effect.Effect<GuardrailRun>
    /** Calls an HTTP guardrail once with texts of an event stream. */
    readonly judgeStream: (
      step: HttpStep,
      input: Pick<GuardrailInput, "requestId" | "context" | "text">
    ) => Effect.Effect<Reply>
  }
>()("svc/guardrails/Guardrails") {
  static readonly layer = Layer.effect(
    Guardrails,
    Effect.gen(function* () {
      const egress = yield* Egress

      const call = (
        { config, definition: { name: guardrail, provider } }: HttpStep,
        { context, mode, requestId, text }: Pick<GuardrailInput, "requestId" | "context" | "mode" | "text">
      ): Effect.Effect<Reply> =>
        HttpGuardrail.call(egress, provider, { requestId, guardrail, mode, context, config, text })

      const judge = (step: SelectedGuardrail, input: GuardrailInput): Effect.Effect<JudgedText> =>
        !isHttp(step)
          ? Effect.sync(() => redact(step, input))
          : isSeveralDocuments(input)
            ? Effect.succeed({ verdict: notCalled })
            : Effect.map(call(step, input), (verdict) => ({ verdict }))

      const run: Guardrails["Service"]["run"] = Effect.fnUntraced(function* (selection, input) {
        const executions: Array<Execution> = []
        const failures: Array<Execution> = []
        let { text } = input
        for (const step of selection) {
          const { definition } = step
          const startedAt = yield* Clock.currentTimeMillis
          const judged = judge(step, { ...input, text })
          const { found, verdict } = yield* GuardrailSpan.around(step, input.mode, judged, ({ verdict }) => verdict)
          const outcome = GuardrailOutcome.of(definition.failurePolicy, verdict)
          const tookMs = (yield* Clock.currentTimeMillis) - startedAt
          const execution = GuardrailOutcome.executionOf(definition, input.mode, outcome, tookMs)
          executions.push(execution)
          if (outcome.failed) failures.push(execution)
          const { consequence } = outcome
          if (consequence._tag === "Stops") {
            const stopped = GuardrailOutcome.stoppedBy(consequence.code, definition.name)
            return { text, executions, failures, stopped }
          }
          if (consequence._tag === "GoesAs") {
            text = consequence.text
            // Only values of the request are remembered, because they may have to be restored in its response.
            if (input.mode === "pre_call") remember(input.placeholders, found)
          }
        }
        return { text, executions, failures, stopped: undefined }
      })

      const judgeStream: Guardrails["Service"]["judgeStream"] = (step, input) =>
        GuardrailSpan.around(step, "during_call", call(step, { ...input, mode: "during_call" }), (reply) => reply)

      return Guardrails.of({ run, judgeStream })
    })
  )
}

/** Guardrails cannot read a text that is not JSON, so the failure policy of each one decides. */
export const runOnNonJson = (selection: Selection, mode: Mode): RunReport => {
  const executions: Array<Execution> = []
  for (const { definition } of selection) {
    const outcome = GuardrailOutcome.of(definition.failurePolicy, notCalled)
    executions.push(GuardrailOutcome.executionOf(definition, mode, { ...outcome, reason: "not_json" }, 0))
    const { consequence } = outcome
    if (consequence._tag === "Stops") {
      const message = `The guardrail ${definition.name} reads only JSON, and this body is not JSON. Send JSON, or ask an operator for a policy without this guardrail.`
      return { executions, failures: executions, stopped: { code: consequence.code, message } }
    }
  }
  return { executions, failures: executions, stopped: undefined }
}

const notCalled: Reply = Result.fail({ code: "guardrail_unavailable" })

/** The results of a batch are JSON documents in lines, which the protocol of HTTP guardrails cannot carry. */
const isSeveralDocuments = ({ route, text }: GuardrailInput): boolean =>
  route === "message_batches" && nodesOf(text) === undefined

const remember = (placeholders: Map<string, string>, values: PiiRedact.PlaceholderValues = new Map()): void => {
  for (const [placeholder, value] of values) placeholders.set(placeholder, value)
}

interface JudgedText {
  readonly verdict: Reply
  readonly found?: PiiRedact.PlaceholderValues
}

const redact = ({ config, definition }: SelectedGuardrail, input: GuardrailInput): JudgedText => {
  const { mode, placeholders, route, text } = input
  const run = mode === "pre_call" ? PiiRedact.redactRequest : PiiRedact.redactResponse
  const redacted = run(text, { config, route, known: placeholders }, definition.failurePolicy)
  return Result.isFailure(redacted)
    ? { verdict: Result.fail({ code: "guardrail_unavailable" }) }
    : { verdict: Result.succeed(redacted.success.verdict), found: redacted.success.found }
}
