/** How long a run takes: every duration and count of it. */
export interface Plan {
  readonly rounds: number
  readonly warmMs: number
  readonly aloneMs: number
  readonly publishMs: number
  readonly tripMs: number
}

/** About eight minutes with all contenders. */
export const full: Plan = { rounds: 5, warmMs: 2_000, aloneMs: 1_000, publishMs: 2_500, tripMs: 2_000 }

/** About two minutes. */
export const quick: Plan = { rounds: 2, warmMs: 1_000, aloneMs: 500, publishMs: 1_000, tripMs: 1_000 }
