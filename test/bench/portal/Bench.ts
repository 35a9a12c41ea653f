import { fileURLToPath } from "node:url"
import autocannon from "autocannon"
import { Effect } from "effect"
import type { Browser, Page } from "playwright-core"
import { buildExecutionView } from "../../../src/graph/ExecutionView.ts"
import { parentOf, retried } from "../../portal/oncall/Graphs.ts"
import { type Cookies, signIn } from "../../portal/SignIn.ts"
import { BenchFailed } from "../Child.ts"
import { everythingOn, type Upstream } from "../Entrants.ts"
import * as Gateway from "../Gateway.ts"
import * as Lists from "../Lists.ts"
import { cell, line, number, row } from "../Markdown.ts"
import { bodies, path as proxyPath } from "../Scenario.ts"
import { median } from "../Statistics.ts"
import * as Chromium from "./Chromium.ts"

/** The portal in Chromium, before a large installation: how soon it is there, and how soon it follows the hand. */

interface Paints {
  readonly name: string
  readonly fast: ReadonlyArray<number>
  readonly slow: ReadonlyArray<number>
}

interface Interactions {
  readonly name: string
  readonly fast: ReadonlyArray<number>
  readonly slow: ReadonlyArray<number>
}

interface Huge {
  readonly name: string
  /** Milliseconds until it is drawn. */
  readonly drawn: number
  readonly elements: number
  readonly interactions: ReadonlyArray<number>
}

interface Tail {
  readonly sent: number
  readonly slowest: number
  readonly rows: number
  readonly note: string
}

export interface Measured {
  readonly paints: ReadonlyArray<Paints>
  readonly interactions: ReadonlyArray<Interactions>
  readonly huge: ReadonlyArray<Huge>
  readonly tails: ReadonlyArray<Tail>
}

interface Site {
  readonly browser: Browser
  readonly origin: string
  /** Of somebody who is signed in. A token signs in ten times a minute at most. */
  readonly session: Cookies
}

const slower = 4
const paintRounds = 5
const interactionRounds = 3
const attempts = 10_000
const tailPerSecond = 1_000
const tailSeconds = 30
const tasks = fileURLToPath(new URL("../../portal/oncall/ShopTasks.ts", import.meta.url))

/** Runs in the browser; what fails there fails the bench. */
const inBrowser = <A>(what: string, use: () => Promise<A>) =>
  Effect.tryPromise({ try: use, catch: (cause) => new BenchFailed({ message: `${what}: ${String(cause)}` }) })

const start = Effect.fnUntraced(function* (upstream: string) {
  const installation = yield* Gateway.makeInstallation(upstream)
  const { control, origin } = yield* Gateway.startProcess("portal", installation, ["all", "--tasks", tasks])
  const calls = Gateway.callsOf("portal", control, installation.token)
  yield* calls.setPrices
  const site: Site = {
    browser: yield* Chromium.browser,
    origin: new URL(control).origin,
    session: yield* inBrowser("signing in", () => signIn(new URL(control).origin, installation.token))
  }
  return { site, installation, proxy: origin, key: yield* calls.key(everythingOn) }
})

export const parts = ["paints", "interactions", "huge", "tail"] as const
export type Part = (typeof parts)[number]

export const run = Effect.fnUntraced(function* (
  { origin: upstream }: Upstream,
  wanted: ReadonlyArray<Part>,
  say: (line: string) => void
) {
  const { installation, key, proxy, site } = yield* start(upstream)
  yield* Lists.fill(installation.store, proxy, say)
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
    paints: yield* each("paints", pages, (one) => paintsOf(site, one)),
    interactions: yield* each("interactions", deeds, (one) => interactionsOf(site, one)),
    huge: yield* each("huge", hugeTasks, (one) => hugeOf(site, one)),
    tails: yield* each("tail", [{ name: `${tailPerSecond} requests a second` }], () => tailOf(site, proxy, key))
  }
  return measured
})

interface PagePainted {
  readonly name: string
  readonly address: string
  readonly isSignedOut?: boolean
}

const pages: ReadonlyArray<PagePainted> = [
  { name: "sign-in", address: "/", isSignedOut: true },
  { name: "home", address: "/" },
  { name: "requests", address: "/requests" },
  { name: "usage", address: "/usage?range=30d" },
  { name: "keys, of 100,000", address: "/keys" },
  { name: "tasks, of 1,000,000", address: "/tasks" },
  { name: "dead letters, of 100,000", address: "/dead-letters" }
]

