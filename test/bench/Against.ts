import { resolve } from "node:path"
import { Effect } from "effect"
import { everythingOn } from "./Entrants.ts"
import type { Target } from "./Exchange.ts"
import { cpuMicros } from "./Footprint.ts"
import * as Gateway from "./Gateway.ts"
import * as Load from "./Load.ts"
import { number, ratioCell, row } from "./Markdown.ts"
import { median } from "./Statistics.ts"

/** One version has a figure of each for every turn. */
interface Turns {
  readonly rates: Array<number>
  /** Microseconds of processor time for each request. */
  readonly cpu: Array<number>
}

interface Version {
  readonly pid: number
  readonly target: Target
  readonly turns: Turns
}

export interface Measured {
  readonly here: Turns
  readonly other: Turns
}

const connections = 32
const turnSeconds = 2
const warmUpSeconds = 6
const pairs = 30

/**
 * This gateway and that of another checkout, both with everything on, in turns. Turns that follow each other are compared
 * with each other, so that a machine that is slow for half a minute changes no ratio.
 */
export const run = Effect.fnUntraced(function* (upstream: string, folder: string, say: (line: string) => void) {
  const here = yield* start("this gateway", upstream)
  const other = yield* start(`the gateway in ${folder}`, upstream, resolve(folder))
  say("warming up")
  for (const { target } of [here, other]) yield* Load.rate(target, connections, warmUpSeconds)
  for (let pair = 1; pair <= pairs; pair++) {
    say(`pair ${pair} of ${pairs}`)
    for (const version of pair % 2 === 0 ? [here, other] : [other, here]) yield* takeTurn(version)
  }
  const measured: Measured = { here: here.turns, other: other.turns }
  return measured
})

const start = Effect.fnUntraced(function* (name: string, upstream: string, folder?: string) {
  const gateway = yield* Gateway.make(name, upstream, [], folder)
  yield* gateway.setPrices
  const version: Version = {
    pid: gateway.child.pid,
    target: { origin: gateway.origin, headers: { authorization: `Bearer ${yield* gateway.key(everythingOn)}` } },
    turns: { rates: [], cpu: [] }
  }
  return version
})

const takeTurn = Effect.fnUntraced(function* ({ pid, target, turns }: Version) {
  const before = cpuMicros(pid)
  const { answered, perSecond } = yield* Load.rate(target, connections, turnSeconds)
  turns.rates.push(perSecond)
  turns.cpu.push((cpuMicros(pid) - before) / answered)
})

export const report = ({ here, other }: Measured, machine: string): string => {
  const of = (title: string, mine: ReadonlyArray<number>, theirs: ReadonlyArray<number>) =>
    row([title, number(median(mine), 0), number(median(theirs), 0), ratioCell(mine, theirs)])
  return [
    machine,
    "",
    `Medians of ${pairs} pairs of turns of ${turnSeconds} s; of the ratios, in brackets, the quartiles.`,
    "",
    row(["", "this gateway", "the other one", "ratio"]),
    row(["---", "---:", "---:", "---:"]),
    of(`requests/s at ${connections} connections`, here.rates, other.rates),
    of("processor time per request, µs", here.cpu, other.cpu)
  ].join("\n")
}
