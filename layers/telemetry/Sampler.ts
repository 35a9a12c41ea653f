import { Option, Tracer } from "effect"

/** Selects the traces to export, like the samplers that `OTEL_TRACES_SAMPLER` names. */
export interface Sampler {
  /** If true, a trace from another process is exported if that process exports it. */
  readonly parentBased: boolean
  /** The fraction of the other traces to export, from 0 to 1. */
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

/** Only these kinds of spans begin a trace. Other spans without a parent belong to background work. */
const rootKinds: ReadonlySet<Tracer.SpanKind> = new Set<Tracer.SpanKind>(["server", "consumer", "producer"])

/** Child spans in this process follow the decision of their parent span. */
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

/** Depends on the trace id only, so that all processes with the same ratio decide alike. */
const isSampledByRatio = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(-13), 16) < ratio * 2 ** 52
