import { Clock, Effect, Queue, type Scope } from "effect"
import type { Detail } from "../../live/Digest.ts"
import { LiveFeed } from "../../live/LiveFeed.ts"
import { toDollars } from "../../policy/Price.ts"
import { Redis } from "../../services/Redis.ts"
import type { Meter, MeterReading } from "../../state/limits/Meters.ts"

/** Tells operators that a limit is used up to a part. */
export interface LiveLimits {
  /** Call the other members only if this is true. */
  readonly isFollowed: boolean
  /** Tells which parts of its limits a request has crossed. `readings` include its own amounts. */
  readonly admitted: (readings: ReadonlyArray<MeterReading>, amounts: ReadonlyArray<number>) => void
  /** Tells that a limit is used up, unless the request could never fit. */
  readonly refused: (refusal: { readonly reading: MeterReading; readonly wanted: number }) => void
}

/** In percent of a limit. */
const parts = [50, 80, 100] as const

interface Crossing {
  readonly reading: MeterReading
  readonly percent: number
}

/** True if `amount` has crossed the part, for a counter that is now at `used`. */
export const isCrossed = (percent: number, limit: number, used: number, amount: number): boolean =>
  used * 100 >= limit * percent && (used - amount) * 100 < limit * percent

/**
 * Each part of a limit is told once in its window, by the first process that notices: counters also fall, when
 * reservations are replaced by less usage.
 */
export const make: Effect.Effect<LiveLimits, never, Redis | Scope.Scope> = Effect.gen(function* () {
  const redis = yield* Redis
  const clock = yield* Clock.Clock
  const feed = (yield* LiveFeed).limits
  const waiting = yield* Queue.dropping<Crossing>(mostWaiting)

  const tell = ({ percent, reading }: Crossing, at: number) =>
    feed.add(`crossed_${percent}`, () => describe(reading, percent, at))

  const noted = new Set<string>()

  const note = (reading: MeterReading, percent: number) => {
    const name = nameOf({ reading, percent })
    if (noted.has(name)) return
    if (noted.size >= mostNoted) noted.clear()
    noted.add(name)
    const crossing = { reading, percent }
    if (!Queue.offerUnsafe(waiting, crossing)) tell(crossing, clock.currentTimeMillisUnsafe())
  }

  const tellNew = Effect.fnUntraced(function* (crossing: Crossing) {
    const now = clock.currentTimeMillisUnsafe()
    const ttl = Math.max(1_000, crossing.reading.meter.endsAt - now)
    const key = redis.key(`live:crossed:${nameOf(crossing)}`)
    if ((yield* redis.command("SET", key, "1", "PX", ttl, "NX")) !== null) tell(crossing, now)
  })

  yield* Queue.takeAll(waiting).pipe(
    Effect.flatMap((crossings) =>
      Effect.forEach(crossings, (crossing) => Effect.ignore(tellNew(crossing)), {
        concurrency: "unbounded",
        discard: true
      })
    ),
    Effect.forever,
    Effect.forkScoped
  )

  return {
    get isFollowed() {
      return feed.isFollowed
    },
    admitted: (readings, amounts) => {
      for (const [at, reading] of readings.entries()) {
        for (const percent of parts) {
          if (isCrossed(percent, reading.meter.limit, reading.used, amounts[at] ?? 0)) note(reading, percent)
        }
      }
    },
    refused: ({ reading, wanted }) => {
      if (wanted <= reading.meter.limit) note(reading, 100)
    }
  }
})

/** Has the limit, because a limit that was raised is used up anew. */
const nameOf = ({ percent, reading: { meter } }: Crossing): string => `${percent}:${meter.limit}:${meter.key}`

const describe = ({ meter, used }: MeterReading, percent: number, at: number): Detail => ({
  at,
  percent,
  limit: meter.field,
  window: meter.window,
  resets_at: meter.endsAt,
  used: amountOf(meter, used),
  of: amountOf(meter, meter.limit),
  key_id: meter.scope.owner._tag === "Key" ? meter.scope.owner.keyId : null,
  layer: meter.scope.layer ?? null
})

const amountOf = ({ unit }: Meter, units: number): number => (unit === "nanos" ? toDollars(units) : units)

/** More crossings than these are told without a comparison with those of other processes. */
const mostWaiting = 128

/** The most crossings that this process remembers, so that it does not ask Redis for each refused request. */
const mostNoted = 5_000
