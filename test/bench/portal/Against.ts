import { resolve } from "node:path"
import { Effect } from "effect"
import type { Upstream } from "../Entrants.ts"
import * as Lists from "../Lists.ts"
import { cell, ratioCell, row } from "../Markdown.ts"
import { median } from "../Statistics.ts"
import type { Part } from "./Bench.ts"
import { deeds, interactionOf } from "./Interactions.ts"
import { largeTaskOf, largeTasks } from "./LargeTasks.ts"
import { tailName, tailOf } from "./LiveRequests.ts"
import { pages, paintOf } from "./Paints.ts"
import { inBrowser, type Site, slower, start } from "./Site.ts"

/** This portal and that of another checkout, by turns, each before a large installation of its own. */

interface Portal {
  readonly site: Site
  readonly proxy: string
  readonly key: string
}

interface Figure {
  readonly part: Part
  readonly name: string
  readonly of: (portal: Portal) => Promise<number>
}

const figures: ReadonlyArray<Figure> = [
  ...pages.map((page): Figure => ({ part: "paints", name: page.name, of: ({ site }) => paintOf(site, page, slower) })),
  ...deeds.map(
    (deed): Figure => ({ part: "interactions", name: deed.name, of: ({ site }) => interactionOf(site, deed, 1) })
  ),
  ...largeTasks.map(
    (task): Figure => ({
      part: "huge",
      name: task.name,
      of: async ({ site }) => median((await largeTaskOf(site, task)).interactions)
    })
  ),
  {
    part: "tail",
    name: tailName,
    of: async ({ key, proxy, site }) => (await tailOf(site, proxy, key)).slowest
  }
]

export interface Compared {
  readonly figure: Figure
  readonly here: ReadonlyArray<number>
  readonly other: ReadonlyArray<number>
}

const rounds = 5

export const run = Effect.fnUntraced(function* (
  { origin: upstream }: Upstream,
  folder: string,
  wanted: ReadonlyArray<Part>,
  say: (line: string) => void
) {
  const filled = Effect.fnUntraced(function* (checkout?: string) {
    const { installation, ...portal } = yield* start(upstream, checkout)
    yield* Lists.fill(installation.store, portal.proxy, say)
    return portal
  })
  const here = yield* filled()
  const other = yield* filled(resolve(folder))
  return yield* Effect.forEach(
    figures.filter(({ part }) => wanted.includes(part)),
    (figure) => {
      say(`${figure.part}: ${figure.name}`)
      return inBrowser(figure.name, async (): Promise<Compared> => {
        const found = new Map<Portal, Array<number>>([here, other].map((portal) => [portal, []]))
        for (let round = 0; round < rounds; round++) {
          for (const portal of round % 2 === 0 ? [here, other] : [other, here])
            found.get(portal)?.push(await figure.of(portal))
        }
        return { figure, here: found.get(here) ?? [], other: found.get(other) ?? [] }
      })
    }
  )
})

export const report = (compared: ReadonlyArray<Compared>, machine: string): string => {
  const table = (title: string, all: ReadonlyArray<Compared>) =>
    all.length === 0
      ? []
      : [
          row([title, "this portal", "the other one", "ratio"]),
          row(["---", "---:", "---:", "---:"]),
          ...all.map(({ figure, here, other }) =>
            row([figure.name, cell(here, 0), cell(other, 0), ratioCell(here, other)])
          ),
          ""
        ]
  const paints = compared.filter(({ figure }) => figure.part === "paints")
  const interactions = compared.filter(({ figure }) => figure.part !== "paints")
  return [
    machine,
    "",
    ...table(`largest paint with a processor ${slower} times slower, ms`, paints),
    ...table("slowest interaction, ms", interactions),
    `${Lists.contents} 10 Mbit/s for the paints. Medians of ${rounds} turns, in brackets the least and the most; of the ratios the quartiles.`
  ].join("\n")
}
