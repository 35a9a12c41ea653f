import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, beforeAll, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { eventuallyTrue } from "./EventuallyTrue.ts"
import { holdRequests } from "./HeldAnswers.ts"
import { describePortal, type OpenedPage, type Portal, type Programs } from "./PortalBrowser.ts"
import { fill, repair, type TypicalInstallation } from "./TypicalInstallation.ts"

const shopTasks = fileURLToPath(new URL("oncall/ShopTasks.ts", import.meta.url))

/** `SVC_TEST_PAGES=all` looks at each page in each state, colour scheme and width. Else a part of it stands for the rest. */
const isWhole = process.env["SVC_TEST_PAGES"] === "all"

/** Keeps a picture of each page in this directory. */
const pictures = process.env["SVC_TEST_PICTURES"]

const operatorPages = ({
  cancellationId,
  changeId,
  group,
  keyId,
  letterId,
  projectId,
  replayId,
  requestId,
  taskId
}: TypicalInstallation) => [
  ...["/", "/requests", `/requests/${requestId}`, "/usage", "/limits", "/limits/budgets", "/limits/requests"],
  ...[
    "/tasks/board",
    "/tasks",
    `/tasks/${taskId}`,
    `/tasks/${taskId}?tab=graph`,
    "/tasks/cancellations",
    `/tasks/cancellations/${cancellationId}`,
    "/dead-letters",
    "/dead-letters?tab=queues",
    `/dead-letters/replays/${replayId}`
  ],
  ...[`/dead-letters/${letterId}`, `/dead-letters/group?${group}`],
  ...["/keys", "/keys/new", `/keys/${keyId}`, `/keys/${keyId}?tab=policy`, "/projects", `/projects/${projectId}`],
  ...["/keys/changes", `/keys/changes/${changeId}`],
  ...["/policies", "/policies/simulate", "/guardrails", "/guardrails?tab=executions", "/guardrails/no-secrets"],
  ...["/models", "/routes", "/upstreams", "/services", "/services/summaries", "/studio"],
  ...["/audit", "/configuration", "/operators", "/settings", "/system"]
]
/** The other tabs, views and drawers of these pages. */
const operatorViews = ({ keyId, letterId, projectId, requestId, taskId }: TypicalInstallation) => [
  ...[`/requests?open=${requestId}`, "/usage?group=task_type", "/usage?tab=unused", "/limits?unit=usd"],
  ...["/tasks/board?view=map", ...tabs(`/tasks/${taskId}`, "sequence", "statuses", "calls", "data", "raw")],
  ...tabs("/dead-letters", "letters", "unknown", "replays", "archive"),
  ...tabs(`/dead-letters/${letterId}`, "edit", "attempts", "headers", "stack"),
  ...tabs(`/keys/${keyId}`, "guardrails", "services", "requests", "changes"),
  ...tabs(`/projects/${projectId}`, "limits", "usage", "services", "layers", "changes"),
  ...["/policies?tab=effective", "/policies?tab=deleted", "/policies?kind=team&scope=shop"],
  ...["/policies/simulate?kind=team&scope=shop", "/guardrails/no-secrets?tab=coverage&outcome=none"],
  ...tabs("/guardrails/no-secrets", "bench", "executions"),
  ...["/models?tab=prices", ...tabs("/upstreams", "health", "credentials", "passthrough")],
  ...tabs("/services/summaries", "openapi", "prices", "usage"),
  ...[...tabs("/studio", "registry", "versions"), ...tabs("/configuration", "plan", "history")],
  ...tabs("/operators", "people", "sessions"),
  ...[`/keys?open=${keyId}`, `/tasks?open=${taskId}`, "/audit?open=1", "/usage?group=key&split=model&measure=tokens"],
  ...["/limits", "/projects", "/upstreams", "/services", "/operators", "/policies", "/guardrails"].map(creating),
  ...["/services/summaries?do=edit", "/guardrails/no-secrets?do=edit", "/policies?do=edit&kind=team&scope=shop"],
  ...["/upstreams?tab=health&do=state", "/upstreams?tab=health&do=check", "/audit?do=verify", "/routes?do=all"],
  ...["/models?do=import", "/models?do=price&model=gpt-5"]
]
const creating = (path: string) => `${path}?do=${path === "/limits" ? "raise" : "create"}`
const tabs = (path: string, ...names: ReadonlyArray<string>) => names.map((name) => `${path}?tab=${name}`)

const holderPages = ["/my", "/my/use", "/my/models", "/my/requests", "/my/guardrails", "/my/key"]
const holderViews = ["/my/requests?tab=raises", "/my?measure=tokens"]

/** None of these ids exists. */
const nothing: TypicalInstallation = {
  projectId: "00000000-0000-4000-8000-000000000001",
  keyId: "00000000-0000-4000-8000-000000000002",
  holderKey: "",
  changeId: "00000000-0000-4000-8000-000000000003",
  requestId: "none",
  taskId: "none",
  letterId: "none",
  replayId: "00000000-0000-4000-8000-000000000004",
  cancellationId: "00000000-0000-4000-8000-000000000005",
  group: ""
}

