/** A queue in which callers take turns: a caller with many items delays the others by one item per turn. */
export class FairQueue<A> {
  /** By caller, in turn order. */
  readonly #queues = new Map<string, Array<A>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  sizeOf(caller: string): number {
    return this.#queues.get(caller)?.length ?? 0
  }

  add(caller: string, item: A): void {
    const queue = this.#queues.get(caller)
    if (queue === undefined) this.#queues.set(caller, [item])
    else queue.push(item)
    this.#size++
  }

  take(): A | undefined {
    for (const [caller, queue] of this.#queues) {
      const item = queue.shift()
      this.#queues.delete(caller)
      if (queue.length > 0) this.#queues.set(caller, queue)
      this.#size--
      return item
    }
    return undefined
  }
}
