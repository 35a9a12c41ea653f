import { Effect } from "effect"
import type { BenchFailed } from "./Child.ts"
import type { Entrant, Name } from "./Entrants.ts"
import { Figures } from "./Figures.ts"
import { cpuMicros, peakMiB, residentMiB } from "./Footprint.ts"
import { ms } from "./Latency.ts"
import * as Load from "./Load.ts"
import type { Plan } from "./Plan.ts"
import { eventsOf, type Kind } from "./Scenario.ts"
import { percentile } from "./Statistics.ts"

export type Measured = ReadonlyMap<Name, Figures>

type Asked = Pick<Entrant, "child" | "target">

/** One way of asking one entrant, for a while. */
type Measure = (entrant: Asked, into: Figures, plan: Plan) => Effect.Effect<void, BenchFailed>

const always = (kind: Kind) => () => kind

const sequential: Measure = Effect.fnUntraced(function* ({ target }, into, { sequentialMs }) {
  const seen = yield* Load.loop(target, { connections: 1, forMs: sequentialMs, kindOf: always("instant") })
  into.add("rate1", (seen.answered / seen.elapsedMs) * 1_000)
  into.add("p50", ms(seen.total, 50))
  into.add("p99", ms(seen.total, 99))
  count(into, seen.failed, seen.problem)
})

const rate = (connections: 32 | 64): Measure =>
  Effect.fnUntraced(function* ({ child, target }, into, { rateSeconds }) {
    const before = cpuMicros(child.pid)
    const seen = yield* Load.rate(target, connections, rateSeconds)
    into.add(connections === 32 ? "rate32" : "rate64", seen.perSecond)
    if (connections === 64) into.add("cpu", (cpuMicros(child.pid) - before) / seen.answered)
    count(into, seen.failed, "see autocannon")
  })

const slow: Measure = Effect.fnUntraced(function* ({ target }, into, { slowMs }) {
  const seen = yield* Load.loop(target, { connections: 64, forMs: slowMs, kindOf: always("slow") })
  into.add("slowP50", ms(seen.total, 50))
  into.add("slowP99", ms(seen.total, 99))
  count(into, seen.failed, seen.problem)
})

export const burst: Measure = Effect.fnUntraced(function* ({ child, target }, into, { burstMs }) {
  const before = cpuMicros(child.pid)
  const seen = yield* Load.loop(target, { connections: 1, forMs: burstMs, kindOf: always("burst") })
  const chunks = seen.answered * eventsOf("burst")
  into.add("chunk", (seen.streamingMs * 1_000) / chunks)
  into.add("chunkCpu", (cpuMicros(child.pid) - before) / chunks)
  count(into, seen.failed, seen.problem)
})

export const brief: Measure = Effect.fnUntraced(function* ({ target }, into, { briefMs }) {
  const seen = yield* Load.loop(target, { connections: 1, forMs: briefMs, kindOf: always("brief") })
  into.add("firstByteP50", ms(seen.firstByte, 50))
  into.add("firstByteP99", ms(seen.firstByte, 99))
  count(into, seen.failed, seen.problem)
})

export const crowd: Measure = Effect.fnUntraced(function* ({ child, target }, into, { crowdSize, pacedRampMs }) {
  const before = cpuMicros(child.pid)
  const seen = yield* Load.crowd(target, crowdSize, pacedRampMs)
  into.add("crowdWhole", seen.whole)
  into.add("crowdAtOnce", seen.atOnce)
  into.add("crowdFirstByteP99", percentile(seen.firstByteMs, 99))
  into.add("crowdGapP99", percentile(seen.longestGapMs, 99))
  into.add("crowdCpu", (cpuMicros(child.pid) - before) / (crowdSize * eventsOf("paced")))
  count(into, seen.problems.length, seen.problems[0])
})

/** Few enough that no stream waits for another. */
export const gaps: Measure = Effect.fnUntraced(function* ({ target }, into, { gapStreams, pacedRampMs }) {
  const seen = yield* Load.crowd(target, gapStreams, pacedRampMs)
  into.add("gapP50", ms(seen.gaps, 50))
  into.add("gapP99", ms(seen.gaps, 99))
  count(into, seen.problems.length, seen.problems[0])
})

const count = (into: Figures, failed: number, problem: string | undefined): void => {
  into.add("failed", failed)
  if (failed > 0) into.problem ??= problem
}

/**
 * Interleaved: a measure is taken of every entrant before the next measure begins, in an order that moves by one with
 * each round. What others do to the machine meanwhile meets all of them alike.
 */
export const interleaved = <N extends string>(
  entrants: ReadonlyArray<Asked & { readonly name: N }>,
  plan: Plan,
  say: (line: string) => void
) => {
  const measured: ReadonlyMap<N, Figures> = new Map(entrants.map(({ name }) => [name, new Figures()]))
  const each = (title: string, round: number, measure: Measure) =>
    Effect.forEach(
      turned(entrants, round),
      (entrant) => {
        say(`${title}: ${entrant.name}`)
        return measure(entrant, measured.get(entrant.name) ?? new Figures(), plan)
      },
      { discard: true }
    )
  return { measured, each }
}

export const run = Effect.fnUntraced(function* (
  entrants: ReadonlyArray<Entrant>,
  plan: Plan,
  say: (line: string) => void
) {
  const { each, measured } = interleaved(entrants, plan, say)
  yield* each("memory at rest", 0, (entrant, into) =>
    Effect.sync(() => into.add("memoryBefore", residentMiB(entrant.child.pid)))
  )
  yield* each("warming up", 0, warm)
  for (let round = 0; round < plan.rounds; round++) {
    const of = `round ${round + 1} of ${plan.rounds}`
    yield* each(`${of}, 1 connection`, round, sequential)
    for (let turn = 0; turn < plan.rates; turn++) {
      yield* each(`${of}, 32 connections`, round + turn, rate(32))
      yield* each(`${of}, 64 connections`, round + turn, rate(64))
    }
    yield* each(`${of}, slow upstream`, round, slow)
    yield* each(`${of}, short streams`, round, brief)
    yield* each(`${of}, unpaced streams`, round, burst)
    yield* each(`${of}, gaps of paced streams`, round, gaps)
  }
  for (let round = 0; round < plan.crowds; round++) {
    yield* each(`${plan.crowdSize} streams, ${round + 1} of ${plan.crowds}`, round, crowd)
  }
  yield* each("memory after", 0, (entrant, into) =>
    Effect.sync(() => {
      into.add("memoryAfter", residentMiB(entrant.child.pid))
      into.add("memoryPeak", peakMiB(entrant.child.pid))
    })
  )
  return measured
})

/** Begins with another one in each round. */
export const turned = <A>(entrants: ReadonlyArray<A>, round: number): ReadonlyArray<A> =>
  entrants.map((_, index) => entrants[(index + round) % entrants.length]!)

export const warm: Measure = Effect.fnUntraced(function* ({ target }, into, { warmSeconds }) {
  const seen = yield* Load.rate(target, 32, warmSeconds)
  const streams = yield* Load.loop(target, { connections: 4, forMs: 500, kindOf: always("burst") })
  count(into, seen.failed, "see autocannon")
  count(into, streams.failed, streams.problem)
})
