import type { Server } from "node:http"
import type { Socket } from "node:net"
import * as FairShare from "../../src/services/FairShare.ts"
import { FairQueue } from "./FairQueue.ts"
import type { OpenConnections } from "./OpenConnections.ts"

/** Connections that begin in one turn of the event loop: at first, and at least where turns are long. */
const maxPerTick = 32
const minPerTick = 1
/** A turn that takes longer makes the next one take fewer connections. */
const longTickMs = 10
/** After a long turn no connection begins for so many times as long: others have at least that share of the time. */
const pauseFactor = 1
const maxPauseMs = 250
const maxWaiting = 4_096

/**
 * New connections, of which each turn of the event loop takes only some: the first 64 KiB of one may take it 10 ms to
 * parse, and hundreds of them at once would keep requests on connections that are there already waiting for seconds.
 * Where more come than turns take, addresses take turns, and each has its share of the places to wait in. Nothing is
 * read from a connection that waits. A connection whose request was refused waits for its next turn in the same way.
 */
export class AcceptQueue {
  readonly #begin: (socket: Socket) => void
  readonly #waiting = new FairQueue<() => void>()
  #perTick = maxPerTick
  #begun = 0
  /** Begun in the turn before: the first bytes of those cost time in this turn. */
  #begunLastTick = 0
  #tickStartedAt: number | undefined
  #isPaused = false

  constructor(begin: (socket: Socket) => void) {
    this.#begin = begin
  }

  add(socket: Socket): void {
    this.#beginOrWait(socket, () => this.#begin(socket))
  }

  /** The connection's next request waits for its turn. To be called when nothing else is under way on it. */
  requeue(socket: Socket): void {
    if (this.#canBegin()) {
      this.#countBegun()
      return
    }
    socket.pause()
    this.#beginOrWait(socket, () => socket.resume())
  }

  #beginOrWait(socket: Socket, begin: () => void): void {
    if (this.#canBegin()) {
      this.#countBegun()
      begin()
      return
    }
    const caller = FairShare.callerOfAddress(socket.remoteAddress ?? "")
    const callerWaiting = this.#waiting.sizeOf(caller)
    if (
      this.#waiting.size >= maxWaiting ||
      callerWaiting >= FairShare.allowance(maxWaiting, this.#waiting.size - callerWaiting)
    ) {
      socket.destroy()
      return
    }
    this.#waiting.add(caller, () => {
      if (socket.destroyed) return
      this.#begun++
      begin()
    })
    this.#scheduleTick()
  }

  #canBegin(): boolean {
    return !this.#isPaused && this.#waiting.size === 0 && this.#begun < this.#perTick
  }

  #countBegun(): void {
    this.#begun++
    this.#scheduleTick()
  }

  #scheduleTick(): void {
    if (this.#tickStartedAt !== undefined || this.#isPaused) return
    this.#tickStartedAt = performance.now()
    setImmediate(() => this.#onTick())
  }

  #onTick(): void {
    const tookMs = performance.now() - (this.#tickStartedAt ?? 0)
    const begun = this.#begunLastTick + this.#begun
    this.#tickStartedAt = undefined
    this.#begunLastTick = this.#begun
    this.#begun = 0
    if (begun > 0 && tookMs > longTickMs) {
      this.#perTick = Math.max(minPerTick, this.#perTick >> 1)
      this.#pause(Math.min(maxPauseMs, tookMs * pauseFactor))
      return
    }
    // a turn that could have taken more says nothing of how long it would have been
    if (begun >= this.#perTick) this.#perTick = Math.min(maxPerTick, this.#perTick + 1)
    this.#beginWaiting()
  }

  #pause(ms: number): void {
    this.#isPaused = true
    setTimeout(() => {
      this.#isPaused = false
      this.#begunLastTick = 0
      this.#beginWaiting()
    }, ms)
  }

  #beginWaiting(): void {
    if (this.#begunLastTick === 0 && this.#waiting.size === 0) return
    this.#scheduleTick()
    while (this.#waiting.size > 0 && this.#begun < this.#perTick) this.#waiting.take()?.()
  }
}

/**
 * `server` begins its connections as the `Arrivals` have it that this returns; those that `open` has no place for end
 * with `refusal`.
 */
export const acceptThrough = (server: Server, open: OpenConnections, refusalText: () => string): AcceptQueue => {
  const nodeListeners = server.listeners("connection")
  const acceptQueue = new AcceptQueue((socket) => {
    // it waited, and a closing server would wait for it
    if (!server.listening) {
      socket.destroy()
      return
    }
    for (const listener of nodeListeners) Reflect.apply(listener, server, [socket])
    socket.resume()
  })
  // as `net.createServer` takes it, and `http.createServer` does not: nothing is read before `resume`
  Object.assign(server, { pauseOnConnect: true })
  server.removeAllListeners("connection").on("connection", (socket) => {
    if (open.admits(socket)) acceptQueue.add(socket)
    else refuse(socket, refusalText())
  })
  return acceptQueue
}

const refuse = (socket: Socket, refusal: string): void => {
  socket.on("error", () => {})
  socket.end(refusal, () => socket.destroy())
}
