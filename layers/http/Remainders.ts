import type { IncomingMessage } from "node:http"
import * as Share from "../../src/services/Share.ts"
import { Turns } from "./Turns.ts"

const everyMs = 10
/** Each takes at most what Node reads ahead, 128 KiB: together about 50 MiB a second. */
const readsAtOnce = 4
const mostUnread = 2_048

/**
 * Reads the rest of bodies whose requests are answered already. A client that writes all of its body before it reads has
 * its answer only when somebody takes the rest; but reading on at full speed would let clients that are refused keep the
 * process busy with bytes that nobody wants. All remainders together are therefore read at a bounded rate, and addresses
 * take turns. One of which nothing has come takes no turn. Each address has its share of the places; beyond, the
 * connection ends.
 */
export class Remainders {
  readonly #most: number
  /** The number of remainders that each address has. */
  readonly #held = new Map<string, number>()
  #size = 0
  /** Those of which bytes have come. */
  readonly #ready = new Turns<() => void>()
  #reading: NodeJS.Timeout | undefined

  constructor(most: number = mostUnread) {
    this.#most = most
  }

  /** To be called before Node has seen that the answer is finished: it would begin to read on itself. */
  add(incoming: IncomingMessage): void {
    const caller = Share.callerAt(incoming.socket.remoteAddress ?? "")
    const theirs = this.#held.get(caller) ?? 0
    if (this.#size >= this.#most || theirs >= Share.beside(this.#most, this.#size - theirs)) {
      incoming.socket.destroySoon()
      return
    }
    this.#size++
    this.#held.set(caller, theirs + 1)
    incoming.once("close", () => this.#gone(caller))
    let queued = false
    const read = () => {
      queued = false
      // Node tells of further bytes only when all that came are taken, and gives them piece by piece
      while (!incoming.destroyed && incoming.read() !== null);
    }
    incoming.pause()
    // tells Node that somebody reads, and takes nothing yet
    incoming.read(0)
    // tells of bytes, and of the end, and again when those were read
    incoming.on("readable", () => {
      if (queued) return
      queued = true
      this.#ready.add(caller, read)
      this.#reading ??= setInterval(() => this.#read(), everyMs)
    })
  }

  #gone(caller: string): void {
    this.#size--
    const left = (this.#held.get(caller) ?? 0) - 1
    if (left > 0) this.#held.set(caller, left)
    else this.#held.delete(caller)
  }

  #read(): void {
    for (let reads = 0; reads < readsAtOnce; reads++) this.#ready.take()?.()
    if (this.#ready.size > 0) return
    clearInterval(this.#reading)
    this.#reading = undefined
  }
}
