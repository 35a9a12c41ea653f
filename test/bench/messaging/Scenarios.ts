import { Figures } from "../Figures.ts"
import { type Name, type Window, windows } from "./Contenders.ts"
import { type Kind, kinds } from "./Work.ts"

/** How many tasks somebody waits for at once. */
export const trips = [1, 64] as const
export type Trips = (typeof trips)[number]

export type Scenario = `publish ${Kind} ${Window}` | `consume ${Kind}` | `trip ${Trips}`

/** In the order of the table. */
export const scenarios: ReadonlyArray<Scenario> = [
  ...kinds.flatMap((kind) => windows.map((window) => `publish ${kind} ${window}` as const)),
  ...kinds.map((kind) => `consume ${kind}` as const),
  ...trips.map((count) => `trip ${count}` as const)
]

/** What is measured of each. Processor time is of one message. */
export const metrics = {
  rate: { title: "messages/s", digits: 0 },
  p50: { title: "p50, ms", digits: 2 },
  p99: { title: "p99, ms", digits: 2 },
  cpu: { title: "processor time, µs", digits: 0 },
  serverCpu: { title: "of the broker, µs", digits: 0 }
} as const
export type Metric = keyof typeof metrics

export class Measured {
  readonly #figures = new Map<Scenario, Map<Name, Figures<Metric>>>()
  /** Messages that failed, and of each contender the first reason. */
  failed = 0
  readonly problems = new Map<Name, string>()

  /** None where the contender was not asked. */
  of(scenario: Scenario, name: Name): Figures<Metric> | undefined {
    return this.#figures.get(scenario)?.get(name)
  }

  /** To add to. */
  into(scenario: Scenario, name: Name): Figures<Metric> {
    const row = this.#figures.get(scenario) ?? new Map<Name, Figures<Metric>>()
    this.#figures.set(scenario, row)
    const figures = row.get(name) ?? new Figures<Metric>()
    row.set(name, figures)
    return figures
  }
}
