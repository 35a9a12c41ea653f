import type { IncomingMessage } from "node:http"
import * as FairShare from "../../src/services/FairShare.ts"
import { FairQueue, type Waiter } from "./FairQueue.ts"

const readIntervalMs = 10
/** One read takes at most what Node has buffered, 128 KiB: 4 reads every 10 ms are about 50 MiB per second. */
const readsPerInterval = 4
const maxUnreadBodies = 2_048

interface WaitingBody extends Waiter {
  readonly read: () => void
}

/**
 * Reads and discards the rest of request bodies after their response. A client that writes its whole body before it
 * reads sees the response only then, but reading at full speed would let refused clients keep the process busy. All
 * bodies together are therefore read at a bounded rate, and client addresses take turns. Each address has a share of
 * the places; a connection beyond it is closed.
 */
export class BodyDrainer {
  readonly #maxBodies: number
  readonly #countByCaller = new Map<string, number>()
  #size = 0
  readonly #ready = new FairQueue<WaitingBody>()
  #timer: NodeJS.Timeout | undefined

  constructor(maxBodies: number = maxUnreadBodies) {
    this.#maxBodies = maxBodies
  }

  /** Must be called before Node sees the end of the response: Node would otherwise read the body itself. */
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
      // Node reports more bytes only after all buffered ones are taken, and returns them in pieces.
      while (!incoming.destroyed && incoming.read() !== null);
    }
    const waiting = { caller, read }
    incoming.pause()
    // Tells Node that the body is being read, without taking bytes.
    incoming.read(0)
    // Node emits `readable` for new bytes and for the end, and again after those are read.
    incoming.on("readable", () => {
      if (queued) return
      queued = true
      this.#ready.add(waiting)
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
    for (let reads = 0; reads < readsPerInterval; reads++) this.#ready.next()?.read()
    if (this.#ready.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
