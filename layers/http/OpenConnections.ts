import type { Socket } from "node:net"
import * as FairShare from "../../src/services/FairShare.ts"

export interface ConnectionLimits {
  readonly total: number
  readonly perAddress: number
}

export class OpenConnections {
  readonly #limits: ConnectionLimits
  readonly #countByCaller = new Map<string, number>()
  #size = 0

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  admits(socket: Socket): boolean {
    const caller = FairShare.callerOfAddress(socket.remoteAddress ?? "")
    const callerCount = this.#countByCaller.get(caller) ?? 0
    if (this.#size >= this.#limits.total || callerCount >= this.#limits.perAddress) return false
    this.#size++
    this.#countByCaller.set(caller, callerCount + 1)
    socket.once("close", () => this.#onClose(caller))
    return true
  }

  #onClose(caller: string): void {
    this.#size--
    const remaining = (this.#countByCaller.get(caller) ?? 0) - 1
    if (remaining > 0) this.#countByCaller.set(caller, remaining)
    else this.#countByCaller.delete(caller)
  }
}
