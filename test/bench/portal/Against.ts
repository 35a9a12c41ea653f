import { resolve } from "node:path"
import { Effect } from "effect"
import type { Upstream } from "../Entrants.ts"
import * as Lists from "../Lists.ts"
import { cell, ratioCell, row } from "../Markdown.ts"
import { deeds, interactionOf } from "./Interactions.ts"
import { pages, paintOf } from "./Paints.ts"
import { inBrowser, type Site, slower, start } from "./Site.ts"

/** This portal and that of another checkout, by turns, each before a large installation of its own. */

interface Compared {
  readonly name: string
  readonly here: ReadonlyArray<number>
  readonly other: ReadonlyArray<number>
}

export interface Measured {
  readonly paints: ReadonlyArray<Compared>
  readonly interactions: ReadonlyArray<Compared>
}

const rounds = 5

export const run = Effect.fnUntraced(function* (
  { origin: upstream }: Upstream,
  folder: string,
  say: (line: string) => void
) {
  const filled = Effect.fnUntraced(function* (checkout?: string) {
    const { installation, proxy, site } = yield* start(upstream, checkout)
    yield* Lists.fill(installation.store, proxy, say)
    return site
  })
  const here = yield* filled()
  const other = yield* filled(resolve(folder))
  const byTurns = <One extends { readonly name: string }>(
    what: string,
    all: ReadonlyArray<One>,
    measure: (site: Site, one: One) => Promise<number>
  ) =>
    Effect.forEach(all, (one) => {
      say(`${what}: ${one.name}`)
      return inBrowser(one.name, async (): Promise<Compared> => {
        const found = new Map<Site, Array<number>>([here, other].map((site) => [site, []]))
        for (let round = 0; round < rounds; round++) {
          for (const site of round % 2 === 0 ? [here, other] : [other, here])
            found.get(site)?.push(await measure(site, one))
        }
        return { name: one.name, here: found.get(here) ?? [], other: found.get(other) ?? [] }
      })
    })
  const measured: Measured = {
    paints: yield* byTurns("paints", pages, (site, page) => paintOf(site, page, slower)),
    interactions: yield* byTurns("interactions", deeds, (site, deed) => interactionOf(site, deed, 1))
  }
  return measured
})

export const report = ({ interactions, paints }: Measured, machine: string): string => {
  const table = (title: string, all: ReadonlyArray<Compared>) => [
    row([title, "this portal", "the other one", "ratio"]),
    row(["---", "---:", "---:", "---:"]),
    ...all.map(({ here, name, other }) => row([name, cell(here, 0), cell(other, 0), ratioCell(here, other)]))
  ]
  return [
    machine,
    "",
    ...table(`largest paint with a processor ${slower} times slower, ms`, paints),
    "",
    ...table("slowest interaction, ms", interactions),
    "",
    `${Lists.contents} 10 Mbit/s for the paints. Medians of ${rounds} turns, in brackets the least and the most; of the ratios the quartiles.`
  ].join("\n")
}
