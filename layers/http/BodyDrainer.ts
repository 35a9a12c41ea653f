import type { IncomingMessage } from "node:http"
import * as FairShare from "../../src/services/FairShare.ts"
import { FairQueue, type Waiter } from "./FairQueue.ts"

const readIntervalMs = 10
/** A read returns at most 128 KiB. So 4 reads every 10 ms are at most about 50 MiB per second. */
const readsPerInterval = 4
const maxUnreadBodies = 2_048

interface WaitingBody extends Waiter {
  readonly read: () => void
}

/**
 * Reads and discards the rest of a request body after the response. Many clients read the response only after they have
 * sent the whole body. The total rate is limited, so that refused clients cannot occupy the process. Client addresses
 * take turns. Connections of one address beyond its share are closed.
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

  /** Must be called before the response ends, because Node then reads the body itself. */
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
      // Reads until the buffer is empty, because Node reports new bytes only after that.
      while (!incoming.destroyed && incoming.read() !== null);
    }
    const waiting = { caller, read }
    incoming.pause()
    // This call keeps Node from discarding the body itself when the response ends.
    incoming.read(0)
    // Node emits `readable` for new bytes and at the end of the body.
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
