import { Effect, Fiber } from "effect"
import { residentMiB } from "./Footprint.ts"
import { number } from "./Markdown.ts"
import { median, percentile, slope, spread } from "./Statistics.ts"

/** Minutes since the start, resident MiB; every five seconds. */
export type Memory = ReadonlyArray<readonly [minute: number, mebibytes: number]>

const samplesPerMinute = 12

/** What a process keeps while something goes on. */
export const watched = <A, E, R>(pid: number, use: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const begun = performance.now()
    const memory: Array<readonly [number, number]> = []
    const sample = Effect.sync(() => {
      memory.push([(performance.now() - begun) / 60_000, residentMiB(pid)])
    })
    const sampling = yield* Effect.forkChild(Effect.forever(Effect.andThen(sample, Effect.sleep("5 seconds"))))
    const used = yield* use
    yield* Fiber.interrupt(sampling)
    const seen: Memory = memory
    return [used, seen] as const
  })

export const text = (memory: Memory): string => {
  const resident = memory.map(([, mebibytes]) => mebibytes)
  const half = memory.slice(Math.floor(memory.length / 2))
  const [least, most] = spread(half.map(([, mebibytes]) => mebibytes))
  const minuteByMinute = resident
    .filter((_, index) => index % samplesPerMinute === 0)
    .map((mebibytes) => number(mebibytes, 0))
  return (
    `- resident memory in the second half: ${number(median(half.map(([, mebibytes]) => mebibytes)), 0)} MiB ` +
    `(${number(least, 0)}–${number(most, 0)}), slope ${slope(half).toFixed(2)} MiB/min; p99 of all samples ` +
    `${number(percentile(resident, 99), 0)} MiB; minute by minute: ${minuteByMinute.join(", ")}`
  )
}
