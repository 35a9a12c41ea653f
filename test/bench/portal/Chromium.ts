import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import { Effect } from "effect"
import { type Browser, type CDPSession, chromium, type Page } from "playwright-core"
import { eventuallyTrue } from "../../portal/EventuallyTrue.ts"
import type { Cookies } from "../../portal/SignIn.ts"
import { BenchFailed } from "../Child.ts"

/** Chromium, measured from outside: by what it tells a page of itself, and by its debugger. */

export interface Conditions {
  /** The processor is slowed down by this factor. */
  readonly slower: number
  /** 10 Mbit/s and 40 ms until an answer begins, as at the edge of a city. */
  readonly isSlowNetwork?: boolean
}

export interface Opened {
  readonly page: Page
  readonly debug: CDPSession
}

const executable = (): string | undefined =>
  process.env["CHROMIUM"] ??
  (process.env["PATH"] ?? "")
    .split(delimiter)
    .map((folder) => join(folder, "chromium"))
    .find((file) => existsSync(file))

export const browser = Effect.acquireRelease(
  Effect.tryPromise({
    try: async () => {
      const executablePath = executable()
      if (executablePath === undefined) throw new Error("PATH leads to no chromium, and CHROMIUM is not set")
      return chromium.launch({ executablePath, args: ["--no-sandbox", "--js-flags=--expose-gc"] })
    },
    catch: (cause) => new BenchFailed({ message: `Chromium does not start: ${String(cause)}` })
  }),
  (running) => Effect.promise(() => running.close())
)

const networkOf = (isSlow: boolean) => ({
  offline: false,
  latency: isSlow ? 40 : 0,
  downloadThroughput: isSlow ? 10_000_000 / 8 : -1,
  uploadThroughput: isSlow ? 10_000_000 / 8 : -1
})

/** A window of somebody who has never been here, with these cookies. */
export const open = async (
  running: Browser,
  origin: string,
  cookies: Cookies,
  { isSlowNetwork = false, slower }: Conditions
): Promise<Opened> => {
  const context = await running.newContext({ baseURL: origin, viewport: { width: 1280, height: 900 } })
  await context.addCookies(cookies)
  const page = await context.newPage()
  const debug = await context.newCDPSession(page)
  await debug.send("Network.enable")
  await debug.send("Network.emulateNetworkConditions", networkOf(isSlowNetwork))
  await debug.send("Emulation.setCPUThrottlingRate", { rate: slower })
  return { page, debug }
}

/** Waits until no part of the page loads any more. */
export const settled = async (page: Page) => {
  await page.locator("main#page h1, form input[name=token]").first().waitFor({ timeout: 60_000 })
  await eventuallyTrue(async () => (await page.locator("main [aria-busy=true]").count()) === 0)
}

/** Milliseconds from the navigation to the paint of the largest element. */
export const largestPaint = (page: Page): Promise<number> =>
  page.evaluate<number>(`new Promise((resolve) => {
    let last = NaN
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) last = entry.startTime
    }).observe({ type: "largest-contentful-paint", buffered: true })
    setTimeout(() => resolve(last), 100)
  })`)

const watchInteractions = `(() => {
  window.slowest = 0
  window.watcher ??= new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (entry.interactionId > 0) window.slowest = Math.max(window.slowest, entry.duration)
  })
  window.watcher.observe({ type: "event", durationThreshold: 16 })
})()`

/** Milliseconds of the slowest interaction in `act`: from the key or the click to the next frame. Below 16, it says 16. */
export const slowestOf = async ({ page }: Opened, act: (page: Page) => Promise<unknown>): Promise<number> => {
  await page.evaluate(watchInteractions)
  await act(page)
  // what an interaction took is told after its frame
  return page.evaluate<number>(`new Promise((resolve) => setTimeout(() => resolve(Math.max(16, window.slowest)), 400))`)
}

/** MiB of what the page's scripts hold, after all that they dropped is collected. */
export const heapMiB = async ({ debug }: Opened): Promise<number> => {
  await debug.send("HeapProfiler.collectGarbage")
  const { usedSize } = await debug.send("Runtime.getHeapUsage")
  return usedSize / 2 ** 20
}

export const elementsOf = (page: Page): Promise<number> =>
  page.evaluate<number>("document.querySelectorAll('*').length")
