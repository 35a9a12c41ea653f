import type { IncomingMessage, ServerResponse } from "node:http"
import { Result } from "effect"
import { type BodyPace, defaultPace, nextTimeout } from "../../src/gateway/request/BodyPace.ts"
import type { BodyFailure, Wire } from "../../src/gateway/request/Wire.ts"
import * as Headers from "../../src/http/Headers.ts"
import { CollectedBytes } from "../../src/services/CollectedBytes.ts"

const tooLarge: BodyFailure = { _tag: "TooLarge" }
const cut: BodyFailure = { _tag: "Cut" }

export interface Options {
  readonly pace?: BodyPace
  /** Called before a response begins if the request's body has not arrived completely. */
  readonly onEarlyResponse?: (outgoing: ServerResponse) => void
}

export const make = (incoming: IncomingMessage, outgoing: ServerResponse, options: Options = {}): Wire =>
  new NodeWire(incoming, outgoing, options)

/** The class uses callbacks for speed, because every byte of every request passes through it. */
class NodeWire implements Wire {
  readonly method: string
  readonly target: string
  readonly headers: Headers.RawHeaders
  readonly #incoming: IncomingMessage
  readonly #outgoing: ServerResponse
  readonly #pace: BodyPace
  readonly #onEarlyResponse: Options["onEarlyResponse"]
  #isLengthKnown = true

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, { onEarlyResponse, pace = defaultPace }: Options) {
    this.method = incoming.method ?? "GET"
    this.target = incoming.url ?? "/"
    this.headers = incoming.rawHeaders
    this.#incoming = incoming
    this.#outgoing = outgoing
    this.#pace = pace
    this.#onEarlyResponse = onEarlyResponse
  }

  get address(): string {
    return this.#incoming.socket.remoteAddress ?? "unknown"
  }

  get connection(): object {
    return this.#incoming.socket
  }

  readBody(
    { lease, maxBytes, withinMs }: Parameters<Wire["readBody"]>[0],
    done: Parameters<Wire["readBody"]>[1]
  ): void {
    const incoming = this.#incoming
    if (declaredLength(incoming) > maxBytes) {
      done(Result.fail(tooLarge))
      return
    }
    const collected = new CollectedBytes()
    let isDone = false
    const fail = (failure: BodyFailure) => {
      isDone = true
      clearTimeout(timer)
      incoming.off("data", onData).off("end", onEnd).off("close", onCut)
      collected.clear()
      done(Result.fail(failure))
    }
    const onData = (chunk: Buffer) => {
      if (collected.length + chunk.length > maxBytes) return fail(tooLarge)
      const whose = lease.grow(chunk.length)
      if (whose !== undefined) return fail({ _tag: "NoRoom", whose })
      collected.add(chunk)
      if (timer !== undefined) lastAt = performance.now()
    }
    // The data listener stays, because removing it would cost more than the rest of this function.
    const onEnd = () => {
      isDone = true
      clearTimeout(timer)
      incoming.off("close", onCut)
      // `take` empties the buffer. The listeners would otherwise keep the bytes in memory.
      done(Result.succeed(collected.take()))
    }
    const onCut = () => fail(cut)
    let timer: NodeJS.Timeout | undefined
    let startedAt = 0
    let lastAt = 0
    const checkPace = () => {
      const now = performance.now()
      const bytes = collected.length
      const { by, ms } = nextTimeout(this.#pace, { bytes, silentMs: now - lastAt, waitedMs: now - startedAt, withinMs })
      if (ms <= 0) fail({ _tag: "TooSlow", by })
      else timer = setTimeout(checkPace, Math.ceil(ms))
    }
    afterThisTick(() => {
      if (isDone) return
      startedAt = performance.now()
      lastAt = startedAt
      timer = setTimeout(checkPace, Math.min(withinMs, this.#pace.idleMs, this.#pace.graceMs))
    })
    // If a client aborts, Node emits "close". It emits "error" only if there is a listener.
    incoming.on("data", onData).on("end", onEnd).on("close", onCut)
    sendContinue(incoming, this.#outgoing)
  }

  async *streamBody({ idleMs, maxBytes, onFailure }: Parameters<Wire["streamBody"]>[0]): AsyncGenerator<Uint8Array> {
    const incoming = this.#incoming
    const refuse = (failure: BodyFailure): Error => {
      onFailure(failure)
      return new Error(`the request body was refused: ${failure._tag}`)
    }
    if (declaredLength(incoming) > maxBytes) throw refuse(tooLarge)
    sendContinue(incoming, this.#outgoing)
    // The connection must stay open after the body, because the response follows.
    const chunks: AsyncIterator<Buffer> = incoming.iterator({ destroyOnReturn: false })
    let size = 0
    /** The time that this program spent waiting for the client. */
    let waitedMs = 0
    try {
      for (;;) {
        const limit = nextTimeout(this.#pace, { bytes: size, silentMs: 0, waitedMs, withinMs: waitedMs + idleMs })
        const askedAt = performance.now()
        const next = await withTimeout(Math.max(limit.ms, 0), chunks.next()).catch(() => {
          throw refuse(cut)
        })
        waitedMs += performance.now() - askedAt
        if (next === undefined) throw refuse({ _tag: "TooSlow", by: limit.by })
        if (next.done === true) return
        size += next.value.length
        if (size > maxBytes) throw refuse(tooLarge)
        yield next.value
      }
    } finally {
      // `resume` discards the rest of the body. This is not awaited, because `return` may wait for a chunk.
      void chunks.return?.().then(() => incoming.resume())
    }
  }

  head(status: number, headers: Headers.RawHeaders): void {
    this.#begin(status, [...headers])
    // A response without a content-length may take long, so its headers are sent at once. With a content-length, one
    // write sends the headers and the first bytes.
    this.#isLengthKnown = Headers.get(headers, "content-length") !== undefined
    if (!this.#isLengthKnown) this.#outgoing.flushHeaders()
  }

  write(bytes: Uint8Array): boolean {
    return this.#outgoing.write(bytes)
  }

  onDrain(resume: () => void, withinMs: number): void {
    const outgoing = this.#outgoing
    const stalled = setTimeout(() => this.#disconnect(), withinMs)
    const onClose = () => clearTimeout(stalled)
    outgoing.once("close", onClose)
    outgoing.once("drain", () => {
      clearTimeout(stalled)
      outgoing.off("close", onClose)
      resume()
    })
  }

  end(last: Uint8Array | undefined): boolean {
    const outgoing = this.#outgoing
    if (last === undefined) outgoing.end()
    else if (last.length <= smallBytes && Buffer.isBuffer(last)) outgoing.end(last.toString("latin1"), "latin1")
    else if (last.length <= sliceBytes) outgoing.end(last)
    else this.#endInSlices(last)
    return outgoing.writableLength === 0 || this.#incoming.socket.destroyed
  }

  /** Each slice is written when the client has taken the one before. `onFlushed` thereby sees slow progress. */
  #endInSlices(bytes: Uint8Array): void {
    const outgoing = this.#outgoing
    let from = 0
    const send = () => {
      while (bytes.length - from > sliceBytes) {
        const slice = bytes.subarray(from, from + sliceBytes)
        from += sliceBytes
        if (!outgoing.write(slice)) return
      }
      outgoing.off("drain", send)
      outgoing.end(bytes.subarray(from))
    }
    outgoing.on("drain", send)
    send()
  }

  onFlushed(done: () => void, withinMs: number): void {
    const outgoing = this.#outgoing
    const { socket } = this.#incoming
    const stalled = setTimeout(() => {
      // A pipelined response without a socket still waits for the responses before it.
      if (outgoing.socket === null) stalled.refresh()
      else this.#disconnect()
    }, withinMs)
    const onProgress = () => stalled.refresh()
    const onOver = () => {
      clearTimeout(stalled)
      outgoing.off("drain", onProgress).off("finish", onOver)
      socket.off("close", onOver)
      done()
    }
    outgoing.on("drain", onProgress).once("finish", onOver)
    // Node does not report to a pipelined response that its connection has closed.
    socket.once("close", onOver)
  }

  /** Closes the connection, because Node cannot end a pipelined response that has not begun. */
  #disconnect(): void {
    const { socket } = this.#incoming
    if (this.#endsWithConnection) socket.resetAndDestroy()
    else socket.destroy()
  }

  abort(): void {
    if (this.#endsWithConnection) this.#incoming.socket.resetAndDestroy()
    else this.#outgoing.destroy()
  }

  /** A response without a length or chunks (HTTP/1.0) ends when the connection closes. */
  get #endsWithConnection(): boolean {
    return !this.#isLengthKnown && !this.#outgoing.chunkedEncoding
  }

  respond(status: number, headers: Headers.RawHeaders, body: string): void {
    if (this.#outgoing.headersSent) {
      this.abort()
      return
    }
    this.#begin(status, [...headers, "content-length", String(Buffer.byteLength(body))])
    this.#outgoing.end(body)
  }

  #begin(status: number, headers: Array<string>): void {
    if (!this.#incoming.complete) this.#onEarlyResponse?.(this.#outgoing)
    this.#outgoing.writeHead(status, headers)
  }
}

/** Node sends a string in one write with the headers, but not a buffer. This saves 1 of 10 µs per response. */
const smallBytes = 4_096

/** In bytes. A chunk of a streamed response is rarely longer. */
const sliceBytes = 65_536

const afterTickTasks: Array<() => void> = []

/** Runs `run` after the current tick of the event loop. All callbacks of a tick share one `setImmediate`. */
const afterThisTick = (run: () => void): void => {
  if (afterTickTasks.push(run) === 1) setImmediate(() => afterTickTasks.splice(0).forEach((run) => void run()))
}

const declaredLength = (incoming: IncomingMessage): number => Number(incoming.headers["content-length"] ?? 0)

/** An HTTP/1.0 client would take `100 Continue` for the final response. */
const sendContinue = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
  const { complete, headers, httpVersion } = incoming
  if (headers.expect?.toLowerCase() === "100-continue" && !complete && httpVersion !== "1.0") outgoing.writeContinue()
}

const withTimeout = async <A>(ms: number, promise: Promise<A>): Promise<A | undefined> => {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms)
  })
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer))
}
