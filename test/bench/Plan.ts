/** How long a run takes: every duration and count of it. */
export interface Plan {
  readonly rounds: number
  readonly warmSeconds: number
  readonly sequentialMs: number
  /** How often in a round, and for how long: a busy machine has slow and fast seconds, and ratios are of neighbours. */
  readonly rates: number
  readonly rateSeconds: number
  readonly slowMs: number
  readonly briefMs: number
  readonly burstMs: number
  readonly crowds: number
  readonly crowdSize: number
  readonly gapStreams: number
  /** Paced streams at once begin over so long. */
  readonly pacedRampMs: number
  readonly proofRequests: number
}

/** About twelve minutes with all entrants. */
export const full: Plan = {
  rounds: 5,
  warmSeconds: 8,
  sequentialMs: 4_000,
  rates: 3,
  rateSeconds: 3,
  slowMs: 2_000,
  briefMs: 2_000,
  burstMs: 2_000,
  crowds: 3,
  crowdSize: 512,
  gapStreams: 16,
  pacedRampMs: 600,
  proofRequests: 20_000
}

/** Less than two minutes. */
export const quick: Plan = {
  ...full,
  rounds: 2,
  warmSeconds: 3,
  sequentialMs: 1_000,
  rates: 1,
  rateSeconds: 2,
  slowMs: 1_000,
  briefMs: 1_000,
  burstMs: 1_000,
  crowds: 1,
  proofRequests: 5_000
}
