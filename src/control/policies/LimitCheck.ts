import { Effect } from "effect"
import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import type { UsageEstimate } from "../../policy/Estimate.ts"
import type { Redis } from "../../services/Redis.ts"
import * as CounterReadings from "../../state/limits/CounterReadings.ts"
import * as LimitDenial from "../../state/limits/LimitDenial.ts"
import * as Meters from "../../state/limits/Meters.ts"
import { RestoredCounters } from "../../state/limits/RestoredCounters.ts"
import type { DenialRecord } from "../../state/UsageRecord.ts"

/** `Unknown`: Redis, which has the counters, does not respond, or a lost counter could not be restored in time. */
export type LimitOutcome =
  | { readonly _tag: "Room" }
  | { readonly _tag: "Unknown" }
  | { readonly _tag: "Full"; readonly meter: Meters.Meter; readonly denial: DenialRecord }

/** Finds the limit that would refuse a request now. Reads the counters that admit requests, and reserves nothing. */
export const make = Effect.gen(function* () {
  const context = yield* Effect.context<Redis>()
  const { restore } = yield* RestoredCounters
  const firstFull = Effect.fn("LimitCheck.firstFull")(function* (
    meters: Meters.RequestMeters,
    wanted: UsageEstimate,
    effective: EffectivePolicy,
    now: number
  ) {
    const readings = yield* Effect.provide(CounterReadings.read(meters.scopes, now), context)
    const restored = yield* restore(readings.filter(({ known }) => !known))
    let outcome = room
    for (const { known, meter, reserved = 0, used: counted } of readings) {
      const amount = Meters.amountFor(meter, wanted)
      if (amount === 0) continue
      const ended = known ? counted : restored.get(meter.key)
      if (ended === undefined) outcome = unknown
      if (ended === undefined || ended + reserved + amount <= meter.limit) continue
      const used = ended + reserved
      const full: LimitOutcome = { _tag: "Full", meter, denial: LimitDenial.of({ meter, used }, amount, effective) }
      return full
    }
    return outcome
  })
  return (...asked: Parameters<typeof firstFull>): Effect.Effect<LimitOutcome> =>
    Effect.catch(firstFull(...asked), () => Effect.succeed(unknown))
})

const room: LimitOutcome = { _tag: "Room" }
const unknown: LimitOutcome = { _tag: "Unknown" }
