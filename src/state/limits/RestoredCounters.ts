import { Array as Arr, Effect, Semaphore } from "effect"
import type { Database } from "../../services/Database.ts"
import type { Redis } from "../../services/Redis.ts"
import type { CounterReading } from "./CounterReadings.ts"
import * as RecordedUsage from "./RecordedUsage.ts"

/** The records of a busy team or model may take longer to add up. Its counters are then unknown. */
const timeout = "2 seconds"

const maxConcurrent = 3

/**
 * Adds up the usage records of lost counters, as the gateway does when it next needs them. Returns the sums by the Redis
 * key of the counter, without those that cannot be read in time. Changes nothing.
 */
export const make = Effect.gen(function* () {
  const context = yield* Effect.context<Database | Redis>()
  const permits = yield* Semaphore.make(maxConcurrent)
  return (readings: ReadonlyArray<CounterReading>): Effect.Effect<ReadonlyMap<string, number>> => {
    const sums = new Map<string, number>()
    const groups = Arr.groupBy(
      readings.map(({ meter }) => meter),
      (meter) => `${meter.scope.id} ${RecordedUsage.recordSetKey(meter)}`
    )
    const sum = Effect.forEach(
      Object.values(groups),
      Effect.fnUntraced(function* (meters) {
        for (const [{ key }, amount] of yield* RecordedUsage.restoredAmounts(meters)) sums.set(key, amount)
      }),
      { discard: true }
    )
    return sum.pipe(
      permits.withPermit,
      Effect.timeout(timeout),
      Effect.catchCause((cause) =>
        Effect.logDebug("counters of limits cannot be restored from the usage records", { cause })
      ),
      Effect.as(sums),
      Effect.provide(context)
    )
  }
})
