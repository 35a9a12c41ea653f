/** Returns the work of reading one input of about so many characters; making the input is not part of it. */
export type Prepare = (length: number) => () => unknown

export interface Sizes {
  /** The longest input, in characters. */
  readonly longest: number
  /** An input of that length that takes less is not looked at twice: were it quadratic, a megabyte would be cheap too. */
  readonly cheapMs: number
}

export const usualSizes: Sizes = { longest: 32_768, cheapMs: 1 }

/** Four times the input may take so many times as long: linear is 4, n log n is below 5, quadratic is 16. */
const mostGrowth = 8

/**
 * Says how many times as long a reader takes for four times the input, where that is more than linear; else `undefined`.
 * It has to be more on two steps, each to four times the length: the memory of a process grows by leaps, and a leap is on
 * one of them. The shortest of several runs counts, and a growth that is too high is measured again, because compilers,
 * collectors of garbage and other programs run when they like. The time of the processor has the last word: a machine with
 * ten programs for its two cores leaves no run alone.
 */
export const excessiveGrowth = (prepare: Prepare, { cheapMs, longest }: Sizes = usualSizes): number | undefined => {
  let length = longest / 4
  let run = prepare(length)
  // where a short input takes long, a longer one would keep the test busy for minutes
  if (timeOf(run) < longMs) {
    length = longest
    run = prepare(length)
    if (timeOf(run) <= cheapMs) return undefined
  }
  const whole = timeOf(run)
  if (whole <= cheapMs || whole / shortestOf(prepare(length / 16)) <= surelyLinear) return undefined
  const lengths = [run, prepare(length / 4), prepare(length / 16)]
  let times = lengths.map(() => Number.POSITIVE_INFINITY)
  let growth = Number.POSITIVE_INFINITY
  let lows = 0
  for (let attempt = 0; attempt < 6; attempt++) {
    times = lengths.map((one, at) => Math.min(times[at] ?? 0, shortestOf(one)))
    const [whole = 0, quarter = 0, sixteenth = 0] = times
    growth = Math.min(whole / quarter, quarter / sixteenth)
    // one low figure may be an accident of the machine
    if (growth <= mostGrowth && ++lows === 2) return undefined
  }
  const [most = 0, middle = 0, least = 0] = lengths.map(workOf)
  const worked = Math.min(most / middle, middle / least)
  return worked <= mostGrowth ? undefined : worked
}

const longMs = 40

/** Sixteen times the input may take so many times as long at the first look: linear is 16, quadratic is 256. */
const surelyLinear = 24

/** A sum of times that says something. */
const worthwhileMs = 10

const shortestOf = (run: () => unknown): number => {
  let shortest = Number.POSITIVE_INFINITY
  for (let runs = 0, sum = 0; runs < 3 || (sum < worthwhileMs && runs < 20); runs++) {
    const time = timeOf(run)
    shortest = Math.min(shortest, time)
    sum += time
  }
  return Math.max(shortest, 0.001)
}

/** Other programs lengthen a long run. The thread's own clock does not know them, but its steps would hide a short one. */
const timeOf = (run: () => unknown): number => {
  const startedAt = performance.now()
  const workedAt = threadMs()
  answerOf(run)
  const elapsed = performance.now() - startedAt
  return elapsed < longMs ? elapsed : Math.min(elapsed, threadMs() - workedAt)
}

/** The clock of a thread's time on the processor goes in steps of some milliseconds. */
const manyStepsMs = 100

/** The milliseconds of the processor that one run takes. */
const workOf = (run: () => unknown): number => {
  const startedAt = threadMs()
  let runs = 0
  let worked = 0
  while (worked < manyStepsMs) {
    answerOf(run)
    runs++
    worked = threadMs() - startedAt
  }
  return worked / runs
}

const threadMs = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (user + system) / 1_000
}

const answerOf = (run: () => unknown): void => {
  try {
    run()
  } catch {
    // a refusal is an answer too; what counts is how long it takes
  }
}
