import type { Server } from "node:http"
import type { Socket } from "node:net"
import * as FairShare from "../../src/services/FairShare.ts"
import { FairQueue, type Waiter } from "./FairQueue.ts"
import type { OpenConnections } from "./OpenConnections.ts"

/** Connections that may begin in one tick of the event loop: initially, and at least while ticks are long. */
const maxPerTick = 32
const minPerTick = 1
/** A longer tick makes the next one begin fewer connections. */
const longTickMs = 10
/** After a long tick, no connection begins for the same time again: other work gets at least half of it. */
const pauseFactor = 1
const maxPauseMs = 250
const maxWaiting = 4_096

interface WaitingConnection extends Waiter {
  readonly begin: () => void
}

/**
 * New connections, of which each tick of the event loop begins only some. Parsing the first 64 KiB of one connection
 * may take 10 ms, so hundreds at once would delay requests on open connections by seconds. When more arrive than ticks
 * begin, client addresses take turns, and each address has a share of the waiting places. Nothing is read from a
 * waiting connection. A connection whose request was refused queues in the same way.
 */
export class AcceptQueue {
  readonly #begin: (socket: Socket) => void
  readonly #waiting = new FairQueue<WaitingConnection>(maxWaiting)
  #perTick = maxPerTick
  #begun = 0
  /** The first bytes of these connections take their time in the current tick. */
  #begunLastTick = 0
  #tickStartedAt: number | undefined
  #isPaused = false

  constructor(begin: (socket: Socket) => void) {
    this.#begin = begin
  }

  add(socket: Socket): void {
    this.#beginOrWait(socket, () => this.#begin(socket))
  }

  /** Queues the connection until its next request may be read. The connection must be idle. */
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
    const beginLater = () => {
      if (socket.destroyed) return
      this.#begun++
      begin()
    }
    if (this.#waiting.add({ caller, begin: beginLater }) === "full") socket.destroy()
    else this.#scheduleTick()
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
    while (this.#waiting.size > 0 && this.#begun < this.#perTick) this.#waiting.next()?.begin()
  }
}

/** Lets `server` begin its connections through the returned queue; connections beyond the limits get `refusalText`. */
export const acceptThrough = (server: Server, open: OpenConnections, refusalText: () => string): AcceptQueue => {
  const nodeListeners = server.listeners("connection")
  const acceptQueue = new AcceptQueue((socket) => {
    // The connection waited, and would now delay the server's close.
    if (!server.listening) {
      socket.destroy()
      return
    }
    for (const listener of nodeListeners) Reflect.apply(listener, server, [socket])
    socket.resume()
  })
  // `net.createServer` has this option and `http.createServer` does not: nothing is read before `resume`.
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
