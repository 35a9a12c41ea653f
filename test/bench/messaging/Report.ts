import { cell, line, number, row } from "../Markdown.ts"
import * as Memory from "../Memory.ts"
import { median, paired, spread } from "../Statistics.ts"
import { descriptions, type Name, names, type Window, windows } from "./Contenders.ts"
import type { Plan } from "./Plan.ts"
import { perSecond } from "./Rounds.ts"
import { type Measured, type Metric, metrics, type Scenario, scenarios, trips } from "./Scenarios.ts"
import type { Soaked } from "./Soak.ts"
import { kinds, prefetch } from "./Work.ts"

/** The run in Markdown, ready for `test/bench/README.md`. `absent`: who was left out, and why. */
export const report = (measured: Measured, absent: ReadonlyArray<string>, plan: Plan, machine: string): string =>
  [
    machine,
    "",
    table(measured),
    "",
    `Medians of ${plan.rounds} interleaved rounds, in brackets the least and the most. Messages have 512 bytes and are ` +
      `persistent; consumers have a prefetch of ${prefetch}. The time of a publish is from its call to its confirm, that of a ` +
      "round trip from the publish of a task to the news of its end. Everybody shares the machine with the broker, and " +
      "processor time of the broker is that of all who use it.",
    "",
    ...names
      .filter((name) => scenarios.some((scenario) => measured.of(scenario, name) !== undefined))
      .map((name) => `- *${descriptions[name].title}*: ${descriptions[name].includes}.`),
    ...absent.map((why) => `- ${why}.`),
    "",
    ...publishing(measured),
    ...consuming(measured),
    ...waiting(measured),
    ...peers(measured),
    line(measured.failed === 0, `${number(measured.failed, 0)} messages failed; to reach: none`),
    ...[...measured.problems].map(([name, problem]) => `- first failure of *${descriptions[name].title}*: ${problem}`)
  ].join("\n")

const metricNames = Object.keys(metrics).filter((name): name is Metric => name in metrics)

const table = (measured: Measured): string =>
  [
    row(["", "", ...metricNames.map((metric) => metrics[metric].title)]),
    row(["---", "---", ...metricNames.map(() => "---:")]),
    ...scenarios.flatMap((scenario) =>
      names.flatMap((name) => {
        const figures = measured.of(scenario, name)
        if (figures === undefined) return []
        const cells = metricNames.map((metric) => cell(figures.of(metric), metrics[metric].digits))
        return [row([titleOf(scenario), descriptions[name].title, ...cells])]
      })
    )
  ].join("\n")

const titleOf = (scenario: Scenario): string => {
  const [what, kind, window] = scenario.split(" ")
  if (what === "consume") return `consume, ${kind} queue`
  if (what === "trip") return kind === "1" ? "round trips, one at a time" : `round trips, ${kind} at once`
  return window === "1" ? `publish, ${kind} queue, one by one` : `publish, ${kind} queue, ${window} under way`
}

const percent = (ratio: number) => `${Math.round(ratio * 100)} %`
const times = (ratio: number) => `${ratio.toFixed(1)} times`

/** Of this library's rates to another's, round by round. */
const ratios = (measured: Measured, scenario: Scenario, to: Name): ReadonlyArray<number> =>
  paired(
    measured.of(scenario, "own")?.of("rate") ?? [],
    measured.of(scenario, to)?.of("rate") ?? [],
    (ours, theirs) => ours / theirs
  )

const spreadOf = (ratios: ReadonlyArray<number>, unit: (ratio: number) => string): string => {
  const [least, most] = spread(ratios)
  return `${unit(median(ratios))} (${unit(least)}–${unit(most)})`
}

/**
 * Held against amqplib with the same message: what the contract has a message say costs the broker a fifth of its time,
 * whoever sends it.
 */
const publishing = (measured: Measured): ReadonlyArray<string> =>
  kinds.flatMap((kind) =>
    windows.flatMap((window: Window) => {
      const found = ratios(measured, `publish ${kind} ${window}`, "alike")
      if (found.length === 0) return []
      const how = window === 1 ? "one by one" : `with ${window} under way`
      const bare = ratios(measured, `publish ${kind} ${window}`, "bare")
      const ofBare = bare.length === 0 ? "" : `, and ${spreadOf(bare, percent)} of what it does with constant bytes`
      return [
        line(
          median(found) >= 0.9,
          `${how}, this library publishes ${spreadOf(found, percent)} of what bare amqplib does with the same message to a ${kind} queue${ofBare}; to reach: 90 %`
        )
      ]
    })
  )

const consuming = (measured: Measured): ReadonlyArray<string> =>
  kinds.flatMap((kind) => {
    const rates = measured.of(`consume ${kind}`, "own")?.of("rate") ?? []
    if (rates.length === 0) return []
    const found = ratios(measured, `consume ${kind}`, "bare")
    const ofBare = found.length === 0 ? "" : `, ${spreadOf(found, percent)} of bare amqplib's`
    return [
      line(
        median(rates) >= 18_000 || median(found) >= 0.8,
        `it consumes ${cell(rates, 0)} messages/s of a ${kind} queue${ofBare}; to reach: 18,000/s or 80 %`
      )
    ]
  })

/** Three confirmed publishes, two of them to a stream and back: what the broker makes of that is the most there is. */
const waiting = (measured: Measured): ReadonlyArray<string> =>
  trips.flatMap((count) => {
    const rates = measured.of(`trip ${count}`, "own")?.of("rate") ?? []
    if (rates.length === 0) return []
    const found = ratios(measured, `trip ${count}`, "bare")
    const ofBare = found.length === 0 ? "" : `, ${spreadOf(found, percent)} of bare amqplib's`
    return [`- it makes ${cell(rates, 0)} ${titleOf(`trip ${count}`)} a second${ofBare}`]
  })

/** Next to the best that each of them does. */
const peers = (measured: Measured): ReadonlyArray<string> =>
  (["bullmq", "rascal", "celery"] as const).flatMap((name) => {
    const { title, windows } = descriptions[name]
    const compared = (
      [`publish classic ${Math.max(...windows) === 256 ? 256 : 1}`, "consume classic", "trip 64"] as const
    )
      .map((scenario) => [scenario, ratios(measured, scenario, name)] as const)
      .filter(([, found]) => found.length > 0)
      .map(([scenario, found]) => `${titleOf(scenario)}: ${spreadOf(found, times)}`)
    return compared.length === 0 ? [] : [`- this library next to ${title}: ${compared.join("; ")}`]
  })

export const soakReport = ({ done, left, memory, minutes }: Soaked, machine: string): string =>
  [
    machine,
    "",
    `${minutes} minutes of round trips with their statuses, 64 at once: ${number(done.messages, 0)} tasks ` +
      `(${number(perSecond(done), 0)}/s), p50 ${number(done.p50 ?? Number.NaN, 1)} ms, p99 ${number(done.p99 ?? Number.NaN, 1)} ms.`,
    "",
    Memory.text(memory),
    line(
      done.failed === 0,
      `${done.failed} tasks failed${done.problem === undefined ? "" : ` (${done.problem})`}; to reach: none`
    ),
    line(left === 0, `${number(left, 0)} tasks are left in the queue; to reach: none`)
  ].join("\n")
