import { Clock, Effect, Layer } from "effect"
import { type Exchange, type Flow, ofEffects, type Sink, Upstream, UpstreamError } from "../src/services/Upstream.ts"
import type { Answer } from "./simulator/Answer.ts"
import { defaultSettings, type Settings, Simulator } from "./simulator/Simulator.ts"

export interface Options extends Settings {
  /** Milliseconds between two chunks of a stream. */
  readonly paceMs: number
}

const defaults: Options = { ...defaultSettings, paceMs: 20 }

export const layerWith = (options: Partial<Options>): Layer.Layer<Upstream> =>
  Layer.effect(
    Upstream,
    Effect.suspend(() => make({ ...defaults, ...options }))
  )

/**
 * `Upstream` without a network: the simulated model proxy of `simulator/Simulator.ts`, at every origin. Its time is
 * Effect's, its deadlines are the exchange's.
 */
export const layer: Layer.Layer<Upstream> = layerWith({})

/** The simulator at one origin, and at every other whoever is there. */
export const at = (origin: string, elsewhere: Layer.Layer<Upstream>): Layer.Layer<Upstream> =>
  Layer.effect(
    Upstream,
    Effect.gen(function* () {
      const simulator = yield* make(defaults)
      const others = yield* Upstream
      const whoIsAt = (request: Exchange) => (request.origin === origin ? simulator : others)
      return Upstream.of({
        exchangeUnsafe: (request, sink, done) => whoIsAt(request).exchangeUnsafe(request, sink, done),
        exchange: (request, sink) => whoIsAt(request).exchange(request, sink)
      })
    })
  ).pipe(Layer.provide(elsewhere))

const make = (options: Options) => {
  const simulator = new Simulator(options)

  const exchange = Effect.fnUntraced(function* (request: Exchange, sink: Sink) {
    const body = yield* received(request)
    const answer = simulator.answer({ ...request, body }, yield* Clock.currentTimeMillis)
    yield* within(request.headersWithinMs, answer.delayMs, "headers")
    yield* heeded(sink, sink.head(answer.status, answer.headers))
    yield* send(request, answer, sink)
    if (answer.ending === "cut") return yield* new UpstreamError({ phase: "body", reason: "reset" })
    if (answer.ending === "stalled") yield* within(request.idleWithinMs, Number.POSITIVE_INFINITY, "body")
  })

  const send = Effect.fnUntraced(function* (request: Exchange, answer: Answer, sink: Sink) {
    for (const [i, chunk] of answer.chunks.entries()) {
      if (i > 0) yield* within(request.idleWithinMs, options.paceMs, "body")
      yield* heeded(sink, sink.chunk(chunk))
    }
  })

  return ofEffects(exchange)
}

/** Waits for `needed`, or fails when that is longer than allowed. */
const within = (allowedMs: number, neededMs: number, phase: "headers" | "body") =>
  neededMs === 0
    ? Effect.void
    : neededMs < allowedMs
      ? Effect.sleep(neededMs)
      : Effect.andThen(Effect.sleep(allowedMs), new UpstreamError({ phase, reason: "timeout" }))

const heeded = (sink: Sink, flow: Flow): Effect.Effect<void, UpstreamError> => {
  switch (flow) {
    case "continue":
      return Effect.void
    case "pause":
      return Effect.callback((resume) => sink.onDrain(() => resume(Effect.void)))
    case "stop":
      return Effect.fail(new UpstreamError({ phase: "body", reason: "stopped" }))
  }
}

const received = ({ body }: Exchange): Effect.Effect<Uint8Array, UpstreamError> =>
  body === null
    ? Effect.succeed(new Uint8Array())
    : body instanceof Uint8Array
      ? Effect.succeed(body)
      : Effect.tryPromise({
          try: (signal) => collect(body, signal),
          catch: (cause) => new UpstreamError({ phase: "headers", reason: "stopped", cause })
        })

const largestBody = 104_857_600

const collect = async (body: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<Uint8Array> => {
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  for await (const chunk of body) {
    if (signal.aborted) break
    bytes += chunk.byteLength
    if (bytes > largestBody) throw new Error(`The simulator takes at most ${largestBody} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
