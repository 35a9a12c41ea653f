import { Effect } from "effect"
import type { BenchFailed, Child } from "./Child.ts"
import { everythingOn, type Upstream } from "./Entrants.ts"
import type { Target } from "./Exchange.ts"
import { Figures } from "./Figures.ts"
import { cpuMicros, familyCpuMicros, familyResidentMiB, listener } from "./Footprint.ts"
import * as Gateway from "./Gateway.ts"
import { ms } from "./Latency.ts"
import * as Load from "./Load.ts"
import { cell, number, row } from "./Markdown.ts"
import type { Plan } from "./Plan.ts"
import { turned } from "./Rounds.ts"

/** One process of the role gateway beside two workers, on the same database and Redis, with everything on. */
export type Measured = ReadonlyMap<Name, Figures<Metric>>

const names = { one: "one process", two: "two workers" } as const
type Name = keyof typeof names

const metrics = {
  kept: { title: "requests/s at 64 connections", digits: 0 },
  keptCpu: { title: "processor time per request, µs", digits: 0 },
  keptCores: { title: "cores taken: gateway", digits: 2 },
  loadCores: { title: "cores taken: load generator and upstream", digits: 2 },
  redisCores: { title: "cores taken: Redis", digits: 2 },
  fresh: { title: "requests/s, each on a connection of its own", digits: 0 },
  freshCpu: { title: "processor time for each of them, µs", digits: 0 },
  slowP50: { title: "p50 at 64 connections, upstream of 20 ms", digits: 1 },
  slowP99: { title: "p99 at 64 connections, upstream of 20 ms", digits: 1 },
  memory: { title: "resident memory of all processes, MiB", digits: 0 },
  failed: { title: "failed requests", digits: 0 }
} as const
type Metric = keyof typeof metrics

interface Entrant {
  readonly name: Name
  readonly child: Child
  readonly target: Target
}

type Measure = (entrant: Entrant, into: Figures<Metric>, plan: Plan) => Effect.Effect<void, BenchFailed>

const connections = 64
const redisPort = 6379

export const run = Effect.fnUntraced(function* (upstream: Upstream, plan: Plan, say: (line: string) => void) {
  const entrants = yield* start(upstream.origin)
  const measured: Measured = new Map(entrants.map(({ name }) => [name, new Figures<Metric>()]))
  const each = (title: string, round: number, measure: Measure) =>
    Effect.forEach(
      turned(entrants, round),
      (entrant) => {
        say(`${title}: ${names[entrant.name]}`)
        return measure(entrant, measured.get(entrant.name) ?? new Figures(), plan)
      },
      { discard: true }
    )
  yield* each("warming up", 0, warm)
  const rounds = plan.rounds * plan.rates
  for (let round = 0; round < rounds; round++) {
    const of = `round ${round + 1} of ${rounds}`
    yield* each(`${of}, kept connections`, round, kept(upstream.child))
    yield* each(`${of}, new connections`, round, fresh)
    yield* each(`${of}, slow upstream`, round, slow)
  }
  yield* each("memory", 0, ({ child }, into) => Effect.sync(() => into.add("memory", familyResidentMiB(child.pid))))
  return measured
})

const start = Effect.fnUntraced(function* (upstream: string) {
  const installation = yield* Gateway.makeInstallation(upstream)
  const operator = yield* Gateway.startProcess("operator API", installation, ["control"])
  const calls = Gateway.callsOf("operator API", operator.control, installation.token)
  yield* calls.setPrices
  const headers = { authorization: `Bearer ${yield* calls.key(everythingOn)}` }
  const entrant = Effect.fnUntraced(function* (name: Name, flags: ReadonlyArray<string>) {
    const { child, origin } = yield* Gateway.startProcess(names[name], installation, ["gateway", ...flags])
    const started: Entrant = { name, child, target: { origin, headers } }
    return started
  })
  return [yield* entrant("one", []), yield* entrant("two", ["--workers", "2"])]
})

const warm: Measure = Effect.fnUntraced(function* ({ target }, into, { warmSeconds }) {
  const seen = yield* Load.rate(target, connections, warmSeconds)
  into.add("failed", seen.failed)
})

const kept = (upstream: Child): Measure =>
  Effect.fnUntraced(function* ({ child, target }, into, { rateSeconds }) {
    const redis = listener(redisPort)
    const spent = () => ({
      gateway: familyCpuMicros(child.pid),
      load: cpuMicros(process.pid) + cpuMicros(upstream.pid),
      redis: redis === undefined ? Number.NaN : cpuMicros(redis)
    })
    const before = spent()
    const begun = performance.now()
    const seen = yield* Load.rate(target, connections, rateSeconds)
    const micros = (performance.now() - begun) * 1_000
    const after = spent()
    into.add("kept", seen.perSecond)
    into.add("keptCpu", (after.gateway - before.gateway) / seen.answered)
    into.add("keptCores", (after.gateway - before.gateway) / micros)
    into.add("loadCores", (after.load - before.load) / micros)
    into.add("redisCores", (after.redis - before.redis) / micros)
    into.add("failed", seen.failed)
  })

const fresh: Measure = Effect.fnUntraced(function* ({ child, target }, into, { rateSeconds }) {
  const before = familyCpuMicros(child.pid)
  const forMs = rateSeconds * 1_000
  const seen = yield* Load.loop(target, { connections, forMs, kindOf: () => "instant", reconnects: true })
  into.add("fresh", (seen.answered / seen.elapsedMs) * 1_000)
  into.add("freshCpu", (familyCpuMicros(child.pid) - before) / seen.answered)
  into.add("failed", seen.failed)
})

const slow: Measure = Effect.fnUntraced(function* ({ target }, into, { slowMs }) {
  const seen = yield* Load.loop(target, { connections, forMs: slowMs, kindOf: () => "slow" })
  into.add("slowP50", ms(seen.total, 50))
  into.add("slowP99", ms(seen.total, 99))
  into.add("failed", seen.failed)
})

const metricNames = Object.keys(metrics).filter((name): name is Metric => name in metrics)

export const report = (measured: Measured, plan: Plan, machine: string): string =>
  [
    machine,
    "",
    row(["", ...[...measured.keys()].map((name) => names[name])]),
    row(["---", ...[...measured.keys()].map(() => "---:")]),
    ...metricNames.map((metric) =>
      row([
        metrics[metric].title,
        ...[...measured.values()].map((figures) =>
          metric === "failed"
            ? number(
                figures.of(metric).reduce((sum, value) => sum + value, 0),
                0
              )
            : cell(figures.of(metric), metrics[metric].digits)
        )
      ])
    ),
    "",
    `Medians of ${plan.rounds * plan.rates} interleaved rounds, in brackets the least and the most.`
  ].join("\n")
