import type { Socket } from "node:net"
import * as Share from "../../src/services/Share.ts"

export interface Most {
  readonly inAll: number
  readonly perAddress: number
}

/** Connections that are open at a listener: so many in all, and from one address. */
export class OpenConnections {
  readonly #most: Most
  readonly #held = new Map<string, number>()
  #size = 0

  constructor(most: Most) {
    this.#most = most
  }

  /** Counts the connection until it closes, unless there is no place for it. */
  admits(socket: Socket): boolean {
    const caller = Share.callerAt(socket.remoteAddress ?? "")
    const theirs = this.#held.get(caller) ?? 0
    if (this.#size >= this.#most.inAll || theirs >= this.#most.perAddress) return false
    this.#size++
    this.#held.set(caller, theirs + 1)
    socket.once("close", () => this.#closed(caller))
    return true
  }

  #closed(caller: string): void {
    this.#size--
    const left = (this.#held.get(caller) ?? 0) - 1
    if (left > 0) this.#held.set(caller, left)
    else this.#held.delete(caller)
  }
}
