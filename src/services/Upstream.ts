import { Context, Effect, type Exit, Schema } from "effect"

/**
 * The exchange did not complete.
 *
 * - Phases: `connect`: nothing was sent. `headers`: the response status had not arrived. `body`: the response had
 *   begun.
 * - `refused`: the connection failed (refused, unknown host, TLS). `busy`: the connection limit of the origin is
 *   reached and no connection became free in time. `timeout`: the deadline of the phase passed. `reset`: the connection
 *   was lost. `malformed`: the response is not valid HTTP. `stopped`: this side ended the exchange, because the sink
 *   stopped it or the request body failed.
 */
export class UpstreamError extends Schema.TaggedError<UpstreamError>()("UpstreamError", {
  phase: Schema.Literals(["connect", "headers", "body"]),
  reason: Schema.Literals(["refused", "busy", "timeout", "reset", "malformed", "stopped"]),
  /** With `busy`: the number of exchanges with the origin that may run at once, in all or for one caller. */
  limit: Schema.optionalKey(Schema.Int),
  /** With `busy`: whether `limit` applies to everybody or to the caller. */
  whose: Schema.optionalKey(Schema.Literals(["everybody", "caller"])),
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** `pause` sends no further chunk until `onDrain` calls back. `stop` ends the exchange. */
export type Flow = "continue" | "pause" | "stop"

/**
 * Receives the response. The functions run inside the driver's callbacks, so they must be synchronous and cheap. A
 * `Stream` here would cost more than half of the throughput.
 */
export interface Sink {
  /** Called once, before any chunk. `headers` alternates names and values as received. */
  readonly head: (status: number, headers: ReadonlyArray<string>) => Flow
  readonly chunk: (bytes: Uint8Array) => Flow
  /** Called once after each `pause`. The sink calls `resume` when it can take more. */
  readonly onDrain: (resume: () => void) => void
}

export interface Exchange {
  /** Scheme, host and port, such as `https://api.example.com`. */
  readonly origin: string
  /** The caller whose share of the origin's connections the exchange uses. `undefined`: the program itself. */
  readonly caller?: string | undefined
  readonly method: string
  /** Path and query, which are sent byte for byte. */
  readonly target: string
  /** Alternating names and values. The HTTP client sets `host` and `content-length`. */
  readonly headers: ReadonlyArray<string>
  readonly body: Uint8Array | AsyncIterable<Uint8Array> | null
  /**
   * The deadline in milliseconds for the connection and, from then on, for the response headers. Waiting for a free
   * connection does not count.
   */
  readonly headersWithinMs: number
  /** A response is stalled after this number of milliseconds without a byte. A paused exchange does not stall. */
  readonly idleWithinMs: number
}

/** The door to the upstreams: sends a request and returns the status, headers and bytes of the response. */
export class Upstream extends Context.Service<
  Upstream,
  {
    /** Succeeds once the last byte has reached the sink. Interruption also ends the exchange at the upstream. */
    readonly exchange: (request: Exchange, sink: Sink) => Effect.Effect<void, UpstreamError>

    /**
     * The same as `exchange` without a fiber, because every request takes this path. Calls `done` once. The returned
     * function cancels the exchange at the upstream, after which `done` is never called; it returns whether the
     * upstream may have received any part of the request.
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

/** Builds the door from a driver that works with callbacks. */
export const fromCallbacks = (start: StartExchange): Upstream["Service"] => ({
  exchangeUnsafe: start,
  exchange: (request, sink) =>
    Effect.callback((resume) => {
      const cancel = start(request, sink, resume)
      return Effect.sync(cancel)
    })
})

/**
 * Builds the door from a variant that works with effects. It has no connections to wait for, so cancelling always
 * returns `true`.
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
