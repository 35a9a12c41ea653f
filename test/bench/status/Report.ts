import { cpus } from "node:os"
import { cell, line, number, row } from "../Markdown.ts"
import { median, paired, spread } from "../Statistics.ts"
import type { GraphFigures } from "./Graph.ts"
import * as Hub from "./Hub.ts"
import * as Streams from "./Streams.ts"

export interface Measured {
  readonly hub: Hub.Measured
  readonly streams: Streams.Measured
  readonly graphs: ReadonlyArray<GraphFigures>
}

/** The run in Markdown, ready for `test/bench/README.md`. */
export const report = ({ graphs, hub, streams }: Measured, plan: Streams.Plan, machine: string): string =>
  [
    machine,
    "",
    row(["", "", "p50, ms", "p99, ms", "processor time, µs: hub, Redis, broker, load"]),
    row(["---", "---:", "---:", "---:", "---"]),
    hubRow(`hub: a backlog of ${number(Hub.backlog, 0)} events`, hub.backlog),
    row(["the broker's deliveries of it to nobody", `${cell(hub.broker, 0)}/s`, "", "", ""]),
    hubRow(`hub: ${number(Hub.goal, 0)}/s published`, hub.atGoal),
    hubRow(`hub: ${number(Hub.goal / 2, 0)}/s published`, hub.atHalf),
    hubRow("hub: half of what it stored of those", hub.atHalfOfStored),
    row([
      `publish to client, ${number(plan.streams, 0)} open streams`,
      `${number(1_000 / plan.everyMs, 0)}/s`,
      number(streams.latency.p50, 2),
      number(streams.latency.p99, 2),
      ""
    ]),
    ...Streams.routes.flatMap((route) => {
      const { bare, route: own, silent } = streams.requests[route]
      const figures = [
        [`\`/${route}\``, own],
        ["the same bytes, one read of Redis", bare],
        ["the same bytes, no read", silent]
      ] as const
      return figures.map(([what, rates]) => row([what, `${cell(rates, 0)}/s`, "", "", ""]))
    }),
    ...graphs.map(({ build, edges, nodes }) =>
      row([
        `graph of ${number(nodes, 0)} nodes, ${number(edges, 0)} edges`,
        "",
        number(build.median, 2),
        `${number(build.slowest, 2)} (slowest)`,
        ""
      ])
    ),
    row(["an open stream, each of its own task", `${number(streams.memory.ofOwnTasks, 0)} KiB`, "", "", ""]),
    row(["an open stream, all of one task", `${number(streams.memory.ofOneTask, 0)} KiB`, "", "", ""]),
    row(["an open stream that knows of no task", `${number(streams.memory.bare, 0)} KiB`, "", "", ""]),
    "",
    `Events of about 420 bytes, on one stream and one Redis; ${Hub.runningTasks} tasks run at once and say ` +
      `${Hub.eventsPerTask} things each, in turn. A time is from the publish of an event to when it is stored, or at ` +
      "the client with its last byte. Rates of requests are medians of interleaved rounds, in brackets the least and " +
      "the most. Hub and server are processes of their own, and share the machine with the broker, Redis and the load.",
    "",
    ...sustained(hub),
    line(
      hub.atHalf.p99 < 50,
      `at ${number(Hub.goal / 2, 0)} events/s, p99 from publish to stored is ${number(hub.atHalf.p99, 1)} ms; to reach: under 50 ms`
    ),
    line(
      hub.atHalfOfStored.p99 < 50,
      `at ${number(hub.atHalfOfStored.storedPerSecond, 0)}, half of what this machine has time for, it is ${number(hub.atHalfOfStored.p99, 1)} ms; to reach: under 50 ms`
    ),
    line(
      streams.latency.p99 < 20,
      `p99 from publish to client is ${number(streams.latency.p99, 1)} ms with ${number(plan.streams, 0)} open streams; to reach: under 20 ms`
    ),
    ...Streams.routes.map((route) => {
      const { bare, route: own, silent } = streams.requests[route]
      const ofBare = ratios(own, bare)
      return line(
        median(ofBare) >= 0.6,
        `\`/${route}\` answers ${spreadOf(ofBare)} of the requests/s of a handler that reads the same bytes from Redis ` +
          `(and ${spreadOf(ratios(own, silent))} of one that reads nothing); to reach: 60 %`
      )
    }),
    ...graphs
      .slice(-1)
      .map(({ build, nodes }) =>
        line(
          build.slowest < 200,
          `a graph of ${number(nodes, 0)} nodes takes ${number(build.median, 0)} ms, at most ${number(build.slowest, 0)}; to reach: under 200 ms`
        )
      )
  ].join("\n")

/** Where the machine has no processor time left for what is published, the hub stores what reaches it. */
const sustained = ({ atGoal, backlog }: Hub.Measured): ReadonlyArray<string> => {
  const cores = Object.values(atGoal.cpu).reduce((sum, micros) => sum + micros, 0) * Hub.goal * 1e-6
  return [
    line(
      backlog.storedPerSecond >= Hub.goal,
      `the hub stores ${number(backlog.storedPerSecond, 0)} events/s of what is there; to reach: ${number(Hub.goal, 0)}`
    ),
    line(
      atGoal.storedPerSecond >= Hub.goal * 0.98,
      `it stores ${number(atGoal.storedPerSecond, 0)} events/s while ${number(Hub.goal, 0)} are published each second, for ` +
        `which broker, Redis, hub and publisher need ${number(cores, 1)} cores here, of ${cpus().length}`
    )
  ]
}

const hubRow = (what: string, { behind, cpu, p50, p99, storedPerSecond }: Hub.Pace): string => {
  const late = behind > Hub.goal / 100 ? ` (${number(behind, 0)} behind at the end)` : ""
  const shares = [cpu.hub, cpu.redis, cpu.broker, cpu.load].map((micros) => number(micros, 0)).join(", ")
  const timed = p99 > 0 ? [number(p50, 2), number(p99, 2)] : ["", ""]
  return row([what, `${number(storedPerSecond, 0)}/s stored${late}`, ...timed, shares])
}

const ratios = (own: ReadonlyArray<number>, other: ReadonlyArray<number>) => paired(own, other, (a, b) => a / b)

const percent = (ratio: number) => `${Math.round(ratio * 100)} %`

const spreadOf = (ratios: ReadonlyArray<number>): string => {
  const [least, most] = spread(ratios)
  return `${percent(median(ratios))} (${percent(least)}–${percent(most)})`
}
