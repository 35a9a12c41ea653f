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
    this.#order ??= [...this.#scores].sort(ascending)
    return this.#order.filter(([, score]) => range.above(score) && range.below(score))
  }
}

/** Redis orders members with equal scores by their bytes. JavaScript would compare UTF-16 code units. */
const ascending = (a: Member, b: Member): number => a[1] - b[1] || Buffer.compare(Buffer.from(a[0]), Buffer.from(b[0]))

export interface Range {
  readonly above: (score: number) => boolean
  readonly below: (score: number) => boolean
}
