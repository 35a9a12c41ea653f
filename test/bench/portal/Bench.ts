import { Effect } from "effect"
import type { Upstream } from "../Entrants.ts"
import * as Lists from "../Lists.ts"
import { cell, line, number, row } from "../Markdown.ts"
import { median } from "../Statistics.ts"
import * as Usage from "../Usage.ts"
import { deeds, type Interactions, interactionsOf } from "./Interactions.ts"
import { type LargeTaskDrawn, largeTaskOf, largeTasks } from "./LargeTasks.ts"
import { type Tail, tailName, tailOf, tailSeconds } from "./LiveRequests.ts"
import { type Paints, pages, paintRounds, paintsOf } from "./Paints.ts"
import { inBrowser, interactionRounds, slower, start } from "./Site.ts"

/** The portal in Chromium, before a large installation: how soon it is there, and how soon it follows the hand. */

export interface Measured {
  /** The filled usage rows are counted here; the few requests that the bench itself sends are not. */
  readonly usageRows: number
  readonly paints: ReadonlyArray<Paints>
  readonly interactions: ReadonlyArray<Interactions>
  readonly huge: ReadonlyArray<LargeTaskDrawn>
  readonly tails: ReadonlyArray<Tail>
}

export const parts = ["paints", "interactions", "huge", "tail"] as const
export type Part = (typeof parts)[number]

export const run = Effect.fnUntraced(function* (
  { origin: upstream }: Upstream,
  wanted: ReadonlyArray<Part>,
  usageRows: number,
  say: (line: string) => void
) {
  const { installation, key, proxy, site } = yield* start(upstream)
  yield* Lists.fill(installation.store, proxy, say)
  if (usageRows > 0) yield* Usage.fill(installation.store, usageRows, say)
  const each = <One extends { readonly name: string }, A>(
    part: Part,
    all: ReadonlyArray<One>,
    measure: (one: One) => Promise<A>
  ) =>
    Effect.forEach(wanted.includes(part) ? all : [], (one) => {
      say(`${part}: ${one.name}`)
      return inBrowser(one.name, () => measure(one))
    })
  const measured: Measured = {
    usageRows,
    paints: yield* each("paints", pages, (one) => paintsOf(site, one)),
    interactions: yield* each("interactions", deeds, (one) => interactionsOf(site, one)),
    huge: yield* each("huge", largeTasks, (one) => largeTaskOf(site, one)),
    tails: yield* each("tail", [{ name: tailName }], () => tailOf(site, proxy, key))
  }
  return measured
})

const mostPaintMs = 1_500
const mostInteractionMs = 100

export const report = ({ huge, interactions, paints, tails, usageRows }: Measured, machine: string): string =>
  [
    machine,
    "",
    `${Lists.contents} ${number(usageRows, 0)} requests of ${Usage.days} days.`,
    "",
    row(["largest paint, ms", "processor as it is", `${slower} times slower`]),
    row(["---", "---:", "---:"]),
    ...paints.map(({ fast, name, slow }) => row([name, cell(fast, 0), cell(slow, 0)])),
    "",
    row(["slowest interaction, ms", "processor as it is", `${slower} times slower`]),
    row(["---", "---:", "---:"]),
    ...interactions.map(({ fast, name, slow }) => row([name, cell(fast, 0), cell(slow, 0)])),
    "",
    row(["large tasks", "drawn after, ms", "slowest interaction, ms", "elements in the page"]),
    row(["---", "---:", "---:", "---:"]),
    ...huge.map((one) => row([one.name, number(one.drawn, 0), cell(one.interactions, 0), number(one.elements, 0)])),
    "",
    ...tails.map(
      ({ note, rows, sent, slowest }) =>
        `Tail: ${number(sent, 0)} requests in ${tailSeconds} s; slowest interaction ${number(slowest, 0)} ms; ${rows} rows drawn. It says: “${note}”`
    ),
    "",
    `10 Mbit/s, 40 ms until an answer begins, nothing in the browser's cache. Medians of ${paintRounds} paints and ${interactionRounds} interactions, in brackets the least and the most.`,
    "",
    ...goal(
      paints.map(({ slow }) => median(slow)),
      mostPaintMs,
      `largest paint with a processor ${slower} times slower`
    ),
    ...goal(
      [...interactions.map(({ fast }) => median(fast)), ...huge.map((one) => median(one.interactions))],
      mostInteractionMs,
      "every interaction"
    )
  ].join("\n")

/** Says nothing of what was not measured. */
const goal = (measured: ReadonlyArray<number>, most: number, what: string): ReadonlyArray<string> =>
  measured.length === 0
    ? []
    : [
        line(
          measured.every((one) => one <= most),
          `${what}; to reach: at most ${number(most, 0)} ms`
        )
      ]
