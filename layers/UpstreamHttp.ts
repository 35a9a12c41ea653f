import { Readable } from "node:stream"
import { type Duration, Effect, Exit, Layer } from "effect"
import type { Dispatcher } from "undici"
import { CollectedBytes } from "../src/services/CollectedBytes.ts"
import * as FairShare from "../src/services/FairShare.ts"
import {
  type Exchange,
  type Flow,
  fromCallbacks,
  type Sink,
  Upstream,
  UpstreamError
} from "../src/services/Upstream.ts"
import { type AddressPolicy, allowPrivateAddresses } from "./http/AddressPolicy.ts"
import { type Connection, ConnectionPool, type ConnectionWaiter, type PoolLimits } from "./http/ConnectionPool.ts"
import type { NameLookups } from "./http/NameLookups.ts"
import { failureReason, type UpstreamPhase, type UpstreamReason } from "./http/UpstreamFailure.ts"

export interface Options extends PoolLimits {
  /** The longest wait for a connection. A request may have a shorter deadline of its own. */
  readonly queueTimeoutMs: number
  /** When the layer closes, running requests get this time to finish. */
  readonly drainTimeout: Duration.Input
  readonly addressPolicy: AddressPolicy
  /** Default: the name look-ups that the whole process shares. */
  readonly nameLookups?: NameLookups
}

const defaults: Options = {
  // One caller may use a quarter of the connections. A single key can therefore have 1,024 open streams.
  connectionsPerOrigin: 4_096,
  waitingPerOrigin: 4_096,
  queueTimeoutMs: 5_000,
  idleConnections: 1_024,
  drainTimeout: "30 seconds",
  addressPolicy: allowPrivateAddresses
}

export const make = (options: Options) =>
  Effect.gen(function* () {
    const pool = new ConnectionPool(options, options.addressPolicy, options.nameLookups)
    yield* Effect.addFinalizer(() =>
      Effect.callback<void>((resume) => pool.drain(() => resume(Effect.void))).pipe(
        Effect.timeoutOption(options.drainTimeout),
        Effect.andThen(Effect.sync(() => pool.destroy()))
      )
    )
    return fromCallbacks((request, sink, done) => {
      const running = new RunningExchange(pool, options, request, sink, done)
      running.start()
      return () => running.cancel()
    })
  })

export const layerWith = (options: Partial<Options>): Layer.Layer<Upstream> =>
  Layer.effect(Upstream, make({ ...defaults, ...options }))

/**
 * An HTTP/1.1 client over undici's dispatch handlers. It forwards bytes unchanged, follows no redirects and
 * decompresses nothing. Headers keep their case, order and duplicates.
 *
 * HTTP/2 is not supported, because it lower-cases header names. Trailers are not supported. If a response begins with
 * an unrequested `100 Continue`, undici closes the connection, and the request fails as `malformed`.
 *
 * The connections to an origin are limited, and each caller may use a quarter of them. Further requests wait in a
 * bounded queue. A request fails as `busy` if the queue is full or the wait takes too long.
 *
 * Nothing is retried, because the server may act on a request as soon as it has received bytes. Only undici itself
 * replaces a kept-alive connection that closes before anything was written.
 */
export const layer: Layer.Layer<Upstream> = layerWith({})

/** One request and its response. The class uses callbacks for speed, because every proxied byte passes through it. */
class RunningExchange implements Dispatcher.DispatchHandler, ConnectionWaiter {
  readonly #pool: ConnectionPool
  readonly #options: Options
  readonly #request: Exchange
  readonly #sink: Sink
  readonly #done: (exit: Exit.Exit<void, UpstreamError>) => void
  #phase: UpstreamPhase = "connect"
  #ended = false
  #paused = false
  #connection: Connection | undefined
  #upload: Readable | undefined
  // A native timer. Restarting a sleeping fiber for every chunk would cost more than copying the bytes.
  #deadline: NodeJS.Timeout | undefined
  #timeoutMs = 0
  #smallChunks: CollectedBytes | undefined

