export type Member = readonly [name: string, score: number]

export class SortedSet {
  readonly #scores = new Map<string, number>()
  #order: ReadonlyArray<Member> | undefined

  static of(members: ReadonlyArray<Member>): SortedSet {
    const set = new SortedSet()
    for (const [member, score] of members) set.put(member, score)
    return set
  }

  get members(): ReadonlyArray<Member> {
    return Array.from(this.#scores)
  }

  get size(): number {
    return this.#scores.size
  }

  score(member: string): number | undefined {
    return this.#scores.get(member)
  }

  put(member: string, score: number): void {
    this.#scores.set(member, score)
    this.#order = undefined
  }

  remove(member: string): boolean {
    this.#order = undefined
    return this.#scores.delete(member)
  }

  inRange(range: Range): ReadonlyArray<Member> {
    return this.#sorted.filter(([, score]) => range.above(score) && range.below(score))
  }

  /** The number of members before a bound, in a set whose members have equal scores. */
  rank(bound: LexBound): number {
    const order = this.#sorted
    if ("after" in bound) return bound.after === "-" ? 0 : order.length
    const wanted = Buffer.from(bound.member)
    let [low, high] = [0, order.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      const compared = Buffer.compare(Buffer.from(order[middle]?.[0] ?? ""), wanted)
      if (compared < 0 || (compared === 0 && bound.isAfterEqual)) low = middle + 1
      else high = middle
    }
    return low
  }

  get #sorted(): ReadonlyArray<Member> {
    this.#order ??= [...this.#scores].sort(ascending)
    return this.#order
  }
}

/** A place between two members: before all, after all, or beside the place of a member. */
export type LexBound = { readonly after: "-" | "+" } | { readonly member: string; readonly isAfterEqual: boolean }

/** Redis orders members with equal scores by their bytes. JavaScript would compare UTF-16 code units. */
const ascending = (a: Member, b: Member): number => a[1] - b[1] || Buffer.compare(Buffer.from(a[0]), Buffer.from(b[0]))

export interface Range {
  readonly above: (score: number) => boolean
  readonly below: (score: number) => boolean
}
