import type { Socket } from "node:net"
import * as FairShare from "../../src/services/FairShare.ts"

export interface ConnectionLimits {
  readonly total: number
  readonly perAddress: number
}

export class OpenConnections {
  readonly #limits: ConnectionLimits
  readonly #countByCaller = new Map<string, number>()
  readonly #sockets = new Set<Socket>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  admits(socket: Socket): boolean {
    const caller = FairShare.callerOfAddress(socket.remoteAddress ?? "")
    const callerCount = this.#countByCaller.get(caller) ?? 0
    if (this.#sockets.size >= this.#limits.total || callerCount >= this.#limits.perAddress) return false
    this.#sockets.add(socket)
    this.#countByCaller.set(caller, callerCount + 1)
    socket.once("close", () => this.#onClose(socket, caller))
    return true
  }

  /** Closes connections that have sent nothing. */
  closeSilent(): void {
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy()
  }

  #onClose(socket: Socket, caller: string): void {
    this.#sockets.delete(socket)
    const remaining = (this.#countByCaller.get(caller) ?? 0) - 1
    if (remaining > 0) this.#countByCaller.set(caller, remaining)
    else this.#countByCaller.delete(caller)
  }
}
