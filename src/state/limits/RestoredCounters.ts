import { Array as Arr, Context, Effect, Layer, Semaphore } from "effect"
import type { Database } from "../../services/Database.ts"
import type { Redis } from "../../services/Redis.ts"
import type { CounterReading } from "./CounterReadings.ts"
import type * as Meters from "./Meters.ts"
import * as RecordedUsage from "./RecordedUsage.ts"

/** The records of a busy team or model may take longer to add up. Its counters are then unknown. */
const timeout = "2 seconds"

/** For the whole process, because the sums read the database with which the gateway works. */
const maxConcurrent = 3

/** Adds up usage records for operators and holders, a few at a time. Changes nothing. */
export class RestoredCounters extends Context.Service<
  RestoredCounters,
  {
    /**
     * Restores lost counters, as the gateway does when it next needs them. Returns the sums by the Redis key of the
     * counter, without those that cannot be read in time.
     */
    readonly restore: (readings: ReadonlyArray<CounterReading>) => Effect.Effect<ReadonlyMap<string, number>>
    /** The records of one meter, without a limit of time. */
    readonly recordsOf: (
      meter: Meters.Meter
    ) => Effect.Effect<
      Effect.Success<ReturnType<typeof RecordedUsage.readRecords>>,
      Effect.Error<ReturnType<typeof RecordedUsage.readRecords>>
    >
  }
>()("svc/state/RestoredCounters") {
  static readonly layer = Layer.suspend(() => Layer.effect(RestoredCounters, make))
}

const make = Effect.gen(function* () {
  const context = yield* Effect.context<Database | Redis>()
  const permits = yield* Semaphore.make(maxConcurrent)
  return RestoredCounters.of({
    recordsOf: (meter) => RecordedUsage.readRecords(meter).pipe(permits.withPermit, Effect.provide(context)),
    restore: (readings) => {
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
})
