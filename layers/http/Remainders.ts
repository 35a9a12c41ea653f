import type { IncomingMessage } from "node:http"

const everyMs = 10
/** Each takes at most what Node reads ahead, 128 KiB: together about 50 MiB a second. */
const readsAtOnce = 4

/**
 * Reads the rest of bodies whose requests are answered already. A client that writes all of its body before it reads has
 * its answer only when somebody takes the rest; but reading on at full speed would let clients that are refused keep the
 * process busy with bytes that nobody wants. All remainders together are therefore read at a bounded rate, in turns.
 */
export class Remainders {
  readonly #unread = new Set<IncomingMessage>()
  #reading: NodeJS.Timeout | undefined

  /** To be called before Node has seen that the answer is finished: it would begin to read on itself. */
  add(incoming: IncomingMessage): void {
    incoming.pause()
    // tells Node that somebody reads, and takes nothing yet
    incoming.read(0)
    this.#unread.add(incoming)
    this.#reading ??= setInterval(() => this.#read(), everyMs)
  }

  #read(): void {
    let reads = 0
    for (const incoming of this.#unread) {
      if (reads++ === readsAtOnce) return
      // behind the others
      this.#unread.delete(incoming)
      if (incoming.complete) incoming.resume()
      else if (!incoming.destroyed) {
        incoming.read()
        this.#unread.add(incoming)
      }
    }
    if (this.#unread.size === 0) {
      clearInterval(this.#reading)
      this.#reading = undefined
    }
  }
}
