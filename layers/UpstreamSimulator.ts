import { Clock, Effect, Layer } from "effect"
import { type Exchange, type Flow, fromEffects, type Sink, Upstream, UpstreamError } from "../src/services/Upstream.ts"
import type { SimulatedResponse } from "./simulator/SimulatedResponse.ts"
import { defaultSettings, Simulator, type SimulatorSettings } from "./simulator/Simulator.ts"

export interface Options extends SimulatorSettings {
  /** The time between two chunks of a stream, in milliseconds. Default: 20. */
  readonly paceMs: number
}

const defaults: Options = { ...defaultSettings, paceMs: 20 }

export const layerWith = (options: Partial<Options>): Layer.Layer<Upstream> =>
  Layer.effect(
    Upstream,
    Effect.suspend(() => make({ ...defaults, ...options }))
  )

/** Answers every request with a simulated model API, without a network. Delays use Effect's `Clock`. */
export const layer: Layer.Layer<Upstream> = layerWith({})

/** Sends requests to `origin` to the simulator, and all others to `elsewhere`. */
export const layerAt = (origin: string, elsewhere: Layer.Layer<Upstream>): Layer.Layer<Upstream> =>
  Layer.effect(
    Upstream,
    Effect.gen(function* () {
      const simulator = yield* make(defaults)
      const others = yield* Upstream
      const upstreamFor = (request: Exchange) => (request.origin === origin ? simulator : others)
      return Upstream.of({
        exchangeUnsafe: (request, sink, done) => upstreamFor(request).exchangeUnsafe(request, sink, done),
        exchange: (request, sink) => upstreamFor(request).exchange(request, sink)
      })
    })
  ).pipe(Layer.provide(elsewhere))

const make = (options: Options) => {
  const simulator = new Simulator(options)

  const exchange = Effect.fnUntraced(function* (request: Exchange, sink: Sink) {
    const body = yield* readBody(request)
    const response = simulator.respond({ ...request, body }, yield* Clock.currentTimeMillis)
    yield* waitWithin(request.headersWithinMs, response.delayMs, "headers")
    yield* applyFlow(sink, sink.head(response.status, response.headers))
    yield* send(request, response, sink)
    if (response.ending === "cut") return yield* new UpstreamError({ phase: "body", reason: "reset" })
    if (response.ending === "stalled") yield* waitWithin(request.idleWithinMs, Number.POSITIVE_INFINITY, "body")
  })

  const send = Effect.fnUntraced(function* (request: Exchange, response: SimulatedResponse, sink: Sink) {
    for (const [i, chunk] of response.chunks.entries()) {
      if (i > 0) yield* waitWithin(request.idleWithinMs, options.paceMs, "body")
      yield* applyFlow(sink, sink.chunk(chunk))
    }
  })

  return fromEffects(exchange)
}

const waitWithin = (allowedMs: number, neededMs: number, phase: "headers" | "body") =>
  neededMs === 0
    ? Effect.void
    : neededMs < allowedMs
      ? Effect.sleep(neededMs)
      : Effect.andThen(Effect.sleep(allowedMs), new UpstreamError({ phase, reason: "timeout" }))

const applyFlow = (sink: Sink, flow: Flow): Effect.Effect<void, UpstreamError> => {
  switch (flow) {
    case "continue":
      return Effect.void
    case "pause":
      return Effect.callback((resume) => sink.onDrain(() => resume(Effect.void)))
    case "stop":
      return Effect.fail(new UpstreamError({ phase: "body", reason: "stopped" }))
  }
}

const readBody = ({ body }: Exchange): Effect.Effect<Uint8Array, UpstreamError> =>
  body === null
    ? Effect.succeed(new Uint8Array())
    : body instanceof Uint8Array
      ? Effect.succeed(body)
      : Effect.tryPromise({
          try: (signal) => collect(body, signal),
          catch: (cause) => new UpstreamError({ phase: "headers", reason: "stopped", cause })
        })

const maxBodyBytes = 104_857_600

const collect = async (body: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<Uint8Array> => {
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  for await (const chunk of body) {
    if (signal.aborted) break
    bytes += chunk.byteLength
    if (bytes > maxBodyBytes) throw new Error(`The simulator accepts request bodies of at most ${maxBodyBytes} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
