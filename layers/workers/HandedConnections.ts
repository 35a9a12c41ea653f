import type { Worker } from "node:cluster"
import { Predicate } from "effect"

interface Handle {
  readonly close: () => void
}

const isHandle = (value: unknown): value is Handle =>
  Predicate.hasProperty(value, "close") && Predicate.isFunction(value.close)

/**
 * The connections that workers have been sent but have not accepted yet. Node's cluster forgets such a connection if the
 * worker ends, and its client would wait forever. Here the connection is closed instead.
 *
 * Node sends a worker one connection at a time. A worker that is closing refuses its connection, and Node sends that one
 * to another worker. Closing a connection that a worker has accepted changes nothing, because Node has closed it already.
 */
export class HandedConnections {
  readonly #handles = new Map<Worker, Handle>()

  /** Must be called before the worker listens. */
  watch(worker: Worker): void {
    const { process } = worker
    const send: unknown = process.send
    if (!Predicate.isFunction(send)) return
    Object.assign(process, {
      send: (...args: ReadonlyArray<unknown>): unknown => {
        const [, handle] = args
        if (isHandle(handle)) this.#hand(worker, handle)
        return Reflect.apply(send, process, args)
      }
    })
    // All responses of the worker have been read by then. Node does not emit `disconnect` while a connection is on its way.
    process.once("close", () => {
      this.#handles.get(worker)?.close()
      this.#handles.delete(worker)
    })
  }

  #hand(worker: Worker, handle: Handle): void {
    for (const [other, theirs] of this.#handles) {
      if (theirs === handle) this.#handles.delete(other)
    }
    this.#handles.set(worker, handle)
  }
}
