import type { Server } from "node:http"
import type { Socket } from "node:net"
import * as Share from "../../src/services/Share.ts"
import type { OpenConnections } from "./OpenConnections.ts"
import { Turns } from "./Turns.ts"

/** Connections that begin in one turn of the event loop: at first, and at least where turns are long. */
const mostPerTurn = 32
const leastPerTurn = 1
/** A turn that takes longer makes the next one take fewer connections. */
const longTurnMs = 10
/** After a long turn no connection begins for so many times as long: others have at least that share of the time. */
const restFactor = 1
const longestRestMs = 250
const mostWaiting = 4_096

/**
 * New connections, of which each turn of the event loop takes only some: the first 64 KiB of one may take it 10 ms to
 * parse, and hundreds of them at once would keep requests on connections that are there already waiting for seconds.
 * Where more come than turns take, addresses take turns, and each has its share of the places to wait in. Nothing is
 * read from a connection that waits. A connection whose request was refused waits for its next turn in the same way.
 */
export class Arrivals {
  readonly #begin: (socket: Socket) => void
  readonly #waiting = new Turns<() => void>()
  #most = mostPerTurn
  #begun = 0
  /** Begun in the turn before: the first bytes of those cost time in this turn. */
  #begunBefore = 0
  #turnBegan: number | undefined
  #rests = false

  constructor(begin: (socket: Socket) => void) {
    this.#begin = begin
  }

  add(socket: Socket): void {
    this.#inTurn(socket, () => this.#begin(socket))
  }

  /** The connection's next request waits for its turn. To be called when nothing else is under way on it. */
  again(socket: Socket): void {
    if (this.#hasTurn()) {
      this.#count()
      return
    }
    socket.pause()
    this.#inTurn(socket, () => socket.resume())
  }

  #inTurn(socket: Socket, begin: () => void): void {
    if (this.#hasTurn()) {
      this.#count()
      begin()
      return
    }
    const caller = Share.callerAt(socket.remoteAddress ?? "")
    const theirs = this.#waiting.of(caller)
    if (this.#waiting.size >= mostWaiting || theirs >= Share.beside(mostWaiting, this.#waiting.size - theirs)) {
      socket.destroy()
      return
    }
    this.#waiting.add(caller, () => {
      if (socket.destroyed) return
      this.#begun++
      begin()
    })
    this.#nextTurn()
  }

  #hasTurn(): boolean {
    return !this.#rests && this.#waiting.size === 0 && this.#begun < this.#most
  }

  #count(): void {
    this.#begun++
    this.#nextTurn()
  }

  #nextTurn(): void {
    if (this.#turnBegan !== undefined || this.#rests) return
    this.#turnBegan = performance.now()
    setImmediate(() => this.#turn())
  }

  #turn(): void {
    const tookMs = performance.now() - (this.#turnBegan ?? 0)
    const begun = this.#begunBefore + this.#begun
    this.#turnBegan = undefined
    this.#begunBefore = this.#begun
    this.#begun = 0
    if (begun > 0 && tookMs > longTurnMs) {
      this.#most = Math.max(leastPerTurn, this.#most >> 1)
      this.#rest(Math.min(longestRestMs, tookMs * restFactor))
      return
    }
    // a turn that could have taken more says nothing of how long it would have been
    if (begun >= this.#most) this.#most = Math.min(mostPerTurn, this.#most + 1)
    this.#beginWaiting()
  }

  #rest(ms: number): void {
    this.#rests = true
    setTimeout(() => {
      this.#rests = false
      this.#begunBefore = 0
      this.#beginWaiting()
    }, ms)
  }

  #beginWaiting(): void {
    if (this.#begunBefore === 0 && this.#waiting.size === 0) return
    this.#nextTurn()
    while (this.#waiting.size > 0 && this.#begun < this.#most) this.#waiting.take()?.()
  }
}

/**
 * `server` begins its connections as the `Arrivals` have it that this returns; those that `open` has no place for end
 * with `refusal`.
 */
export const inTurns = (server: Server, open: OpenConnections, refusal: () => string): Arrivals => {
  const nodes = server.listeners("connection")
  const arrivals = new Arrivals((socket) => {
    // it waited, and a closing server would wait for it
    if (!server.listening) {
      socket.destroy()
      return
    }
    for (const listener of nodes) Reflect.apply(listener, server, [socket])
    socket.resume()
  })
  // as `net.createServer` takes it, and `http.createServer` does not: nothing is read before `resume`
  Object.assign(server, { pauseOnConnect: true })
  server.removeAllListeners("connection").on("connection", (socket) => {
    if (open.admits(socket)) arrivals.add(socket)
    else refuse(socket, refusal())
  })
  return arrivals
}

const refuse = (socket: Socket, refusal: string): void => {
  socket.on("error", () => {})
  socket.end(refusal, () => socket.destroy())
}
