import { Clock, Effect, Exit, Result, Tracer } from "effect"
import type { Mode } from "../policy/Guardrail.ts"
import type { SelectedGuardrail } from "./Selection.ts"
import type { Reply } from "./StreamJudge.ts"

/** Runs a guardrail in a span of its own, if the current span is exported. The span says what it decided, not on what. */
export const around = <A, E, R>(
  { definition: { name } }: Pick<SelectedGuardrail, "definition">,
  mode: Mode,
  judged: Effect.Effect<A, E, R>,
  replyOf: (judged: A) => Reply
): Effect.Effect<A, E, R> =>
  Effect.withFiber(({ cache: { span: parent } }) =>
    parent?.sampled === true
      ? Effect.useSpan(`apply_guardrail ${name}`, { attributes: attributesOf(name, mode) }, (span) =>
          Effect.tap(Effect.provideService(judged, Tracer.ParentSpan, span), (judged) =>
            Effect.map(Clock.currentTimeNanos, (now) => end(span, replyOf(judged), now))
          )
        )
      : judged
  )

const attributesOf = (name: string, mode: Mode) => ({
  "gateway.guardrail.name": name,
  "gateway.guardrail.mode": mode
})

const end = (span: Tracer.Span, reply: Reply, now: bigint): void => {
  if (Result.isSuccess(reply)) span.attribute("gateway.guardrail.action", reply.success.action)
  else {
    const { code } = reply.failure
    span.attribute("error.type", code)
    span.end(now, Exit.fail(code))
  }
}
