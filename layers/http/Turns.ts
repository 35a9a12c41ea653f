/** A queue in which callers take turns, so that nobody waits for a caller's whole queue. */
export class Turns<A> {
  /** By caller, in the order in which they have their turns. */
  readonly #queues = new Map<string, Array<A>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The number of items of one caller that wait. */
  of(caller: string): number {
    return this.#queues.get(caller)?.length ?? 0
  }

  add(caller: string, item: A): void {
    const theirs = this.#queues.get(caller)
    if (theirs === undefined) this.#queues.set(caller, [item])
    else theirs.push(item)
    this.#size++
  }

  take(): A | undefined {
    for (const [caller, theirs] of this.#queues) {
      const item = theirs.shift()
      // behind the others
      this.#queues.delete(caller)
      if (theirs.length > 0) this.#queues.set(caller, theirs)
      this.#size--
      return item
    }
    return undefined
  }
}
