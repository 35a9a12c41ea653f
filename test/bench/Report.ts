import { includes, type Name, titles } from "./Entrants.ts"
import { type Figures, type Metric, metrics } from "./Figures.ts"
import type { Guarded } from "./Guarded.ts"
import type { Hostile } from "./Hostile.ts"
import type { Inner } from "./Inner.ts"
import { cell, line, number, row } from "./Markdown.ts"
import * as Memory from "./Memory.ts"
import type { Plan } from "./Plan.ts"
import type { Proof } from "./Proof.ts"
import * as Questions from "./Questions.ts"
import type { Measured } from "./Rounds.ts"
import { streams } from "./Scenario.ts"
import type { Soaked } from "./Soak.ts"
import { median, paired, spread } from "./Statistics.ts"
import { days, type Usage } from "./Usage.ts"

/** The run in Markdown, ready for `test/bench/README.md`. */
export const report = (measured: Measured, proof: Proof | undefined, plan: Plan, machine: string): string =>
  [
    machine,
    "",
    table(measured),
    "",
    `Medians of ${plan.rounds} interleaved rounds (rates at 32 and 64 connections: of ${plan.rounds * plan.rates}; 512 streams: of ${plan.crowds}), in brackets the least and the most. ` +
      "Requests and responses have 500 bytes; load generator, upstream, entrant, Redis and PostgreSQL share the machine. " +
      `Paced streams: ${streams.paced.chunks} chunks, one in ${streams.paced.everyMs} ms; unpaced: ${streams.burst.chunks} chunks. Memory of *direct* is the ` +
      "mock upstream's.",
    "",
    ...[...measured.keys()].map((name) => `- *${titles[name]}*: ${includes[name]}.`),
    "",
    ...verdicts(measured, plan),
    ...(proof === undefined ? [] : [line(proved(proof), proofText(proof))]),
    ...guard(measured),
    ...problems(measured)
  ].join("\n")

const metricNames = Object.keys(metrics).filter((name): name is Metric => name in metrics)

const table = (measured: Measured): string => {
  const names = [...measured.keys()]
  return [
    row(["", ...names.map((name) => titles[name])]),
    row(["---", ...names.map(() => "---:")]),
    ...metricNames.map((metric) => row([metrics[metric].title, ...names.map((name) => figure(measured, name, metric))]))
  ].join("\n")
}

const figure = (measured: Measured, name: Name, metric: Metric): string => {
  const figures = measured.get(name)
  const direct = measured.get("direct")
  const { digits } = metrics[metric]
  if (figures === undefined) return "–"
  if (metric === "failed") return number(total(figures, "failed"), digits)
  if (metric === "addedP50" || metric === "addedP99") {
    return name === "direct" || direct === undefined ? "–" : cell(added(figures, direct, metric), digits)
  }
  return cell(figures.of(metric), digits)
}

const added = (figures: Figures, direct: Figures, metric: "addedP50" | "addedP99"): ReadonlyArray<number> => {
  const of = metric === "addedP50" ? "p50" : "p99"
  return paired(figures.of(of), direct.of(of), (through, straight) => through - straight)
}

const total = (figures: Figures, metric: Metric): number => figures.of(metric).reduce((sum, value) => sum + value, 0)

/** What was to be reached, and whether it is. */
const verdicts = (measured: Measured, plan: Plan): ReadonlyArray<string> => {
  const everything = measured.get("everything")
  const portkey = measured.get("portkey")
  const bare = measured.get("bare")
  const direct = measured.get("direct")
  if (everything === undefined) return []
  const compare = (other: Figures | undefined, least: number, what: string, unit: (ratio: number) => string) =>
    other === undefined
      ? []
      : (["rate32", "rate64"] as const).map((metric) => {
          const ratios = paired(everything.of(metric), other.of(metric), (ours, theirs) => ours / theirs)
          const [from, to] = spread(ratios)
          const at = metric === "rate32" ? 32 : 64
          return line(
            median(ratios) >= least,
            `everything on makes ${unit(median(ratios))} (${unit(from)}–${unit(to)}) ${what} at ${at} connections; to reach: ${unit(least)}`
          )
        })
  const times = (ratio: number) => `${ratio.toFixed(1)} times`
  const percent = (ratio: number) => `${Math.round(ratio * 100)} %`
  const effort = (other: Figures | undefined, name: Name) => {
    if (other === undefined) return []
    const ratios = paired(everything.of("cpu"), other.of("cpu"), (ours, theirs) => ours / theirs)
    const [from, to] = spread(ratios)
    return [
      `- everything on takes ${median(ratios).toFixed(2)} times (${from.toFixed(2)}–${to.toFixed(2)}) the processor time of ` +
        `${titles[name]} for a request, helper threads included`
    ]
  }
  const streams = everything.of("crowdWhole")
  return [
    ...compare(portkey, 3.5, "Portkey's requests/s", times),
    ...compare(bare, 0.4, "of the bare proxy's requests/s", percent),
    ...effort(portkey, "portkey"),
    ...effort(bare, "bare"),
    ...(direct === undefined
      ? []
      : [
          line(
            median(added(everything, direct, "addedP50")) < 1,
            `everything on adds ${number(median(added(everything, direct, "addedP50")), 3)} ms to the p50 at one connection; to reach: under 1 ms`
          )
        ]),
    ...(streams.length === 0
      ? []
      : [
          line(
            streams.every((whole) => whole === plan.crowdSize),
            `of ${plan.crowdSize} paced streams at once, ${Math.min(...streams)} were whole in the worst of ${streams.length} tries`
          )
        ])
  ]
}

