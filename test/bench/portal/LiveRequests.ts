import autocannon from "autocannon"
import { Effect } from "effect"
import type { Upstream } from "../Entrants.ts"
import { line, number } from "../Markdown.ts"
import { bodies, path as proxyPath } from "../Scenario.ts"
import { median } from "../Statistics.ts"
import * as Chromium from "./Chromium.ts"
import { inBrowser, press, type Site, start } from "./Site.ts"

/** The page of live requests: while very many come, and while it stays open for hours. */

const tailPerSecond = 1_000
export const tailName = `a tail of ${number(tailPerSecond, 0)} requests a second`
export const tailSeconds = 30

export interface Tail {
  readonly sent: number
  readonly slowest: number
  readonly rows: number
  readonly note: string
}

/** Requests at an even rate, until it is stopped. */
const sending = (proxy: string, key: string, perSecond: number, seconds: number) => {
  let stop = () => {}
  const result = new Promise<number>((resolve, reject) => {
    const cannon = autocannon(
      {
        url: proxy + proxyPath,
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
        body: bodies.instant,
        connections: 16,
        overallRate: perSecond,
        duration: seconds,
        timeout: 10
      },
      (error, found) => (error ? reject(new Error(`autocannon: ${String(error)}`)) : resolve(found["2xx"]))
    )
    stop = () => cannon.stop()
  })
  return { result, stop: () => stop() }
}

export const tailOf = async ({ browser, origin, session }: Site, proxy: string, key: string): Promise<Tail> => {
  const opened = await Chromium.open(browser, origin, session, { slower: 1 })
  const { page } = opened
  await page.goto("/admin-ui/requests?range=15m")
  await Chromium.settled(page)
  const { result } = sending(proxy, key, tailPerSecond, tailSeconds)
  const rows = page.locator("main table tbody tr")
  await rows.first().waitFor({ timeout: 30_000 })
  await page.waitForTimeout(5_000)
  const slowest = await Chromium.slowestOf(opened, async () => {
    await rows.first().focus()
    await press(page, ..."jjjjkk", "Enter")
    await page.getByRole("dialog").waitFor()
    await press(page, "Escape")
    await page.waitForTimeout(5_000)
  })
  const sent = await result
  const tail: Tail = {
    sent,
    slowest,
    rows: await rows.count(),
    note: await page
      .locator("[class*=note]")
      .allInnerTexts()
      .then((texts) => texts.join(" "))
  }
  await page.context().close()
  return tail
}

const perSecond = 20

export interface Soak {
  /** As the page's timers count them. */
  readonly minutes: number
  /** The page's timers run this many times faster than the clock, and as many more requests come in a second. */
  readonly hurry: number
}

/** MiB that the scripts of the page held at the end of each minute. */
export interface Soaked extends Soak {
  readonly heap: ReadonlyArray<number>
}

/** Nobody watches a page for eight hours to learn one figure: what the page does again and again, it does more often here. */
const hurryTimers = (times: number) => `{
  const { setTimeout: once, setInterval: always } = window
  window.setTimeout = (act, delay = 0, ...given) => once(act, delay / ${times}, ...given)
  window.setInterval = (act, delay = 0, ...given) => always(act, delay / ${times}, ...given)
}`

/** The page of live requests, open for minutes. */
export const soak = Effect.fnUntraced(function* (
  { origin: upstream }: Upstream,
  { hurry, minutes }: Soak,
  say: (line: string) => void
) {
  const { key, proxy, site } = yield* start(upstream)
  return yield* inBrowser("the live page", async () => {
    const opened = await Chromium.open(site.browser, site.origin, site.session, { slower: 1 })
    await opened.page.addInitScript(hurryTimers(hurry))
    await opened.page.goto("/admin-ui/requests?range=15m")
    await Chromium.settled(opened.page)
    // readings take their time on a busy machine, and requests come until the last one
    const { result, stop } = sending(proxy, key, perSecond * hurry, (minutes / hurry) * 120 + 60)
    const newest = opened.page.locator("main table tbody tr").first().locator("time")
    const heap: Array<number> = []
    let seen = ""
    for (let minute = 1; minute <= minutes; minute++) {
      await opened.page.waitForTimeout(60_000 / hurry)
      heap.push(await Chromium.heapMiB(opened))
      const now = (await newest.getAttribute("datetime")) ?? ""
      if (now === seen) throw new Error(`after ${minute} minutes the page shows nothing after ${now}`)
      seen = now
      say(`minute ${minute}: ${number(heap.at(-1) ?? Number.NaN, 2)} MiB`)
    }
    stop()
    await result.catch(() => {})
    const soaked: Soaked = { minutes, hurry, heap }
    return soaked
  })
})

const mostGrowthMiB = 10

export const soakReport = ({ heap, hurry }: Soaked, machine: string): string => {
  const quarter = Math.max(1, Math.floor(heap.length / 4))
  // the tail is full after half a minute
  const growth = median(heap.slice(-quarter)) - median(heap.slice(1, 1 + quarter))
  const step = Math.max(1, Math.floor(heap.length / 16))
  return [
    machine,
    "",
    `${heap.length} minutes of the page of live requests, ${perSecond} requests a second` +
      (hurry === 1 ? "" : `, all of it and the page's timers ${hurry} times faster`) +
      `; MiB held by its scripts at the end of minutes: ${heap
        .map((value, index) => `${index + 1}: ${number(value, 1)}`)
        .filter((_, index) => index % step === 0 || index === heap.length - 1)
        .join(", ")}.`,
    "",
    line(growth < mostGrowthMiB, `it grew by ${number(growth, 2)} MiB; to reach: below ${mostGrowthMiB}`)
  ].join("\n")
}
