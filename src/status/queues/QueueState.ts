import type { MinuteOfQueue } from "../../messaging/control/ControlStore.ts"

/**
 * `alarm`: the broker lacks memory or disk and takes no messages, so that consumers cannot publish what they have done.
 * `unknown`: the broker does not respond. `resuming`: the pause has just ended, and no consumer has begun again yet.
 */
export type QueueState = "well" | "growing" | "stalled" | "no consumer" | "paused" | "resuming" | "alarm" | "unknown"

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
  /** The broker lacks memory or disk. */
  readonly isAlarmed: boolean
  /** The time since the end of the latest pause. `undefined` if that was long ago. */
  readonly resumedForMs: number | undefined
  /** The sums of the consumers that report themselves. They may have `places` messages in work together. */
  readonly reported: { readonly consumers: number; readonly places: number; readonly inWork: number }
  /** The rates of the last hour, oldest first. */
  readonly rates: ReadonlyArray<MinuteRates>
  /** The current minute, counted from 1970. */
  readonly minute: number
}

/**
 * AMQP counts no arrivals. They follow from the messages that were done, and from the change of the number of messages
 * that are ready or in work. A message that a consumer has just taken may be in neither number for a second, so that it is
 * compared with the two inspections before.
 */
export const ratesOf = (minutes: ReadonlyArray<MinuteOfQueue>): ReadonlyArray<MinuteRates> => {
  let doneBefore = 0
  let inspected: ReadonlyArray<number> = []
  return minutes.map(({ done, minute, passed, ready }) => {
    const present = passed ?? (ready === null ? null : ready + done)
    const arrived =
      present === null || inspected.length === 0 ? null : Math.max(0, doneBefore + present - Math.max(...inspected))
    if (present !== null) inspected = [...inspected.slice(-1), doneBefore + present]
    doneBefore += done
    return { minute, in: arrived, out: done, ready }
  })
}

/**
 * Returns how many messages came within all these minutes. Until the second inspection the arrivals are not known, but
 * whatever was handled until then had come.
 */
export const arrivedIn = (rates: ReadonlyArray<MinuteRates>): number => {
  const known = rates.findIndex((one) => one.in !== null)
  const before = rates.slice(0, known === -1 ? rates.length : known).reduce((sum, { out }) => sum + out, 0)
  return rates.reduce((sum, one) => sum + (one.in ?? 0), before)
}

const growingWithinMinutes = 10
const leastGrowth = 10
const stalledAfterMinutes = 5
/** Consumers begin again within 2 seconds, and the board learns so a moment later. */
const resumingMs = 10_000

export const stateOf = (numbers: QueueNumbers): QueueState => {
  const {
    consumers,
    isAlarmed,
    isPaused,
    minute,
    rates,
    ready,
    reported,
    resumedForMs = Number.POSITIVE_INFINITY
  } = numbers
  if (isPaused) return "paused"
  if (consumers === 0) return resumedForMs < resumingMs && reported.consumers > 0 ? "resuming" : "no consumer"
  if (isAlarmed) return "alarm"
  if (ready === 0) return "well"
  const recent = rates.filter((one) => one.minute > minute - stalledAfterMinutes)
  const observedLongEnough =
    resumedForMs > stalledAfterMinutes * 60_000 &&
    rates.some((one) => one.minute <= minute - stalledAfterMinutes && one.ready !== null)
  const hasWaitedLong = recent.every((one) => one.ready === null || one.ready > 0)
  if (observedLongEnough && hasWaitedLong && recent.every(({ out }) => out === 0)) return "stalled"
  return isGrowing(numbers) ? "growing" : "well"
}

/**
 * Workers with free places may soon take what waits, so that a short line means nothing. A line also grows while all
 * workers are busy: longer by the number of places, at most 10, than at the shortest of the last ten minutes.
 */
const isGrowing = ({ consumers, minute, rates, ready, reported }: QueueNumbers): boolean => {
  const { inWork, places } = reported
  const inspected = rates
    .filter((one) => one.minute >= minute - growingWithinMinutes)
    .flatMap((one) => (one.ready === null ? [] : [{ minute: one.minute, ready: one.ready }]))
  const [first] = inspected
  if (first !== undefined && ready - first.ready >= Math.max(leastGrowth, first.ready * 0.1)) return true
  const isFull = reported.consumers >= consumers && places > 0 && inWork >= places
  const shortest = Math.min(...inspected.filter((one) => one.minute < minute).map((one) => one.ready))
  return isFull && ready - shortest >= Math.min(leastGrowth, places)
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
