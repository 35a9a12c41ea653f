import { Context, Effect, type Exit, Schema } from "effect"

/**
 * The exchange with the upstream did not complete.
 *
 * - `phase` is the phase that failed. `connect`: nothing was sent. `headers`: no response status had arrived. `body`:
 *   the response had begun.
 * - `refused`: the connection failed (refused, unknown host, TLS). `busy`: all allowed connections to the origin stayed
 *   in use. `timeout`: the deadline of the phase passed. `reset`: the connection was lost. `malformed`: the response is
 *   not valid HTTP. `stopped`: the sink stopped the exchange, or the request body failed.
 */
export class UpstreamError extends Schema.TaggedError<UpstreamError>()("UpstreamError", {
  phase: Schema.Literals(["connect", "headers", "body"]),
  reason: Schema.Literals(["refused", "busy", "timeout", "reset", "malformed", "stopped"]),
  /** With `busy`: the maximum number of concurrent exchanges with the origin. */
  limit: Schema.optionalKey(Schema.Int),
  /** With `busy`: whether `limit` applies to all callers or to this caller. */
  whose: Schema.optionalKey(Schema.Literals(["everybody", "caller"])),
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** After `pause`, no chunk arrives until the sink calls `resume`: see `onDrain`. `stop` ends the exchange. */
export type Flow = "continue" | "pause" | "stop"

/**
 * Receives the response. The functions run inside the driver's callbacks, so they must be synchronous and cheap. A
 * `Stream` here would cost more than half of the throughput.
 */
export interface Sink {
  /** Called once, before any chunk. `headers` alternates names and values as received. */
  readonly head: (status: number, headers: ReadonlyArray<string>) => Flow
  readonly chunk: (bytes: Uint8Array) => Flow
  /** Called once after each `pause`. The sink calls `resume` when it can receive more chunks. */
  readonly onDrain: (resume: () => void) => void
}

export interface Exchange {
  /** Scheme, host and port, such as `https://api.example.com`. */
  readonly origin: string
  /** The caller of the exchange. Each caller has a share of the connections. `undefined` is the program itself. */
  readonly caller?: string | undefined
  readonly method: string
  /** Path and query. They are sent unchanged. */
  readonly target: string
  /** Alternating names and values. The HTTP client sets `host` and `content-length`. */
  readonly headers: ReadonlyArray<string>
  readonly body: Uint8Array | AsyncIterable<Uint8Array> | null
  /**
   * The deadline in milliseconds for connecting, and then again for the response headers. Waiting for a free connection
   * does not count.
   */
  readonly headersWithinMs: number
  /** The exchange times out after this many milliseconds without a response byte, unless it is paused. */
  readonly idleWithinMs: number
}

/** Sends requests to upstreams and passes the status, headers and bytes of the response to a sink. */
export class Upstream extends Context.Service<
  Upstream,
  {
    /** Succeeds once the last byte has reached the sink. Interruption cancels the request to the upstream. */
    readonly exchange: (request: Exchange, sink: Sink) => Effect.Effect<void, UpstreamError>

    /**
     * Like `exchange`, but without the cost of a fiber, because every gateway request uses it. Calls `done` once. The
     * returned function cancels the exchange and prevents the call of `done`. It returns whether the upstream may have
     * received any part of the request.
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

/** Builds the service from a driver with callbacks. */
export const fromCallbacks = (start: StartExchange): Upstream["Service"] => ({
  exchangeUnsafe: start,
  exchange: (request, sink) =>
    Effect.callback((resume) => {
      const cancel = start(request, sink, resume)
      return Effect.sync(cancel)
    })
})

/**
 * Builds the service from a function that returns an effect. The request counts as sent as soon as the effect runs, so
 * cancelling always returns `true`.
 */
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
