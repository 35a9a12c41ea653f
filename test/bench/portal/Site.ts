import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import type { Browser, Page } from "playwright-core"
import { type Cookies, signIn } from "../../portal/SignIn.ts"
import { BenchFailed } from "../Child.ts"
import { everythingOn } from "../Entrants.ts"
import * as Gateway from "../Gateway.ts"
import * as Chromium from "./Chromium.ts"

export interface Site {
  readonly browser: Browser
  readonly origin: string
  /** The cookies of one sign-in serve all windows, because a token signs in ten times a minute at most. */
  readonly session: Cookies
}

export const slower = 4
export const interactionRounds = 3
const tasks = fileURLToPath(new URL("../../portal/oncall/ShopTasks.ts", import.meta.url))

/** Runs in the browser; what fails there fails the bench. */
export const inBrowser = <A>(what: string, use: () => Promise<A>) =>
  Effect.tryPromise({ try: use, catch: (cause) => new BenchFailed({ message: `${what}: ${String(cause)}` }) })

/**
 * A gateway with its portal, a browser that is signed in, and a key with everything on. `folder` is the checkout whose
 * program it is, by default this one.
 */
export const start = Effect.fnUntraced(function* (upstream: string, folder?: string) {
  const name = folder === undefined ? "portal" : `the portal in ${folder}`
  const installation = yield* Gateway.makeInstallation(upstream)
  const { control, origin } = yield* Gateway.startProcess(name, installation, ["all", "--tasks", tasks], [], folder)
  const calls = Gateway.callsOf(name, control, installation.token)
  yield* calls.setPrices
  const site: Site = {
    browser: yield* Chromium.browser,
    origin: new URL(control).origin,
    session: yield* inBrowser("signing in", () => signIn(new URL(control).origin, installation.token))
  }
  return { site, installation, proxy: origin, key: yield* calls.key(everythingOn) }
})

export const press = async (page: Page, ...keys: ReadonlyArray<string>) => {
  for (const key of keys) {
    await page.keyboard.press(key)
    await page.waitForTimeout(120)
  }
}
