export abstract class DenseSetItem {
  index = -1
}

/**
 * An unordered set of items that are added and removed thousands of times a second.
 *
 * V8's `Set` reallocates its table after a number of deletions, and each old table references the new one. If one table
 * reaches the old generation of the garbage collector, minor collections free none of the later tables. In a hub that
 * stores 7,500 events a second, a minor collection takes 10 ms with `Set` and 1 ms with this class.
 */
export class DenseSet<A extends DenseSetItem> {
  readonly #things: Array<A> = []

  get size(): number {
    return this.#things.length
  }

  add(thing: A): void {
    if (thing.index < 0) thing.index = this.#things.push(thing) - 1
  }

  delete(thing: A): void {
    const { index } = thing
    const last = index < 0 ? undefined : this.#things.pop()
    if (last === undefined) return
    if (last !== thing) {
      this.#things[index] = last
      last.index = index
    }
    thing.index = -1
  }

  [Symbol.iterator](): IterableIterator<A> {
    return this.#things.values()
  }
}
