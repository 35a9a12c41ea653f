import { Option, Tracer } from "effect"

/** Which traces are exported, by the names of OpenTelemetry's `OTEL_TRACES_SAMPLER`. */
export interface Sampler {
  /** Traces that begin outside keep what was decided there. */
  readonly parentBased: boolean
  /** The part of the others that is exported, from 0 to 1. */
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

/** What a trace begins with. Anything else without a parent is upkeep, which nobody asked for. */
const rootKinds: ReadonlySet<Tracer.SpanKind> = new Set<Tracer.SpanKind>(["server", "consumer", "producer"])

/** Spans below one of this process go with it. */
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

/** The same answer for a trace in each process that is set to the ratio. */
const isSampledByRatio = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(-13), 16) < ratio * 2 ** 52
