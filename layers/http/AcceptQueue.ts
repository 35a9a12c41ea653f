import type { Server } from "node:http"
import type { Socket } from "node:net"
import * as FairShare from "../../src/services/FairShare.ts"
import { FairQueue, type Waiter } from "./FairQueue.ts"
import type { OpenConnections } from "./OpenConnections.ts"
import { closesIdleConnections } from "./ServerClose.ts"

/** The number of connections that may start in one tick of the event loop. It falls while ticks are long. */
const maxPerTick = 32
const minPerTick = 1
/** If a tick takes longer than this, fewer connections may start in the next ticks. */
const longTickMs = 10
/** After a long tick, no connection starts for an equally long time. Other work thus gets half of the time. */
const pauseFactor = 1
const maxPauseMs = 250
const maxWaiting = 4_096

interface WaitingConnection extends Waiter {
  readonly begin: () => void
}

/**
 * Limits how many new connections start in a tick of the event loop. Parsing the first 64 KiB of a connection can take
 * 10 ms. Hundreds of connections at once would delay all other requests by seconds. Further connections wait unread.
 * Client addresses take turns, and each may use only a share of the queue.
 */
export class AcceptQueue {
  readonly #begin: (socket: Socket) => void
  readonly #waiting = new FairQueue<WaitingConnection>(maxWaiting)
  #perTick = maxPerTick
  #begun = 0
  /** Counted because the first bytes of a connection are parsed in the tick after its start. */
  #begunLastTick = 0
  #tickStartedAt: number | undefined
  #isPaused = false

  constructor(begin: (socket: Socket) => void) {
    this.#begin = begin
  }

  add(socket: Socket): void {
    this.#beginOrWait(socket, () => this.#begin(socket))
  }

  /** Delays the next request of an idle connection. */
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

/** Makes new connections of `server` start through the returned queue. Refuses those beyond the limits of `open`. */
export const acceptThrough = (server: Server, open: OpenConnections, refusalText: () => string): AcceptQueue => {
  const nodeListeners = server.listeners("connection")
  const acceptQueue = new AcceptQueue((socket) => {
    // The server began to close while the connection waited. Starting the connection would delay the close.
    if (closesIdleConnections(server)) {
      socket.destroy()
      return
    }
    for (const listener of nodeListeners) Reflect.apply(listener, server, [socket])
    socket.resume()
  })
  // Nothing is read from a new connection before `resume`. `http.createServer` does not accept this option.
  Object.assign(server, { pauseOnConnect: true })
  server.removeAllListeners("connection").on("connection", (socket) => {
    if (open.admits(socket)) acceptQueue.add(socket)
    else refuse(socket, refusalText())
  })
  closeSilentAsIdle(server, open)
  return acceptQueue
}

/** Before version 26, Node does not count connections that have sent nothing as idle. They would delay a close. */
const closeSilentAsIdle = (server: Server, open: OpenConnections): void => {
  const closeIdle = server.closeIdleConnections.bind(server)
  server.closeIdleConnections = () => {
    closeIdle()
    open.closeSilent()
  }
}

const refuse = (socket: Socket, refusal: string): void => {
  socket.on("error", () => {})
  socket.end(refusal, () => socket.destroy())
}
