import { errors } from "playwright-core"
import * as Chromium from "./Chromium.ts"
import { type Site, slower } from "./Site.ts"

/** How soon the largest part of a page is painted. */

export interface Paints {
  readonly name: string
  readonly fast: ReadonlyArray<number>
  readonly slow: ReadonlyArray<number>
}

export const paintRounds = 5

interface PagePainted {
  readonly name: string
  readonly address: string
  readonly isSignedOut?: boolean
}

export const pages: ReadonlyArray<PagePainted> = [
  { name: "sign-in", address: "/", isSignedOut: true },
  { name: "home", address: "/" },
  { name: "requests", address: "/requests" },
  { name: "usage", address: "/usage?range=30d" },
  { name: "keys, of 100,000", address: "/keys" },
  { name: "tasks, of 1,000,000", address: "/tasks" },
  { name: "dead letters, of 100,000", address: "/dead-letters" }
]

const paintOfLoad = async (
  { browser, origin, session }: Site,
  { address, isSignedOut }: PagePainted,
  speed: number
) => {
  const signedIn = isSignedOut === true ? [] : session
  const opened = await Chromium.open(browser, origin, signedIn, { slower: speed, isSlowNetwork: true })
  try {
    await opened.page.goto(`/admin-ui${address}`)
    await Chromium.settled(opened.page)
    return await Chromium.largestPaint(opened.page)
  } finally {
    await opened.page.context().close()
  }
}

const mostTries = 3

/**
 * Now and then a load stands still in Chromium: what the server has sent waits in the browser's sockets, and its slow
 * network does not read it. Such a load is begun again.
 */
export const paintOf = async (site: Site, page: PagePainted, speed: number): Promise<number> => {
  for (let tried = 1; ; tried++) {
    try {
      return await paintOfLoad(site, page, speed)
    } catch (cause) {
      if (tried === mostTries || !(cause instanceof errors.TimeoutError)) throw cause
    }
  }
}

export const paintsOf = async (site: Site, page: PagePainted): Promise<Paints> => {
  const fast: Array<number> = []
  const slow: Array<number> = []
  for (let round = 0; round < paintRounds; round++) {
    fast.push(await paintOf(site, page, 1))
    slow.push(await paintOf(site, page, slower))
  }
  return { name: page.name, fast, slow }
}
