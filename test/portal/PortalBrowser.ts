import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { afterAll, afterEach, assert, beforeAll, describe } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"
import { inject } from "vitest"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import * as RunningGateway from "../RunningGateway.ts"
import type {} from "../servers.ts"
import * as BuiltPortal from "./BuiltPortal.ts"
import { PageProblems } from "./PageProblems.ts"
import { signIn } from "./SignIn.ts"
import * as SplitPrograms from "./SplitPrograms.ts"

const executable = inject("headlessChromium")

/** Building the portal, and starting the programs and the browser on a machine that is busy; filling large stores. */
const startsWithinMs = 900_000

export interface View {
  /** An operator token or a gateway key. Default: the token with all scopes. `null`: nobody is signed in. */
  readonly token?: string | null
  /** Signs in with a token of these scopes instead. */
  readonly scopes?: ReadonlyArray<string>
  readonly scheme?: "light" | "dark"
  /** The time zone of the browser, such as `Asia/Kolkata`. Default: that of the machine. */
  readonly timezone?: string
  /** The width in CSS pixels. Default: 1280. */
  readonly width?: number
  /** Signs in anew instead of using the session that other pages have. A token signs in ten times a minute at most. */
  readonly ownSession?: boolean
  /** The origin of the listener. Default: the control listener. */
  readonly origin?: string
}

/**
 * A page. Those of one token share a browser profile in a test file, whose cache has the portal already; what a test
 * before has stored in it is gone.
 */
export interface OpenedPage {
  readonly page: Page
  /** What went wrong in the page. The test fails if there is something at its end. */
  readonly problems: PageProblems
  /** The violations that axe finds, a sentence for each, as soon as nothing on the page is loading, or at once. */
  readonly axe: (options?: AxeOptions) => Promise<ReadonlyArray<string>>
  /**
   * Answers the requests of the page to paths that match, instead of the server. Without `body` it is an error of the
   * control API. `delayMs` alone lets the server answer, later. Returns what takes it back.
   */
  readonly answer: (path: string | RegExp, answer: Answer) => Promise<() => Promise<void>>
}

export interface AxeOptions {
  readonly isLoading?: boolean
  /** Asks again only for what depends on colours, after another colour scheme was set. */
  readonly colorsAlone?: boolean
}

export interface Answer {
  readonly status?: number
  readonly code?: string
  readonly message?: string
  readonly body?: unknown
  readonly delayMs?: number
}

export interface Portal {
  /** The program with the example's tasks, and everything but its database in its memory. */
  readonly gateway: RunningGateway.RunningGateway
  readonly adminToken: string
  /** A token with these scopes. Made once. */
  readonly tokenWith: (...scopes: ReadonlyArray<string>) => Promise<string>
  /** Opens a page of the portal, such as `/keys?q=blue`, and waits until its frame is there. */
  readonly open: (path: string, view?: View) => Promise<OpenedPage>
  /** Ends the program as `kill -9` does, and starts it again. Give it fixed ports and a directory for its data. */
  readonly restart: () => Promise<void>
}

/**
 * Tests of the portal in Chromium, against the real program: one program and one browser for all tests of `tests`.
 * Every test fails if a page of it has complained in the console, broken its policy, or got an error that was not asked
 * for (`answer`, `problems.expect`).
 */
export const describePortal = (name: string, tests: (portal: Portal) => void, options: Programs = {}): void => {
  const isMissing = executable === null || (options.isSplit === true && !SplitPrograms.available)
  describe.skipIf(isMissing)(name, () => {
    const running = new RunningPortal({ example: options.tasks === undefined, ...options })
    beforeAll(async () => {
      await BuiltPortal.ensure()
      await running.start()
      // tests may run as root, where Chromium has no sandbox
      running.browser = await chromium.launch({ executablePath: executable ?? "", args: ["--no-sandbox"] })
    }, startsWithinMs)
    afterEach(async ({ task }) => {
      if (task.result?.state === "fail") await running.tellPages()
      assert.deepStrictEqual(await running.endTest(), [])
    })
    afterAll(async () => {
      await running.browser?.close()
      await running.stop()
    })
    tests(running)
  })
}

/** Waits until the page listens to keys: React adds what listens after it has shown the page. */
const isIdle = (page: Page) =>
  page.evaluate("new Promise((idle) => requestIdleCallback(() => idle(), { timeout: 2_000 }))")

