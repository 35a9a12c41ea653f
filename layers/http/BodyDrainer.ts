import type { IncomingMessage } from "node:http"
import * as FairShare from "../../src/services/FairShare.ts"
import { FairQueue } from "./FairQueue.ts"

const readIntervalMs = 10
/** Each takes at most what Node reads ahead, 128 KiB: together about 50 MiB a second. */
const readsPerInterval = 4
const maxUnreadBodies = 2_048

/**
 * Reads the rest of bodies whose requests are answered already. A client that writes all of its body before it reads has
 * its answer only when somebody takes the rest; but reading on at full speed would let clients that are refused keep the
 * process busy with bytes that nobody wants. All remainders together are therefore read at a bounded rate, and addresses
 * take turns. One of which nothing has come takes no turn. Each address has its share of the places; beyond, the
 * connection ends.
 */
export class BodyDrainer {
  readonly #maxBodies: number
  /** The number of remainders that each address has. */
  readonly #countByCaller = new Map<string, number>()
  #size = 0
  /** Those of which bytes have come. */
  readonly #ready = new FairQueue<() => void>()
  #timer: NodeJS.Timeout | undefined

  constructor(maxBodies: number = maxUnreadBodies) {
    this.#maxBodies = maxBodies
  }

  /** To be called before Node has seen that the answer is finished: it would begin to read on itself. */
  add(incoming: IncomingMessage): void {
    const caller = FairShare.callerOfAddress(incoming.socket.remoteAddress ?? "")
    const callerCount = this.#countByCaller.get(caller) ?? 0
    if (
      this.#size >= this.#maxBodies ||
      callerCount >= FairShare.allowance(this.#maxBodies, this.#size - callerCount)
    ) {
      incoming.socket.destroySoon()
      return
    }
    this.#size++
    this.#countByCaller.set(caller, callerCount + 1)
    incoming.once("close", () => this.#onClose(caller))
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
      this.#timer ??= setInterval(() => this.#read(), readIntervalMs)
    })
  }

  #onClose(caller: string): void {
    this.#size--
    const remaining = (this.#countByCaller.get(caller) ?? 0) - 1
    if (remaining > 0) this.#countByCaller.set(caller, remaining)
    else this.#countByCaller.delete(caller)
  }

  #read(): void {
    for (let reads = 0; reads < readsPerInterval; reads++) this.#ready.take()?.()
    if (this.#ready.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