const api = /^\/admin-ui\/(?:admin|tasks|find|v1)\b/

type Scheme = "light" | "dark"

/** The pages are opened once in a width, and looked at in each of the colour schemes. */
interface View {
  readonly width: number
  readonly schemes: ReadonlyArray<Scheme>
}

const everyView: ReadonlyArray<View> = [360, 768, 1280].map((width) => ({ width, schemes: ["light", "dark"] }))

/** A third of the pages stands for all of them. */
const someOf = (pages: ReadonlyArray<string>) => (isWhole ? pages : pages.filter((_, n) => n % 3 === 0))

/** Two tabs share all pages: each waits half of its time for answers, and for what is asked again after an error. */
const sharesOf = (pages: ReadonlyArray<string>) =>
  isWhole ? [0, 1].map((tab) => pages.filter((_, n) => n % 2 === tab)) : [pages]

const viewsOf = (...some: ReadonlyArray<readonly [scheme: Scheme, width: number]>): ReadonlyArray<View> =>
  isWhole ? everyView : some.map(([scheme, width]) => ({ width, schemes: [scheme] }))

const settled = (page: Page) => eventuallyTrue(async () => (await page.locator("main [aria-busy=true]").count()) === 0)

/** The cumulative layout shift of the page, and what moved. Web Vitals calls it poor from 0.25 on. */
const shiftOf = (page: Page) =>
  page.evaluate<{ readonly sum: number; readonly moved: string }>(`new Promise((resolve) => {
    const moved = []
    let sum = 0
    const box = ({ height, y }) => Math.round(y) + "+" + Math.round(height)
    const nameOf = (node) => node === null ? "something" : [node.nodeName.toLowerCase(), node.className].join(" ")
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        if (entry.hadRecentInput) continue
        sum += entry.value
        for (const { currentRect, node, previousRect } of entry.sources)
          moved.push(nameOf(node) + " from " + box(previousRect) + " to " + box(currentRect))
      }
    }).observe({ type: "layout-shift", buffered: true })
    setTimeout(() => resolve({ sum, moved: moved.join(", ") }), 50)
  })`)

const mostShift = 0.25

/** Returns what takes the changes that a page has sent since the last call. */
const changesSentBy = (page: Page): (() => ReadonlyArray<string>) => {
  const sent: Array<string> = []
  page.on("request", (request) => {
    const { pathname } = new URL(request.url())
    if (request.method() !== "GET" && api.test(pathname)) sent.push(`${request.method()} ${pathname}`)
  })
  return () => sent.splice(0)
}

interface Look extends View {
  /** The beginning of the names of the pictures. */
  readonly name: string
  readonly isLoading?: boolean
}

/** Opens each address, and returns what is wrong with each page. */
const lookAt = async (
  opened: OpenedPage,
  origin: string,
  paths: ReadonlyArray<string>,
  { isLoading = false, name, schemes, width }: Look
): Promise<ReadonlyArray<string>> => {
  const { page } = opened
  const wrong: Array<string> = []
  const takeSent = changesSentBy(page)
  for (const path of paths) {
    const found: Array<string> = []
    const release = isLoading ? await holdRequests(page, api) : undefined
    for (const [place, scheme] of schemes.entries()) {
      await page.emulateMedia({ colorScheme: scheme })
      if (place === 0) found.push(...(await layoutOf(page, `${origin}/admin-ui${path}`, { isLoading, width })))
      const inColors = await opened.axe({ isLoading, colorsAlone: place > 0 })
      found.push(...inColors.map((violation) => `in ${scheme} colours ${violation}`))
      if (pictures !== undefined) {
        mkdirSync(pictures, { recursive: true })
        const file = `${name} ${width} ${path.slice(1).replaceAll(/[^\w-]+/g, "_") || "home"} ${scheme}.png`
        await page.screenshot({ path: join(pictures, file), fullPage: true })
      }
    }
    // what was waited for may not move what a person reads already
    if (release !== undefined) {
      for (const said of await page.locator("main [class^=_empty_]").allInnerTexts())
        found.push(`says before it knows: ${said}`)
      await release()
      await settled(page).catch((error) => found.push(String(error)))
    }
    const { moved, sum } = await shiftOf(page)
    if (sum > mostShift) found.push(`moves by ${sum.toFixed(2)}: ${moved}`)
    // somebody else may have made the address
    found.push(...takeSent().map((request) => `sends ${request} before anybody has pressed anything`))
    wrong.push(...found.map((problem) => `${path} ${problem}`))
  }
  return wrong
}

/** Opens an address, and returns what is wrong with the page in any colours. */
const layoutOf = async (page: Page, address: string, { isLoading, width }: Pick<Look, "isLoading" | "width">) => {
  const found: Array<string> = []
  await page.goto(address)
  try {
    await page.locator("main#page h1").first().waitFor()
    if (!isLoading) await settled(page)
  } catch (error) {
    found.push(String(error))
  }
  const wide = await page.evaluate<number>("document.documentElement.scrollWidth")
  if (wide > width) found.push(`is ${wide} pixels wide`)
  const titles = await page.locator("h1").count()
  if (titles !== 1) found.push(`has ${titles} titles`)
  return found
}