const paintOf = async ({ browser, origin, session }: Site, { address, isSignedOut }: PagePainted, speed: number) => {
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

const paintsOf = async (site: Site, page: PagePainted): Promise<Paints> => {
  const fast: Array<number> = []
  const slow: Array<number> = []
  for (let round = 0; round < paintRounds; round++) {
    fast.push(await paintOf(site, page, 1))
    slow.push(await paintOf(site, page, slower))
  }
  return { name: page.name, fast, slow }
}

interface Deed {
  readonly name: string
  readonly address: string
  readonly act: (page: Page) => Promise<unknown>
}

const press = async (page: Page, ...keys: ReadonlyArray<string>) => {
  for (const key of keys) {
    await page.keyboard.press(key)
    await page.waitForTimeout(120)
  }
}

const deeds: ReadonlyArray<Deed> = [
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

const interactionsOf = async (
  { browser, origin, session }: Site,
  { act, address, name }: Deed
): Promise<Interactions> => {
  const at = async (speed: number) => {
    const found: Array<number> = []
    for (let round = 0; round < interactionRounds; round++) {
      const opened = await Chromium.open(browser, origin, session, { slower: speed })
      await opened.page.goto(`/admin-ui${address}`)
      await Chromium.settled(opened.page)
      // what is loaded when it is first used is loaded
      await act(opened.page)
      found.push(await Chromium.slowestOf(opened, act))
      await opened.page.context().close()
    }
    return found
  }
  return { name, fast: await at(1), slow: await at(slower) }
}

interface HugeTask {
  readonly name: string
  readonly tab: string
  readonly graph: ReturnType<typeof retried>
  /** Is there once it is drawn. */
  readonly drawn: string
  readonly act: (page: Page) => Promise<unknown>
}

const hugeTasks: ReadonlyArray<HugeTask> = [
  {
    name: `timeline of ${number(attempts, 0)} attempts of one task`,
    tab: "timeline",
    graph: retried(attempts, "failed"),
    drawn: "[class*=timeline] [class*=bar]",
    act: async (page) => {
      await page.locator("[class*=timeline] button:enabled").first().focus()
      await press(page, "+", "+", "ArrowRight", "ArrowRight", "f", "f", "-", "0")
    }
  },
  {
    name: `timeline of ${number(attempts, 0)} children`,
    tab: "timeline",
    graph: parentOf(attempts),
    drawn: "[class*=timeline] [class*=bar], [class*=timeline] [class*=row]",
    act: async (page) => {
      await page.locator("[class*=timeline] button:enabled").first().focus()
      await press(page, "+", "+", "ArrowRight", "ArrowRight", "f", "f", "-", "0")
    }
  },
  {
    name: `graph of ${number(attempts, 0)} nodes`,
    tab: "graph",
    graph: retried(attempts, "failed"),
    drawn: ".react-flow__node",
    act: async (page) => {
      const box = await page.locator(".react-flow").boundingBox()
      const [x, y] = [(box?.x ?? 0) + 500, (box?.y ?? 0) + 200]
      await page.mouse.move(x, y)
      for (let n = 0; n < 4; n++) await page.mouse.wheel(0, 200)
      await page.mouse.down()
      await page.mouse.move(x - 300, y, { steps: 12 })
      await page.mouse.up()
      await page.locator(".react-flow__node").first().focus()
      await press(page, "Enter", "Tab", "Tab", "Enter")
    }
  }
]

const hugeOf = async (
  { browser, origin, session }: Site,
  { act, drawn, graph, name, tab }: HugeTask
): Promise<Huge> => {
  const opened = await Chromium.open(browser, origin, session, { slower: 1 })
  const { page } = opened
  const view = buildExecutionView({ ...graph, task_id: "sent-1" })
  await page.route(/\/executions\/sent-1\/view/, (route) => route.fulfill({ json: view }))
  const begun = performance.now()
  await page.goto(`/admin-ui/tasks/sent-1?tab=${tab}`)
  await page.locator(drawn).first().waitFor({ timeout: 60_000 })
  const drawnMs = performance.now() - begun
  const interactions: Array<number> = []
  for (let round = 0; round < interactionRounds; round++) interactions.push(await Chromium.slowestOf(opened, act))
  const elements = await Chromium.elementsOf(page)
  await page.context().close()
  return { name, drawn: drawnMs, elements, interactions }
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

const tailOf = async ({ browser, origin, session }: Site, proxy: string, key: string): Promise<Tail> => {
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

const mostPaintMs = 1_500
const mostInteractionMs = 100

export const report = ({ huge, interactions, paints, tails }: Measured, machine: string): string =>
  [
    machine,
    "",
    Lists.contents,
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

const soakPerSecond = 20

/** The page of live requests, open for minutes: what its scripts hold at the end of each. */
export const soak = Effect.fnUntraced(function* (
  { origin: upstream }: Upstream,
  minutes: number,
  say: (line: string) => void
) {
  const { key, proxy, site } = yield* start(upstream)
  return yield* inBrowser("the live page", async () => {
    const opened = await Chromium.open(site.browser, site.origin, site.session, { slower: 1 })
    await opened.page.goto("/admin-ui/requests?range=15m")
    await Chromium.settled(opened.page)
    const { result, stop } = sending(proxy, key, soakPerSecond, minutes * 60 + 60)
    const heap: Array<number> = []
    for (let minute = 1; minute <= minutes; minute++) {
      await opened.page.waitForTimeout(60_000)
      heap.push(await Chromium.heapMiB(opened))
      say(`minute ${minute}: ${number(heap.at(-1) ?? Number.NaN, 2)} MiB`)
    }
    stop()
    await result.catch(() => {})
    return heap
  })
})

const mostGrowthMiB = 10

export const soakReport = (heap: ReadonlyArray<number>, machine: string): string => {
  const quarter = Math.max(1, Math.floor(heap.length / 4))
  // the tail is full after half a minute
  const growth = median(heap.slice(-quarter)) - median(heap.slice(1, 1 + quarter))
  const step = Math.max(1, Math.floor(heap.length / 16))
  return [
    machine,
    "",
    `${heap.length} minutes of the page of live requests, ${soakPerSecond} requests a second; MiB held by its scripts at the end of ` +
      `minutes: ${heap
        .map((value, index) => `${index + 1}: ${number(value, 1)}`)
        .filter((_, index) => index % step === 0 || index === heap.length - 1)
        .join(", ")}.`,
    "",
    line(growth < mostGrowthMiB, `it grew by ${number(growth, 2)} MiB; to reach: below ${mostGrowthMiB}`)
  ].join("\n")
}
