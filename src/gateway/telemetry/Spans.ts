import { type Clock, Context, Exit, type Option, type Tracer } from "effect"

/** Opens and ends spans without a fiber, which would cost several times as much as the span. */
export class Spans {
  readonly #tracer: Tracer.Tracer
  readonly #clock: Clock.Clock

  constructor(tracer: Tracer.Tracer, clock: Clock.Clock) {
    this.#tracer = tracer
    this.#clock = clock
  }

  /** In milliseconds. */
  now(): number {
    return this.#clock.currentTimeMillisUnsafe()
  }

  nanos(): bigint {
    return this.#clock.currentTimeNanosUnsafe()
  }

  open(name: string, kind: Tracer.SpanKind, parent: Option.Option<Tracer.AnySpan>): Tracer.Span {
    return this.#tracer.span({
      name,
      kind,
      parent,
      annotations: Context.empty(),
      links: [],
      startTime: this.nanos(),
      root: false,
      sampled: true
    })
  }

  /** A span with an error type ends as failed. */
  end(span: Tracer.Span, errorType?: string, at: bigint = this.nanos()): void {
    span.end(at, errorType === undefined ? Exit.void : Exit.fail(errorType))
  }
}
