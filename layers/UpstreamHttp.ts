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
  /** How long an exchange may wait in line for its connection; a shorter deadline of its own comes first. */
  readonly queueTimeoutMs: number
  /** How long running exchanges may go on when the layer closes. */
  readonly drainTimeout: Duration.Input
  readonly addressPolicy: AddressPolicy
  /** Default: the process's own. */
  readonly nameLookups?: NameLookups
}

const defaults: Options = {
  // a caller has a quarter: so many streams are open at once where all requests come with one key
  connectionsPerOrigin: 4_096,
  waitingPerOrigin: 4_096,
  queueTimeoutMs: 5_000,
  idleConnections: 1_024,
  drainTimeout: "30 seconds",
  addressPolicy: allowPrivateAddresses
}

/** The exchanges of one pool, which closes with the scope. */
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
 * `Upstream` over HTTP/1.1, on undici's dispatch handlers. Bytes go from the socket to the sink as they are: nothing is
 * decompressed, followed or normalised, and a header keeps its case, its place and its twins.
 *
 * Not supported: HTTP/2 (it would fold header names), trailers, and an answer that begins with a `100 Continue` which
 * nobody asked for (undici hangs up; reported as `malformed`).
 *
 * An origin has so many connections, and each caller a quarter of them. Exchanges beyond them wait in a line that is bounded in number and in time, and
 * then fail as `busy`: a caller who is told can go elsewhere or come again, one who hears nothing cannot.
 *
 * Nothing is retried. A kept-alive connection that dies before the request is written is replaced by undici itself;
 * once the kernel has taken bytes, nobody can prove that the server has not acted on them.
 */
export const layer: Layer.Layer<Upstream> = layerWith({})

/**
 * One exchange, from the wait for a connection to the last byte. An object of callbacks, because this is the hot path.
 */
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
  // Native timers: a sleeping fiber for each exchange, re-armed on each chunk, costs more than the copying does.
  #deadline: NodeJS.Timeout | undefined
  #timeoutMs = 0
  /** Small chunks that came in this turn of the event loop. */
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
    // as long as connecting may take, and on top of it; an upload starts the time by itself
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

  /** Until all that was read at once is parsed: a chunk of one byte would cost its sink as much as a large one. */
  #gatherSmall(controller: Dispatcher.DispatchController, bytes: Uint8Array): void {
    if (this.#smallChunks === undefined) {
      this.#smallChunks = new CollectedBytes()
      queueMicrotask(() => this.#flushSmall(controller))
    }
    this.#smallChunks.add(asBuffer(bytes))
    if (this.#smallChunks.length >= flushBytes) this.#flushSmall(controller)
  }

  #flushSmall(controller: Dispatcher.DispatchController): void {
    const gathered = this.#smallChunks
    this.#smallChunks = undefined
    if (gathered !== undefined && !this.#ended) this.#applyFlow(controller, this.#sink.chunk(gathered.take()))
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#flushSmall(controller)
    // When the end of the connection is the end of the answer, undici takes a reset for it.
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

  /** While the next bytes of the request are awaited, the upstream is not late: their source has a clock of its own. */
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
    // The parser is shared and not re-entrant; a sink may drain within a callback of another connection.
    queueMicrotask(() => {
      if (!this.#paused && !this.#ended) controller.resume()
    })
  }

  /**
   * From now on; what was due before is no more. Routes give headers and silence the same time: one timer serves both.
   */
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

  /** `reason`: why the connection cannot serve another exchange. `result`: after `cancel` nobody is told one. */
  #end(reason: Error | undefined, result: Exit.Exit<void, UpstreamError> | undefined): void {
    this.#ended = true
    this.#clearDeadline()
    const connection = this.#connection
    if (connection === undefined) this.#pool.cancelWait(this.#request.origin, this)
    // Not within the parser's callback: what runs next may start another exchange.
    queueMicrotask(() => {
      this.#upload?.destroy()
      if (connection !== undefined && reason === undefined) this.#pool.release(connection)
      if (connection !== undefined && reason !== undefined) this.#pool.discard(connection, reason)
      if (result !== undefined) this.#done(result)
    })
  }
}

/** Chunks below this are gathered, and handed on when there is so much of them. */
const smallChunkBytes = 64
const flushBytes = 16_384

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const expire = (running: RunningExchange): void => running.onDeadline()

/** `setTimeout` takes anything longer for 1 ms. */
const clampTimeout = (milliseconds: number): number => Math.min(milliseconds, 2_147_483_647)

const cancelled = new Error("cancelled")

/** HTTP/1.1 has its head as bytes in name, value order; undici's type also allows the shapes of other protocols. */
const headerTexts = (raw: Dispatcher.DispatchController["rawHeaders"]): ReadonlyArray<string> => {
  if (!Array.isArray(raw)) return []
  const headers = new Array<string>(raw.length)
  for (let i = 0; i < raw.length; i++) {
    const bytes = raw[i]!
    headers[i] = typeof bytes === "string" ? bytes : bytes.toString("latin1")
  }
  return headers
}
