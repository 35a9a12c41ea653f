import { assert, describe, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { eventuallyTrue } from "./EventuallyTrue.ts"
import { describePortal, type Portal } from "./PortalBrowser.ts"

const menuOf = (page: Page) => page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts()

const submit = async (page: Page, token: string) => {
  await page.getByLabel("Operator token or gateway key").fill(token)
  await page.getByRole("button", { name: "Sign in" }).click()
}

const signingIn = (portal: Portal) => {
  it("says where a token comes from and what is wrong with one, and goes on to the page of the address with a right one", async () => {
    const { page, problems } = await portal.open("/keys?q=blue", { token: null })
    problems.expect(/^401 POST \/admin-ui\/session$/)
    await submit(page, `op_live_${"0".repeat(64)}`)
    await page.getByRole("alert").filter({ hasText: "No operator token matches" }).waitFor()
    await page.getByText("No token? The first start of the program printed one").waitFor()
    await submit(page, portal.adminToken)
    await page.getByRole("heading", { name: "Keys", level: 1 }).waitFor()
    assert.match(page.url(), /\/admin-ui\/keys\?q=blue$/)
    const kept = await page.evaluate<string>("JSON.stringify([localStorage, sessionStorage]) + document.cookie")
    assert.notInclude(kept, portal.adminToken)
  })

  it("ends with the session, in the page that is open, and signs in again where it was", async () => {
    const { page, problems } = await portal.open("/projects", { ownSession: true })
    problems.expect(/^401 GET /)
    await page.context().clearCookies()
    await page.keyboard.press("g")
    await page.keyboard.press("k")
    await page.getByText(/^The session has ended/).waitFor()
    await submit(page, portal.adminToken)
    await page.getByRole("heading", { name: "Keys", level: 1 }).waitFor()
  })

  it("asks again by itself who is signed in while the server does not answer", async () => {
    const { answer, page } = await portal.open("/keys")
    await page.clock.install()
    const takeBack = await answer("/session", { status: 503, message: "A store does not answer." })
    await page.reload()
    await page.getByRole("heading", { name: "The server does not answer" }).waitFor()
    await page.getByText("A store does not answer. The page asks again every 5 seconds.").waitFor()
    const refused = page.waitForResponse(/\/admin-ui\/session$/)
    await page.clock.runFor(5_000)
    await refused
    await takeBack()
    await page.clock.runFor(5_000)
    await page.getByRole("heading", { name: "Keys", level: 1 }).waitFor()
  })

  it("ends by signing out", async () => {
    const { page, problems } = await portal.open("/", { ownSession: true })
    // what was on its way when the session ended
    problems.expect(/^401 GET /)
    await page.getByRole("button", { name: /^Signed in as/ }).click()
    await page.getByRole("menuitem", { name: "Sign out" }).click()
    await page.getByRole("heading", { name: "Sign in" }).waitFor()
    await page.reload()
    await page.getByRole("heading", { name: "Sign in" }).waitFor()
  })

  for (const scheme of ["light", "dark"] as const) {
    for (const width of [360, 1280]) {
      it(`is accessible in ${scheme} colours at ${width} pixels`, async () => {
        const { axe, page } = await portal.open("/", { token: null, scheme, width })
        assert.deepStrictEqual(await axe(), [])
        assert.isAtMost(await page.evaluate<number>("document.documentElement.scrollWidth"), width)
      })
    }
  }
}

const frame = (portal: Portal) => {
  it("shows the pages that the scopes open, and says what the others need", async () => {
    const { page } = await portal.open("/keys", { scopes: ["usage:read"] })
    await page.getByText("This page needs operators:manage. You have usage:read.").waitFor()
    const menu = await menuOf(page)
    assert.include(menu, "Requests")
    assert.notInclude(menu, "Keys")
    const other = await portal.open("/", { scopes: ["audit:read"] })
    await other.page.getByRole("heading", { name: "Audit", level: 1 }).waitFor()
  })

  it("opens every page by its address, and says when there is none", async () => {
    const { page } = await portal.open("/tasks/board")
    await page.getByRole("heading", { level: 1 }).waitFor()
    await page.goto(`${portal.gateway.control}/admin-ui/nothing`)
    await page
      .getByText(/There is no such page/)
      .first()
      .waitFor()
  })

  it("is worked with the keyboard", async () => {
    const { page } = await portal.open("/")
    await page.keyboard.press("g")
    await page.keyboard.press("k")
    await page.getByRole("heading", { name: "Keys", level: 1 }).waitFor()
    await page.keyboard.press("?")
    await page.getByRole("dialog", { name: "Keys" }).getByText("previous row").waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "hidden" })
    await page.keyboard.press("Control+k")
    await page.getByPlaceholder("Go to, find an id, do …").fill("a1b2c3d4-no-such-id")
    await page
      .getByText(/No such id among .* Requests to unknown paths, or with an unknown key, are not recorded\./)
      .waitFor()
    await page.keyboard.press("Control+a")
    await page.keyboard.type("audit")
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "Audit", level: 1 }).waitFor()
  })

  it("finds a key by its name, also from an address that has no page", async () => {
    await portal.gateway.operate("POST", "/keys", { owner_type: "individual", name: "zebra crossing" })
    const { page } = await portal.open("/no/such/page")
    await page.getByText("There is no such page").waitFor()
    await page.keyboard.press("Control+k")
    await page.getByPlaceholder("Go to, find an id, do …").fill("zebra")
    await page.locator("[role=dialog] [data-action][data-selected]").getByText("crossing").waitFor()
    // a filter over the whole page would be drawn anew for each letter
    const blurring =
      "[...document.querySelectorAll('body *')].filter((one) => getComputedStyle(one).backdropFilter !== 'none')"
    assert.strictEqual(await page.evaluate<number>(`${blurring}.length`), 0)
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "zebra crossing" }).waitFor()
  })

  it("says once of an id or a name that nothing has it, and where to look", async () => {
    const { page, problems } = await portal.open("/keys/nope")
    problems.expect(/^404 GET/)
    for (const [path, kind, list] of missing) {
      await page.goto(`${portal.gateway.control}/admin-ui${path}/nope`)
      await page.getByText(`No ${kind} has the`).waitFor()
      await page.getByRole("main").getByRole("link", { name: list }).waitFor()
      assert.strictEqual(await page.getByRole("button", { name: "Try again" }).count(), 0, path)
    }
    const explained = page.waitForResponse(/\/explain$/)
    await page.goto(`${portal.gateway.control}/admin-ui/tasks/nope`)
    await explained
    await page.getByText("No status, attempt or dead letter is stored for this id.").waitFor()
    assert.strictEqual(await page.getByRole("alert").count(), 0)
    await page.goto(`${portal.gateway.control}/admin-ui/dead-letters/group`)
    await page.getByText("The address does not say which group").waitFor()
  })

  it("finds what has an id", async () => {
    const project = await portal.gateway.operate("POST", "/projects", { name: "found by its id" })
    assert(typeof project === "object" && project !== null && "id" in project)
    const { page } = await portal.open("/")
    await page.keyboard.press("Control+k")
    await page.getByPlaceholder("Go to, find an id, do …").fill(String(project.id))
    await page.getByText("found by its id").first().click()
    await page.waitForURL((url) => url.pathname === `/admin-ui/projects/${project.id}`)
  })

  it("says where a part of it did not arrive, and gets it at the next try", async () => {
    const { page, problems } = await portal.open("/requests")
    problems.expect(/ERR_FAILED|This part of the page failed|dynamically imported module|a file did not arrive/)
    await page.route(/assets\/TimeDrawing/, (route) => route.abort())
    await page.reload()
    await page.getByText("This part of the page failed").first().waitFor()
    await page.unroute(/assets\/TimeDrawing/)
    await page.getByRole("alert").getByRole("button", { name: "Try again" }).first().press("Enter")
    await page.locator("figure svg").first().waitFor()
    await page.route(/assets\/App-/, (route) => route.abort())
    await page.reload()
    await page.getByRole("heading", { name: "A part of the portal did not arrive" }).waitFor()
    await page.unroute(/assets\/App-/)
    await page.getByRole("button", { name: "Try again" }).click()
    await page.getByRole("heading", { name: "Requests", level: 1 }).waitFor()
  })

  it("keeps the range in the address, on every page", async () => {
    const { page } = await portal.open("/?range=7d")
    await page.getByRole("radiogroup", { name: "Range" }).getByText("1h", { exact: true }).click()
    await page.waitForURL(/\/admin-ui\/\?range=1h$/)
    await page.keyboard.press("g")
    await page.keyboard.press("u")
    await page.waitForURL(/\/admin-ui\/usage\?range=1h$/)
    await page.keyboard.press("[")
    await page.waitForURL(/range=.*Z\.\./)
  })

  it("says whether what it shows is live, and pauses", async () => {
    const { page } = await portal.open("/")
    const indicator = page.getByRole("button", { name: /^(live|paused|reconnecting)$/ })
    await eventuallyTrue(async () => (await indicator.innerText()) === "live")
    await page.keyboard.press("l")
    await eventuallyTrue(async () => (await indicator.innerText()) === "paused")
    await indicator.click()
    await eventuallyTrue(async () => (await indicator.innerText()) === "live")
  })
}

/** The pages of one object, the word for it, and the link to all of them. */
const missing = [
  ["/keys", "key", "All keys"],
  ["/keys/changes", "change", "All bulk changes"],
  ["/projects", "project", "All projects"],
  ["/services", "service", "All services"],
  ["/guardrails", "guardrail", "All guardrails"],
  ["/dead-letters", "dead letter", "Dead-letter queues"],
  ["/dead-letters/replays", "replay", "All replays"]
] as const

describePortal("The portal", (portal) => {
  describe("signing in", () => signingIn(portal))
  describe("the frame of all pages", () => frame(portal))
})
