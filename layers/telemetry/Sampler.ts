import { Option, Tracer } from "effect"

/** Selects the exported traces, with the samplers of OpenTelemetry's `OTEL_TRACES_SAMPLER`. */
export interface Sampler {
  /** Traces that began elsewhere keep the decision made there. */
  readonly parentBased: boolean
  /** The fraction of other traces that is exported, from 0 to 1. */
  readonly ratio: number
}

export const samplerNames = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio"
] as const

export const make = (name: (typeof samplerNames)[number], ratio: number): Sampler => ({
  parentBased: name.startsWith("parentbased_"),
  ratio: name.endsWith("always_on") ? 1 : name.endsWith("always_off") ? 0 : ratio
})

/** Kinds of spans that begin a trace. Other spans without a parent are background work and are not exported. */
const rootKinds: ReadonlySet<Tracer.SpanKind> = new Set<Tracer.SpanKind>(["server", "consumer", "producer"])

/** Child spans of this process follow their parent. */
export const withSampler = (tracer: Tracer.Tracer, { parentBased, ratio }: Sampler): Tracer.Tracer =>
  Tracer.make({
    span: (options) => {
      const parent = Option.getOrUndefined(options.parent)
      const sampled =
        parent === undefined
          ? rootKinds.has(options.kind) && Math.random() < ratio
          : parent._tag === "Span" || parentBased
            ? parent.sampled
            : isSampledByRatio(parent.traceId, ratio)
      return tracer.span({ ...options, sampled: sampled && options.sampled })
    },
    context: tracer.context
  })

/** Deterministic: every process with the same ratio decides the same for a trace. */
const isSampledByRatio = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(-13), 16) < ratio * 2 ** 52