/** A query on the way of a request would make at least one statement for each; two scripts are what one alone needs. */
const proved = ({ recorded, redisScripts, requests, statements }: Proof): boolean =>
  statements < requests / 20 && redisScripts <= 2 * requests && recorded === requests

const proofText = ({ batches, recorded, redisScripts, requests, statements }: Proof): string =>
  `for ${number(requests, 0)} requests with everything on, Redis ran ${number(redisScripts, 0)} scripts ` +
  `(${(redisScripts / requests).toFixed(2)} each; other users of the server count too); PostgreSQL had ` +
  `${number(statements, 0)} statements (${(statements / requests).toFixed(3)} each): ${batches} batches of usage ` +
  `records with one each, and ${statements - batches} more; ${number(recorded, 0)} records were written`

/** Whether the upstream was ever what was measured. */
const guard = (measured: Measured): ReadonlyArray<string> => {
  const direct = measured.get("direct")
  const others = [...measured].flatMap(([name, figures]) => (name === "direct" ? [] : [median(figures.of("rate64"))]))
  if (direct === undefined || others.length === 0) return []
  const factor = median(direct.of("rate64")) / Math.max(...others)
  const text = `the mock upstream alone answers ${factor.toFixed(1)} times as much as the fastest entrant; to reach: 3 times`
  return [line(factor >= 3, text)]
}

const problems = (measured: Measured): ReadonlyArray<string> =>
  [...measured].flatMap(([name, { problem }]) =>
    problem === undefined ? [] : [`- first failure of *${titles[name]}*: ${problem}`]
  )

export const soakReport = (soaked: Soaked, machine: string): string =>
  [
    machine,
    "",
    `${soaked.minutes} minutes of load over 32 connections with everything on: ${number(soaked.answered, 0)} requests ` +
      `answered (${number(soaked.answered / soaked.minutes / 60, 0)}/s), p50 ${number(soaked.p50, 1)} ms, p99 ${number(soaked.p99, 1)} ms.`,
    "",
    Memory.text(soaked.memory),
    line(
      soaked.failed === 0,
      `${soaked.failed} requests failed${soaked.problem === undefined ? "" : ` (${soaked.problem})`}; to reach: none`
    ),
    line(
      soaked.recorded === soaked.answered + soaked.failed,
      `${number(soaked.recorded, 0)} usage records in PostgreSQL; to reach: one for each request`
    )
  ].join("\n")

export const innerReport = (
  { leastMicros, medianMicros, requestsPerRound, rounds }: Inner,
  guarded: Guarded,
  machine: string
): string =>
  [
    machine,
    "",
    `The gateway's own work for a request, without sockets and servers, in ${rounds} rounds of ${number(requestsPerRound, 0)}: ` +
      `${number(leastMicros, 2)} µs in the fastest, ${number(medianMicros, 2)} µs in the middle.`,
    "",
    `pii-redact on a stream of ${number(guarded.chunks, 0)} chunks, with values to redact and placeholders to restore, in ${guarded.rounds} rounds: ` +
      `${number(guarded.leastMicros, 2)} µs per chunk in the fastest, ${number(guarded.medianMicros, 2)} µs in the middle; ` +
      `at most ${guarded.maxHeld} characters held.`
  ].join("\n")

export const hostileReport = (
  { alone, attacks, beside, connections, cores, minutes, peak, running }: Hostile,
  machine: string
): string => {
  const added = beside.p99 - alone.p99
  return [
    machine,
    "",
    `${minutes} minutes beside ${number(connections, 0)} hostile connections of keys that may do next to nothing. A good key's requests: ` +
      `alone p50 ${number(alone.p50, 1)} ms, p99 ${number(alone.p99, 1)} ms; beside them p50 ${number(beside.p50, 1)} ms, p99 ` +
      `${number(beside.p99, 1)} ms, ${number(beside.answered, 0)} answered.`,
    `Attacks: ${attacks.join(", ")}. The gateway took ${number(cores.gateway, 2)} cores, the attackers, at the lowest priority, ${number(cores.attackers, 2)}.`,
    "",
    line(added <= 100, `p99 grew by ${number(added, 1)} ms; to reach: at most 100`),
    line(peak < 600, `the gateway's memory peaked at ${number(peak, 0)} MiB; to reach: below 600`),
    line(
      beside.failed === 0,
      `${beside.failed} of the good key's requests failed${beside.problem === undefined ? "" : ` (${beside.problem})`}; to reach: none`
    ),
    ...(running ? [] : [line(false, "the gateway ended")])
  ].join("\n")
}

export const usageReport = ({ made, memory, questions, rows, summed, sums }: Usage, machine: string): string =>
  [
    machine,
    "",
    `${number(rows, 0)} usage rows over ${days} days, made in ${number(made, 0)} s; the gateway summed them up in ` +
      `${number(summed, 0)} s, into ${number(sums, 0)} rows.`,
    "",
    ...Questions.table(questions),
    "",
    `Medians of ${Questions.tries}, in brackets the least and the most. Resident memory of the process: ${number(memory.before, 0)} MiB ` +
      `before, at most ${number(memory.peak, 0)} MiB.`
  ].join("\n")