export interface Programs extends Pick<RunningGateway.Options, "environment" | "example" | "flags" | "tasks"> {
  /** The database is in the memory of the program, as with `npm start`. Default: in PostgreSQL, if there is one. */
  readonly isEmbedded?: boolean
  /** Each role is a process of its own, on real servers. It needs `tasks`. */
  readonly isSplit?: boolean
}

class RunningPortal implements Portal {
  readonly adminToken = RunningGateway.newAdminToken()
  browser: Browser | undefined
  readonly #options: Programs
  #scope = Scope.makeUnsafe()
  #gateway: RunningGateway.RunningGateway | undefined
  readonly #tokens = new Map<string, Promise<string>>()
  readonly #profiles = new Map<string, Promise<BrowserContext>>()
  #opened: Array<{ readonly close: () => Promise<void>; readonly page: Page; readonly problems: PageProblems }> = []

  constructor(options: Programs) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { adminToken } = this
    const { isEmbedded = false, isSplit = false, tasks = "" } = this.#options
    const started = isSplit
      ? SplitPrograms.start({ adminToken, tasks })
      : (isEmbedded ? RunningGateway : GatewayOnPostgres).start({ adminToken, ...this.#options })
    this.#gateway = await started.pipe(Scope.provide(this.#scope), Effect.runPromise)
  }

  async stop(): Promise<void> {
    await Effect.runPromise(Scope.close(this.#scope, Exit.void))
    this.#scope = Scope.makeUnsafe()
  }

  readonly restart = async (): Promise<void> => {
    await this.stop()
    await this.start()
  }

  get gateway(): RunningGateway.RunningGateway {
    if (this.#gateway === undefined) throw new Error("the program has not started yet")
    return this.#gateway
  }

  readonly tokenWith = (...scopes: ReadonlyArray<string>): Promise<string> => {
    const name = [...scopes].sort().join(" ")
    const known = this.#tokens.get(name) ?? this.#makeToken(name, scopes)
    this.#tokens.set(name, known)
    return known
  }

  async #makeToken(name: string, scopes: ReadonlyArray<string>): Promise<string> {
    const minted = await this.gateway.operate("POST", "/operator-tokens", { name, scopes })
    assert(typeof minted === "object" && minted !== null && "raw_token" in minted)
    return String(minted.raw_token)
  }

  readonly open = async (path: string, view: View = {}): Promise<OpenedPage> => {
    const { origin = this.gateway.control, ownSession = false, scheme = "light", width = 1280 } = view
    const token = await this.#tokenOf(view)
    const isShared = token !== null && !ownSession
    const context = await (isShared ? this.#profileOf(origin, token) : this.#newProfile(origin, token))
    const page = await context.newPage()
    const problems = new PageProblems()
    this.#opened.push({ close: () => (isShared ? page : context).close(), page, problems })
    if (context.pages().length === 1) await forget(page, origin)
    await page.setViewportSize({ width, height: 900 })
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" })
    problems.watch(page)
    if (view.timezone !== undefined) {
      const debuggerOf = await context.newCDPSession(page)
      await debuggerOf.send("Emulation.setTimezoneOverride", { timezoneId: view.timezone })
    }
    await page.goto(`${origin}/admin-ui${path}`)
    await page.waitForSelector(token === null ? "form input[name=token]" : "main#page h1")
    await isIdle(page)
    return {
      page,
      problems,
      axe: (options = {}) => axeOf(page, options),
      answer: answering(page, problems)
    }
  }

  #browser(): Browser {
    if (this.browser === undefined) throw new Error("the browser has not started yet")
    return this.browser
  }

  #tokenOf({ scopes, token = this.adminToken }: View): Promise<string | null> | string | null {
    return scopes === undefined ? token : this.tokenWith(...scopes)
  }

  #profileOf(origin: string, token: string): Promise<BrowserContext> {
    const name = `${origin} ${token}`
    const known = this.#profiles.get(name) ?? this.#newProfile(origin, token)
    this.#profiles.set(name, known)
    return known
  }

  async #newProfile(origin: string, token: string | null): Promise<BrowserContext> {
    const context = await this.#browser().newContext({ baseURL: origin })
    if (token !== null) await context.addCookies(await signIn(origin, token))
    return context
  }

