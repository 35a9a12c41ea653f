import { Effect, Tracer } from "effect"

/** Makes `effect` a phase of its request in traces. */
export type Phase = <A, E>(name: string, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>

/** Without a tracer no span is made: one costs five microseconds, also when nobody collects it. */
export const phase: Effect.Effect<Phase> = Effect.map(
  Effect.tracer,
  (tracer): Phase =>
    tracer === Tracer.nativeTracer ? (_, effect) => effect : (name, effect) => Effect.withSpan(effect, name)
)
