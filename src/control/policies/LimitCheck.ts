import { Effect } from "effect"
import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import type { UsageEstimate } from "../../policy/Estimate.ts"
import type { Redis } from "../../services/Redis.ts"
import * as CounterReadings from "../../state/limits/CounterReadings.ts"
import * as LimitDenial from "../../state/limits/LimitDenial.ts"
import * as Meters from "../../state/limits/Meters.ts"
import * as RestoredCounters from "../../state/limits/RestoredCounters.ts"
import type { DenialRecord } from "../../state/UsageRecord.ts"

/** `Unknown`: Redis, which has the counters, does not respond. */
export type LimitOutcome =
  | { readonly _tag: "Room" }
  | { readonly _tag: "Unknown" }
  | { readonly _tag: "Full"; readonly meter: Meters.Meter; readonly denial: DenialRecord }

/** Finds the limit that would refuse a request now. Reads the counters that admit requests, and reserves nothing. */
export const make = Effect.gen(function* () {
  const context = yield* Effect.context<Redis>()
  const restore = yield* RestoredCounters.make
  const firstFull = Effect.fn("LimitCheck.firstFull")(function* (
    meters: Meters.RequestMeters,
    wanted: UsageEstimate,
    effective: EffectivePolicy,
    now: number
  ) {
    const readings = yield* Effect.provide(CounterReadings.read(meters.scopes, now), context)
    const restored = yield* restore(readings.filter(({ known }) => !known))
    for (const { known, meter, reserved = 0, used: counted } of readings) {
      const used = (known ? counted : (restored.get(meter.key) ?? 0)) + reserved
      const amount = Meters.amountFor(meter, wanted)
      if (amount === 0 || used + amount <= meter.limit) continue
      const full: LimitOutcome = { _tag: "Full", meter, denial: LimitDenial.of({ meter, used }, amount, effective) }
      return full
    }
    return room
  })
  return (...asked: Parameters<typeof firstFull>): Effect.Effect<LimitOutcome> =>
    Effect.catch(firstFull(...asked), () => Effect.succeed<LimitOutcome>({ _tag: "Unknown" }))
})

const room: LimitOutcome = { _tag: "Room" }