  /** Prints what the pages of the test show, for a failure that a busy machine alone has. */
  async tellPages(): Promise<void> {
    for (const { page, problems } of this.#opened) {
      const shown = await page.evaluate<string>(shownText).catch(String)
      process.stderr.write(`${[page.url(), ...problems.recent, ...problems.unexpected, shown].join("\n")}\n`)
    }
  }

  /** Closes the pages of the test, and returns what went wrong in them. */
  async endTest(): Promise<ReadonlyArray<string>> {
    const opened = this.#opened
    this.#opened = []
    await Promise.all(opened.map(({ close }) => close()))
    return opened.flatMap(({ problems }) => problems.unexpected)
  }
}

const shownText = `(() => {
  const { activeElement: focused } = document
  const named = focused?.getAttribute("aria-label") ?? focused?.textContent?.slice(0, 60)
  const parts = [...document.querySelectorAll("main, [role=dialog]")].map(({ innerText }) => innerText.slice(0, 4_000))
  const busy = document.querySelectorAll("[aria-busy=true]").length
  return [document.visibilityState + ", the focus is at " + focused?.tagName + " " + named, busy + " parts are busy", ...parts].join("\\n")
})()`

const forget = async (page: Page, origin: string): Promise<void> => {
  const debuggerOf = await page.context().newCDPSession(page)
  await debuggerOf.send("Storage.clearDataForOrigin", { origin, storageTypes: "local_storage,session_storage" })
  await debuggerOf.detach()
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

const busyForMs = 5_000

/**
 * The debugger evaluates the source, so that the policy of the page need not allow it. Sending it takes ten times as long as
 * running it, so later documents of the page have it from their beginning.
 */
const installAxe = async (page: Page): Promise<void> => {
  if (await page.evaluate<boolean>("typeof axe === 'object'")) return
  await page.addInitScript(axeSource)
  await page.evaluate(axeSource)
}

const axeRules = (colorsAlone: boolean) =>
  colorsAlone
    ? { type: "rule", values: ["color-contrast", "link-in-text-block"] }
    : { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }

/**
 * Waits until the page has read what it shows, because a part that is read again is dimmed and has too little contrast for that
 * moment. A page that stays busy is looked at as it is.
 */
const axeOf = async (
  page: Page,
  { colorsAlone = false, isLoading = false }: AxeOptions
): Promise<ReadonlyArray<string>> => {
  await installAxe(page)
  if (!isLoading)
    await page
      .locator("[aria-busy=true]")
      .first()
      .waitFor({ state: "detached", timeout: busyForMs })
      .catch(() => {})
  // what was dimmed a moment ago becomes clear over some frames
  await page.evaluate(`new Promise((frame) => requestAnimationFrame(frame)).then(() => Promise.allSettled(
    document.getAnimations().filter((one) => one instanceof CSSTransition).map(({ finished }) => finished)))`)
  return page.evaluate<ReadonlyArray<string>>(`axe.run({ exclude: [["[role=tooltip]"]] }, {
    preload: false,
    runOnly: ${JSON.stringify(axeRules(colorsAlone))}
  }).then(({ violations }) => violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => id + ": " + help + " at " + html.slice(0, 160) + " " + failureSummary)))`)
}

const answering =
  (page: Page, problems: PageProblems) =>
  async (path: string | RegExp, answer: Answer): Promise<() => Promise<void>> => {
    const { code = "internal_error", delayMs = 0, message = "Something broke.", status } = answer
    const isAsked = (url: URL) =>
      typeof path === "string" ? url.pathname === `/admin-ui${path}` : path.test(url.pathname + url.search)
    if (status !== undefined && status >= 400) problems.expectAt(isAsked)
    await page.route(isAsked, async (route) => {
      // pages of tasks have the addresses of their API
      if (route.request().resourceType() === "document") return route.continue()
      if (delayMs > 0) await new Promise((later) => setTimeout(later, delayMs))
      if (status === undefined && answer.body === undefined) return route.continue()
      const body = answer.body ?? { error: { code, message, request_id: "req-of-the-test" } }
      return route.fulfill({ status: status ?? 200, json: body })
    })
    return () => page.unroute(isAsked)
  }
