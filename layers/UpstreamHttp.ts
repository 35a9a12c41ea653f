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
  /** The longest wait for a connection, unless the request itself has a shorter deadline. */
  readonly queueTimeoutMs: number
  /** The time that running exchanges may still take when the layer closes. */
  readonly drainTimeout: Duration.Input
  readonly addressPolicy: AddressPolicy
  /** Default: the name look-ups that the whole process shares. */
  readonly nameLookups?: NameLookups
}

const defaults: Options = {
  // One caller may use a quarter of the connections, which allows 1,024 streams even if all requests have one key.
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
 * An HTTP/1.1 client over undici's dispatch handlers. It forwards bytes unchanged, follows no redirect and decompresses
 * nothing. Headers keep their case, order and duplicates.
 *
 * Not supported: HTTP/2 (which lower-cases header names), trailers, and responses that begin with an unrequested `100
 * Continue` (undici closes the connection, which is reported as `malformed`).
 *
 * The connections to an origin are limited, and each caller may use a quarter of them. Further exchanges wait in a
 * bounded queue. They fail as `busy` if it is full or the wait takes too long, so that clients can retry or go
 * elsewhere.
 *
 * Nothing is retried, because the server may act on a request as soon as it has received bytes. Only undici itself
 * replaces a kept-alive connection that closes before anything was written.
 */
export const layer: Layer.Layer<Upstream> = layerWith({})

/** One request and its response, with callbacks because every proxied byte passes here. */
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
  // A native timer, because a sleeping fiber that restarts with every chunk costs more than copying the bytes.
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
    // Connecting and receiving the headers each have this time. With an upload, `#withoutDeadline` starts the deadline.
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

  /** Merges the small chunks of one read, because a chunk of one byte costs the receiver as much as a large one. */
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
    if (pending !== undefined && !this.#ended) this.#applyFlow(controller, this.#sink.chunk(pending.take()))
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#flushSmall(controller)
    // If the end of the connection ends a response, undici also takes a reset for its end.
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

  /** While the client is sending its body, the upstream is not late. The client has a deadline of its own. */
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
    // undici's parser is shared and not re-entrant, and this code may run inside a callback of another connection.
    queueMicrotask(() => {
      if (!this.#paused && !this.#ended) controller.resume()
    })
  }

  /** The timeouts of headers and of silence are usually equal, so one timer is refreshed for both. */
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

  /** With a `reason`, the connection is closed instead of reused. Without a `result`, `done` is not called. */
  #end(reason: Error | undefined, result: Exit.Exit<void, UpstreamError> | undefined): void {
    this.#ended = true
    this.#clearDeadline()
    const connection = this.#connection
    if (connection === undefined) this.#pool.cancelWait(this.#request.origin, this)
    // `done` may start another exchange, which must not happen inside a callback of the parser.
    queueMicrotask(() => {
      this.#upload?.destroy()
      if (connection !== undefined && reason === undefined) this.#pool.release(connection)
      if (connection !== undefined && reason !== undefined) this.#pool.discard(connection, reason)
      if (result !== undefined) this.#done(result)
    })
  }
}

/** Chunks below `smallChunkBytes` are merged, and passed on when they reach `flushBytes`. */
const smallChunkBytes = 64
const flushBytes = 16_384

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const expire = (running: RunningExchange): void => running.onDeadline()

/** Node's `setTimeout` would turn a longer timeout into 1 ms. */
const clampTimeout = (milliseconds: number): number => Math.min(milliseconds, 2_147_483_647)

const cancelled = new Error("cancelled")

/** With HTTP/1.1 this is a list of names and values. undici's type also allows the forms of other protocols. */
const headerTexts = (raw: Dispatcher.DispatchController["rawHeaders"]): ReadonlyArray<string> => {
  if (!Array.isArray(raw)) return []
  const headers = new Array<string>(raw.length)
  for (let i = 0; i < raw.length; i++) {
    const bytes = raw[i]!
    headers[i] = typeof bytes === "string" ? bytes : bytes.toString("latin1")
  }
  return headers
}