  constructor(
    pool: ConnectionPool,
    options: Options,
    request: Exchange,
    sink: Sink,
    done: (exit: Exit.Exit<void, UpstreamError>) => void
  ) {
    this.#pool = pool
    this.#options = options
    this.#request = request
    this.#sink = sink
    this.#done = done
  }

  get caller(): string | undefined {
    return this.#request.caller
  }

  start(): void {
    const { headersWithinMs, origin } = this.#request
    const result = this.#pool.acquire(origin, this)
    if (result === "full") this.#failBusy()
    else if (result === "waiting") this.#setDeadline(Math.min(this.#options.queueTimeoutMs, headersWithinMs))
  }

  cancel(): boolean {
    if (!this.#ended) this.#end(cancelled, undefined)
    return this.#phase !== "connect"
  }

  onConnection(connection: Connection): void {
    const { method, target, headers, headersWithinMs, body } = this.#request
    this.#connection = connection
    this.#setDeadline(headersWithinMs)
    const content = body === null || body instanceof Uint8Array ? body : this.#startUpload(body)
    connection.dispatch({ method, path: target, headers: headers.slice(), body: content }, this)
  }

  onDeadline(): void {
    if (this.#connection === undefined) this.#failBusy()
    else if (!this.#paused) this.#fail("timeout")
  }

  onRequestStart(): void {
    this.#phase = "headers"
    // A new deadline for the headers, after the deadline for connecting. With an upload, `#withoutDeadline` sets it.
    if (this.#upload === undefined) this.#setDeadline(this.#request.headersWithinMs)
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200 || this.#ended) return
    this.#phase = "body"
    this.#setDeadline(this.#request.idleWithinMs)
    this.#applyFlow(controller, this.#sink.head(status, headerTexts(controller.rawHeaders)))
  }

  onResponseData(controller: Dispatcher.DispatchController, bytes: Uint8Array): void {
    if (this.#ended) return
    this.#deadline?.refresh()
    if (this.#smallChunks === undefined && bytes.length >= smallChunkBytes)
      this.#applyFlow(controller, this.#sink.chunk(bytes))
    else this.#gatherSmall(controller, bytes)
  }

  /** Merges the small chunks of one socket read. A chunk of one byte costs the receiver as much as a large chunk. */
  #gatherSmall(controller: Dispatcher.DispatchController, bytes: Uint8Array): void {
    if (this.#smallChunks === undefined) {
      this.#smallChunks = new CollectedBytes()
      queueMicrotask(() => this.#flushSmall(controller))
    }
    this.#smallChunks.add(asBuffer(bytes))
    if (this.#smallChunks.length >= flushBytes) this.#flushSmall(controller)
  }

  #flushSmall(controller: Dispatcher.DispatchController): void {
    const pending = this.#smallChunks
    this.#smallChunks = undefined
    if (pending === undefined || this.#ended) return
    try {
      this.#applyFlow(controller, this.#sink.chunk(pending.take()))
    } catch (defect) {
      // In a microtask, nothing else would catch it, and the process would end.
      this.#end(thrownBySink, Exit.die(defect))
    }
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#flushSmall(controller)
    // If a response has no length, undici treats a reset of the connection like the normal end of the response.
    if (this.#connection?.isBroken) this.#fail("reset")
    else if (!this.#ended) this.#end(undefined, Exit.void)
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    this.#flushSmall(controller)
    if (this.#ended) return
    const reason = failureReason(this.#phase, error)
    if (reason === undefined) this.#end(error, Exit.die(error))
    else this.#fail(reason, error)
  }

  #startUpload(body: AsyncIterable<Uint8Array>): Readable {
    const upload = Readable.from(this.#withoutDeadline(body), { objectMode: false })
    upload.on("error", (error) => this.#fail("stopped", error))
    this.#upload = upload
    return upload
  }

  /** Stops the upstream's deadline while the client is sending its body. The client has a deadline of its own. */
  async *#withoutDeadline(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const source = body[Symbol.asyncIterator]()
    try {
      for (;;) {
        if (this.#phase !== "body") this.#clearDeadline()
        const next = await source.next()
        if (this.#phase !== "body" && !this.#ended) this.#setDeadline(this.#request.headersWithinMs)
        if (next.done === true) return
        yield next.value
      }
    } finally {
      await source.return?.()
    }
  }

  #applyFlow(controller: Dispatcher.DispatchController, flow: Flow): void {
    if (flow === "stop") this.#fail("stopped")
    else if (flow === "pause" && !this.#paused) {
      this.#paused = true
      controller.pause()
      this.#sink.onDrain(() => this.#resume(controller))
    }
  }

  #resume(controller: Dispatcher.DispatchController): void {
    if (!this.#paused || this.#ended) return
    this.#paused = false
    this.#deadline?.refresh()
    // Deferred, because undici's shared parser is not re-entrant and may be inside a callback of another connection.
    queueMicrotask(() => {
      if (!this.#paused && !this.#ended) controller.resume()
    })
  }

  /** Refreshes the timer if the timeout is unchanged, because this costs less than a new timer. */
  #setDeadline(milliseconds: number): void {
    if (this.#deadline !== undefined && this.#timeoutMs === milliseconds) {
      this.#deadline.refresh()
      return
    }
    this.#clearDeadline()
    this.#timeoutMs = milliseconds
    this.#deadline = setTimeout(expire, clampTimeout(milliseconds), this)
  }

  #clearDeadline(): void {
    clearTimeout(this.#deadline)
    this.#deadline = undefined
  }

  #failBusy(): void {
    const { connectionsPerOrigin } = this.#options
    const whose = this.#pool.isCallerAtLimit(this.#request.origin, this.caller) ? "caller" : "everybody"
    const limit = whose === "caller" ? FairShare.maximum(connectionsPerOrigin) : connectionsPerOrigin
    const error = new UpstreamError({ phase: "connect", reason: "busy", limit, whose })
    this.#end(error, Exit.fail(error))
  }

  #fail(reason: UpstreamReason, cause?: Error): void {
    if (this.#ended) return
    const error = new UpstreamError({ phase: this.#phase, reason, ...(cause === undefined ? {} : { cause }) })
    this.#end(error, Exit.fail(error))
  }

  /** A `reason` makes the connection close instead of being reused. `done` is called only with a `result`. */
  #end(reason: Error | undefined, result: Exit.Exit<void, UpstreamError> | undefined): void {
    this.#ended = true
    this.#clearDeadline()
    const connection = this.#connection
    if (connection === undefined) this.#pool.cancelWait(this.#request.origin, this)
    // Deferred, because `done` may start another request. This must not happen inside a callback of undici's parser.
    queueMicrotask(() => {
      this.#upload?.destroy()
      if (connection !== undefined && reason === undefined) this.#pool.release(connection)
      if (connection !== undefined && reason !== undefined) this.#pool.discard(connection, reason)
      if (result !== undefined) this.#done(result)
    })
  }
}

/** Chunks below `smallChunkBytes` are merged until they reach `flushBytes` or the socket read ends. */
const smallChunkBytes = 64
const flushBytes = 16_384

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const expire = (running: RunningExchange): void => running.onDeadline()

/** Node's `setTimeout` would turn a longer timeout into 1 ms. */
const clampTimeout = (milliseconds: number): number => Math.min(milliseconds, 2_147_483_647)

const cancelled = new Error("cancelled")
const thrownBySink = new Error("the receiver of the response failed")

/** For HTTP/1.1, undici passes an array of alternating names and values. Its type also allows other forms. */
const headerTexts = (raw: Dispatcher.DispatchController["rawHeaders"]): ReadonlyArray<string> => {
  if (!Array.isArray(raw)) return []
  const headers = new Array<string>(raw.length)
  for (let i = 0; i < raw.length; i++) {
    const bytes = raw[i]!
    headers[i] = typeof bytes === "string" ? bytes : bytes.toString("latin1")
  }
  return headers
}