const inView = ({ schemes, width }: View) => `in ${schemes.join(" and ")} colours at ${width} pixels`

/** The pages show a usual installation, one of many rows and processes, or a new one. */
type Fixture = "typical" | "large" | "empty"

const testState = (
  fixture: Fixture,
  portal: Portal,
  state: string,
  pages: () => ReadonlyArray<string>,
  views: ReadonlyArray<View>,
  {
    isLoading = false,
    prepare,
    token
  }: {
    readonly isLoading?: boolean
    readonly prepare?: (opened: OpenedPage) => Promise<unknown>
    readonly token?: () => Promise<string> | string
  } = {}
) => {
  for (const view of views) {
    const { width } = view
    it(`${state}, ${inView(view)}`, { timeout: 600_000 }, async () => {
      const look = { ...view, isLoading, name: `${fixture} ${state}` }
      const tabs: Array<() => Promise<ReadonlyArray<string>>> = []
      // one after the other: opening the first page of a profile forgets what it has stored
      for (const paths of sharesOf(pages())) {
        const opened = await portal.open(paths[0] ?? "/", {
          width,
          ...(token !== undefined && { token: await token() })
        })
        await prepare?.(opened)
        tabs.push(() => lookAt(opened, portal.gateway.control, paths, look))
      }
      assert.deepStrictEqual((await Promise.all(tabs.map((lookThere) => lookThere()))).flat(), [])
    })
  }
}

const testFilled = (fixture: Fixture, programs: Programs) =>
  describePortal(
    `Every page of a ${fixture} installation`,
    (portal) => {
      let installation: TypicalInstallation | undefined
      const made = () => {
        assert(installation !== undefined)
        return installation
      }
      beforeAll(async () => {
        const filled = await fill(portal)
        installation = { ...filled, ...(await repair(portal, filled)) }
      })
      const operators = () => operatorPages(made())
      const holder = { token: () => made().holderKey }

      testState(fixture, portal, "operators", operators, viewsOf(["light", 1280], ["dark", 360]))
      testState(fixture, portal, "holders", () => holderPages, viewsOf(["dark", 1280], ["light", 360]), holder)

      it("no address of a dialog sends a change by itself", { timeout: 120_000 }, async () => {
        const { page } = await portal.open("/")
        const takeSent = changesSentBy(page)
        for (const path of operatorViews(made()).filter((one) => one.includes("do="))) {
          await page.goto(`${portal.gateway.control}/admin-ui${path}`)
          await page.getByRole("dialog").waitFor()
          await settled(page)
          assert.deepStrictEqual(takeSent(), [], path)
        }
      })

      const failing = {
        prepare: ({ answer }: OpenedPage) => answer(api, { status: 500, message: "The database is away." })
      }
      testState(fixture, portal, "operators, errors", () => someOf(operators()), viewsOf(["dark", 1280]), failing)
      const holderFailing = { ...failing, ...holder }
      testState(fixture, portal, "holders, errors", () => someOf(holderPages), viewsOf(["light", 360]), holderFailing)

      const loading = { isLoading: true }
      testState(fixture, portal, "operators, loading", () => someOf(operators()), viewsOf(["light", 360]), loading)
      const holderLoading = { ...loading, ...holder }
      testState(fixture, portal, "holders, loading", () => someOf(holderPages), viewsOf(["dark", 1280]), holderLoading)

      const views = () => someOf(operatorViews(made()))
      testState(fixture, portal, "operators, views", views, viewsOf(["light", 360]))
      testState(fixture, portal, "holders, views", () => someOf(holderViews), viewsOf(["dark", 360]), holder)
      testState(fixture, portal, "operators, views, errors", views, viewsOf(), failing)
      testState(fixture, portal, "operators, views, loading", views, viewsOf(), loading)

      const forbidden = {
        token: () => portal.tokenWith("audit:read"),
        // the files of a page are under way before it is known who may see it, and Chromium remarks that after seconds
        prepare: async ({ problems }: OpenedPage) => problems.expect(/was preloaded using link preload but not used/)
      }
      testState(fixture, portal, "operators, forbidden", () => operators().slice(1), viewsOf(), forbidden)
    },
    { tasks: shopTasks, ...programs }
  )

testFilled("typical", { isEmbedded: true })
// in many processes
if (isWhole) testFilled("large", { isSplit: true })

describePortal(
  "Every page of an empty installation",
  (portal) => {
    const missing = { prepare: async ({ problems }: OpenedPage) => problems.expect(/^404 GET/) }
    testState("empty", portal, "operators", () => someOf(operatorPages(nothing)), viewsOf(["light", 1280]), missing)
  },
  { isEmbedded: true }
)
