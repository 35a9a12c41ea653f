/** From 0 up to 1: Numerical Recipes' generator. The same seed is the same run. */
export type Random = () => number

export const of = (seed: number): Random => {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

export const between = (random: Random, from: number, to: number): number => from + (to - from) * random()

export const integer = (random: Random, below: number): number => Math.floor(random() * below)

export const chosen = <A>(random: Random, all: readonly [A, ...ReadonlyArray<A>]): A =>
  all[integer(random, all.length)] ?? all[0]

export const shuffled = <A>(random: Random, all: ReadonlyArray<A>): ReadonlyArray<A> =>
  all
    .map((one) => ({ one, rank: random() }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ one }) => one)
