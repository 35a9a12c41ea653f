import type { Page } from "playwright-core"
import * as Chromium from "./Chromium.ts"
import { interactionRounds, press, type Site, slower } from "./Site.ts"

/** How soon a page follows the hand. */

export interface Interactions {
  readonly name: string
  readonly fast: ReadonlyArray<number>
  readonly slow: ReadonlyArray<number>
}

interface Deed {
  readonly name: string
  readonly address: string
  readonly act: (page: Page) => Promise<unknown>
}

export const deeds: ReadonlyArray<Deed> = [
  {
    name: "moving down in the table of keys",
    address: "/keys",
    act: async (page) => {
      await page.locator("tbody tr").first().focus()
      await press(page, ..."jjjjjjkk")
    }
  },
  {
    name: "opening and closing a row of requests",
    address: "/requests?range=30d",
    act: async (page) => {
      await page.locator("tbody tr").first().focus()
      await press(page, "Enter")
      await page.getByRole("dialog").waitFor()
      await press(page, "Escape")
    }
  },
  {
    name: "the palette, and typing in it",
    address: "/",
    act: async (page) => {
      await press(page, "Control+k")
      await page.getByPlaceholder("Go to, find an id, do …").waitFor()
      await press(page, ..."audit", "Escape")
    }
  },
  { name: "from the home page to the keys and back", address: "/", act: (page) => press(page, "g", "k", "g", "h") },
  {
    name: "searching keys",
    address: "/keys",
    act: async (page) => {
      await press(page, "/")
      await press(page, ..."laptop 1")
    }
  },
  {
    name: "a tab of a task",
    address: "/tasks/sent-1",
    act: async (page) => {
      for (const tab of ["Graph", "Sequence", "Statuses"]) {
        await page.getByRole("tab", { name: tab }).click()
        await page.getByRole("tabpanel").waitFor()
      }
    }
  },
  { name: "another range on the usage page", address: "/usage", act: (page) => press(page, "[", "]") }
]

/** The slowest interaction of a deed that is done a second time: what is loaded when it is first used is loaded. */
export const interactionOf = async (
  { browser, origin, session }: Site,
  { act, address }: Deed,
  speed: number
): Promise<number> => {
  const opened = await Chromium.open(browser, origin, session, { slower: speed })
  await opened.page.goto(`/admin-ui${address}`)
  await Chromium.settled(opened.page)
  await act(opened.page)
  const slowest = await Chromium.slowestOf(opened, act)
  await opened.page.context().close()
  return slowest
}

export const interactionsOf = async (site: Site, deed: Deed): Promise<Interactions> => {
  const at = async (speed: number) => {
    const found: Array<number> = []
    for (let round = 0; round < interactionRounds; round++) found.push(await interactionOf(site, deed, speed))
    return found
  }
  return { name: deed.name, fast: await at(1), slow: await at(slower) }
}
