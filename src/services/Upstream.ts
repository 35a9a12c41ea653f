import { Context, Effect, type Exit, Schema } from "effect"

/**
 * The exchange did not run to its end.
 *
 * - `connect`: nothing was sent; `headers`: no response status yet; `body`: the response had begun.
 * - `refused`: no connection to be had (refused, unknown host, TLS); `busy`: this side has as many exchanges with the
 *   origin as it may, and this one's turn did not come; `timeout`: the phase's deadline passed; `reset`: the connection
 *   was lost; `malformed`: what came is not HTTP; `stopped`: this side ended it, because the sink wanted no more or the
 *   request's body failed.
 */
export class UpstreamError extends Schema.TaggedError<UpstreamError>()("UpstreamError", {
  phase: Schema.Literals(["connect", "headers", "body"]),
  reason: Schema.Literals(["refused", "busy", "timeout", "reset", "malformed", "stopped"]),
  /** With `busy`: how many exchanges with the origin may run at once, in all or of one caller. */
  limit: Schema.optionalKey(Schema.Int),
  /** With `busy`: whose exchanges those are. */
  whose: Schema.optionalKey(Schema.Literals(["everybody", "caller"])),
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** `pause`: send nothing more until `onDrain` calls back. `stop`: end the exchange. */
export type Flow = "continue" | "pause" | "stop"

/**
 * Where response bytes go. Called from the driver's own callbacks: synchronous and cheap. A `Stream` here would cost
 * more than half of the throughput.
 */
export interface Sink {
  /** Once, before any chunk. `headers`: name, value, name, value, as they came. */
  readonly head: (status: number, headers: ReadonlyArray<string>) => Flow
  readonly chunk: (bytes: Uint8Array) => Flow
  /** Once after each `pause`. */
  readonly onDrain: (resume: () => void) => void
}

export interface Exchange {
  /** Scheme, host and port: `https://api.example.com`. */
  readonly origin: string
  /** For whom it is: no caller holds more than a share of the connections to an origin. `undefined`: for this program. */
  readonly caller?: string | undefined
  readonly method: string
  /** Path and query, sent as they are, byte for byte. */
  readonly target: string
  /** Name, value, name, value. `host` and `content-length` are the driver's. */
  readonly headers: ReadonlyArray<string>
  readonly body: Uint8Array | AsyncIterable<Uint8Array> | null
  /** Milliseconds to connect and, from there, to the response's headers. A wait for its turn comes before them. */
  readonly headersWithinMs: number
  /** Milliseconds without a byte before the response counts as stalled. A paused exchange does not stall. */
  readonly idleWithinMs: number
}

/** The model proxy behind the gateway: send this request, give me status, headers and bytes. */
export class Upstream extends Context.Service<
  Upstream,
  {
    /** Succeeds when the last byte has gone to the sink. Interruption ends the exchange at the upstream too. */
    readonly exchange: (request: Exchange, sink: Sink) => Effect.Effect<void, UpstreamError>

    /**
     * The same without a fiber, for the path of every request. Tells `done` once; `cancel` ends the exchange at the
     * upstream too, and then `done` is told nothing. It answers whether the upstream may have had any of the request.
     */
    readonly exchangeUnsafe: StartExchange
  }
>()("svc/Upstream") {}

export type StartExchange = (
  request: Exchange,
  sink: Sink,
  done: (exit: Exit.Exit<void, UpstreamError>) => void
) => CancelExchange
export type CancelExchange = () => boolean

/** The door of a driver that works by callbacks. */
export const fromCallbacks = (start: StartExchange): Upstream["Service"] => ({
  exchangeUnsafe: start,
  exchange: (request, sink) =>
    Effect.callback((resume) => {
      const cancel = start(request, sink, resume)
      return Effect.sync(cancel)
    })
})

/** The door of a variant that works by effects, and has no connection to wait for: whoever asks is heard. */
export const fromEffects = (exchange: Upstream["Service"]["exchange"]): Effect.Effect<Upstream["Service"]> =>
  Effect.map(Effect.context<never>(), (context) => ({
    exchange,
    exchangeUnsafe: (request, sink, done) => {
      let cancelled = false
      const fiber = Effect.runForkWith(context)(exchange(request, sink))
      fiber.addObserver((exit) => {
        if (!cancelled) done(exit)
      })
      return () => {
        cancelled = true
        fiber.interruptUnsafe()
        return true
      }
    }
  }))
