import type { MinuteOfQueue } from "../../messaging/control/ControlStore.ts"

/** `unknown`: the broker does not respond. */
export type QueueState = "well" | "growing" | "stalled" | "no consumer" | "paused" | "unknown"

/** The messages that came and went within one minute. `null` where the queue was not inspected. */
export interface MinuteRates {
  readonly minute: number
  readonly in: number | null
  readonly out: number
  readonly ready: number | null
}

/** The age of the oldest ready message: about so many seconds, or more than them. */
export interface OldestAge {
  readonly seconds: number
  readonly is: "about" | "more_than"
}

export interface QueueNumbers {
  readonly ready: number
  readonly consumers: number
  readonly isPaused: boolean
  /** The rates of the last hour, oldest first. */
  readonly rates: ReadonlyArray<MinuteRates>
  /** The current minute, counted from 1970. */
  readonly minute: number
}

/** AMQP counts no arrivals. They follow from the handled messages and from the change of the number of ready ones. */
export const ratesOf = (minutes: ReadonlyArray<MinuteOfQueue>): ReadonlyArray<MinuteRates> => {
  let readyBefore: number | undefined
  let outSince = 0
  return minutes.map(({ done, minute, ready }) => {
    outSince += done
    const arrived = ready === null || readyBefore === undefined ? null : Math.max(0, ready - readyBefore + outSince)
    if (ready !== null) {
      readyBefore = ready
      outSince = 0
    }
    return { minute, in: arrived, out: done, ready }
  })
}

/**
 * Returns how many messages came within all these minutes. Before the first inspection the number of ready messages is
 * not known, but whatever was handled until then had come.
 */
export const arrivedIn = (rates: ReadonlyArray<MinuteRates>): number => {
  const inspected = rates.findIndex(({ ready }) => ready !== null)
  const before = rates.slice(0, inspected === -1 ? rates.length : inspected + 1).reduce((sum, { out }) => sum + out, 0)
  return rates.reduce((sum, one) => sum + (one.in ?? 0), before)
}

const growingWithinMinutes = 10
const leastGrowth = 10
const stalledAfterMinutes = 5

export const stateOf = ({ consumers, isPaused, minute, rates, ready }: QueueNumbers): QueueState => {
  if (isPaused) return "paused"
  if (consumers === 0) return "no consumer"
  if (ready === 0) return "well"
  const recent = rates.filter((one) => one.minute > minute - stalledAfterMinutes)
  const observedLongEnough = rates.some((one) => one.minute <= minute - stalledAfterMinutes && one.ready !== null)
  const hasWaitedLong = recent.every((one) => one.ready === null || one.ready > 0)
  if (observedLongEnough && hasWaitedLong && recent.every(({ out }) => out === 0)) return "stalled"
  const before = rates.find((one) => one.ready !== null && one.minute >= minute - growingWithinMinutes)?.ready
  if (before === null || before === undefined) return "well"
  return ready - before >= Math.max(leastGrowth, before * 0.1) ? "growing" : "well"
}

/**
 * AMQP does not tell the age of a waiting message. A queue gives its messages in the order of their arrival, so the ready
 * ones are the last that arrived: the oldest of them arrived when the newer ones began to make up the rest.
 */
export const oldestAge = (
  { minute, rates, ready }: Pick<QueueNumbers, "minute" | "rates" | "ready">,
  nowMs: number
): OldestAge | undefined => {
  if (ready === 0) return undefined
  let newer = 0
  for (const one of rates.toReversed()) {
    newer += one.in ?? 0
    // At the end of a minute with an empty queue, none of the present messages was there.
    if (one.ready === 0 && one.minute < minute) return about(nowMs - (one.minute + 1) * 60_000)
    if (newer >= ready) return about(nowMs - one.minute * 60_000)
  }
  const [first] = rates
  return first === undefined ? undefined : { seconds: secondsOf(nowMs - first.minute * 60_000), is: "more_than" }
}

const about = (ms: number): OldestAge => ({ seconds: secondsOf(ms), is: "about" })

const secondsOf = (ms: number): number => Math.max(0, Math.round(ms / 1_000))
