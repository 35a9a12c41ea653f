import type { Server } from "node:http"
import type { Socket } from "node:net"
import * as Share from "../../src/services/Share.ts"

/** Connections that begin in one turn of the event loop: at first, and at least where turns are long. */
const mostPerTurn = 32
const leastPerTurn = 2
/** A turn that takes longer makes the next one take fewer connections. */
const longTurnMs = 10
const mostWaiting = 4_096

/**
 * New connections, of which each turn of the event loop takes only some: the first 64 KiB of one may take it 10 ms to
 * parse, and hundreds of them at once would keep requests on connections that are there already waiting for seconds.
 * Where more come than turns take, addresses take turns, and each has a quarter of the places to wait in. Nothing is
 * read from a connection that waits.
 */
export class Arrivals {
  readonly #begin: (socket: Socket) => void
  readonly #waiting = new Map<string, Array<Socket>>()
  #waits = 0
  #most = mostPerTurn
  #begun = 0
  #turnBegan: number | undefined

  constructor(begin: (socket: Socket) => void) {
    this.#begin = begin
  }

  add(socket: Socket): void {
    if (this.#turnBegan === undefined) this.#nextTurn()
    if (this.#waits === 0 && this.#begun < this.#most) {
      this.#begun++
      this.#begin(socket)
      return
    }
    const caller = Share.callerAt(socket.remoteAddress ?? "")
    const theirs = this.#waiting.get(caller) ?? []
    if (this.#waits >= mostWaiting || theirs.length >= Share.of(mostWaiting)) {
      socket.destroy()
      return
    }
    theirs.push(socket)
    this.#waits++
    this.#waiting.set(caller, theirs)
  }

  #nextTurn(): void {
    this.#turnBegan = performance.now()
    setImmediate(() => this.#turn())
  }

  #turn(): void {
    const tookMs = performance.now() - (this.#turnBegan ?? 0)
    this.#most = tookMs > longTurnMs ? Math.max(leastPerTurn, this.#most >> 1) : Math.min(mostPerTurn, this.#most + 1)
    const idle = this.#begun === 0 && this.#waits === 0
    this.#begun = 0
    while (this.#waits > 0 && this.#begun < this.#most) {
      const socket = this.#take()
      if (socket === undefined || socket.destroyed) continue
      this.#begun++
      this.#begin(socket)
    }
    if (idle && this.#most === mostPerTurn) this.#turnBegan = undefined
    else this.#nextTurn()
  }

  #take(): Socket | undefined {
    for (const [caller, theirs] of this.#waiting) {
      const socket = theirs.shift()
      // behind the others
      this.#waiting.delete(caller)
      if (theirs.length > 0) this.#waiting.set(caller, theirs)
      this.#waits--
      return socket
    }
    return undefined
  }
}

/** `server` begins its connections as `Arrivals` has it. */
export const inTurns = (server: Server): Server => {
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
  return server.removeAllListeners("connection").on("connection", (socket) => arrivals.add(socket))
}
