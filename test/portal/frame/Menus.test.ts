import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { createKey } from "../../RunningGateway.ts"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal } from "../PortalBrowser.ts"

const currentOf = (page: Page) => page.locator('nav [aria-current="page"]:visible').allInnerTexts()

describePortal("The menus and the range", (portal) => {
  it("mark one page, also where a page is below another one", async () => {
    const { page } = await portal.open("/tasks/board")
    assert.deepStrictEqual(await currentOf(page), ["Board"])
    await page.keyboard.press("g")
    await page.keyboard.press("t")
    await page.getByRole("heading", { name: "Tasks", level: 1 }).waitFor()
    assert.deepStrictEqual(await currentOf(page), ["Tasks"])
  })

  it("mark the next page at once, while it is drawn", async () => {
    const { page } = await portal.open("/")
    await page.evaluate(`{
      window.seen = []
      const textOf = (place) => document.querySelector(place)?.textContent
      new MutationObserver(() => seen.push([textOf('nav [aria-current="page"]'), textOf("h1")]))
        .observe(document.body, { subtree: true, childList: true, attributes: true })
    }`)
    await page.keyboard.press("g")
    await page.keyboard.press("k")
    await page.getByRole("heading", { name: "Keys", level: 1 }).waitFor()
    const seen = await page.evaluate<ReadonlyArray<readonly [string, string | undefined]>>("seen")
    const first = seen.find(([current]) => current === "Keys")
    assert.isDefined(first)
    assert.notStrictEqual(first?.[1], "Keys")
  })

  it("lead back to the place on the page before", async () => {
    const { page } = await portal.open("/")
    await page.setViewportSize({ width: 1280, height: 400 })
    const placeOf = () => page.evaluate<number>("window.scrollY")
    // the browser tells of it in its next frame, and the router keeps the place of what it was told of
    await page.evaluate("new Promise((told) => { addEventListener('scroll', told, { once: true }); scrollTo(0, 300) })")
    assert.strictEqual(await placeOf(), 300)
    await page.keyboard.press("g")
    await page.keyboard.press("k")
    await page.getByRole("heading", { name: "Keys", level: 1 }).waitFor()
    assert.strictEqual(await placeOf(), 0)
    await page.goBack()
    await page.getByRole("heading", { name: "Home", level: 1 }).waitFor()
    await eventuallyTrue(async () => (await placeOf()) === 300)
  })

  it("leave the keys of pages to the keyboard after a click on a range", async () => {
    const { page } = await portal.open("/keys")
    await page.getByRole("radiogroup", { name: "Range" }).getByText("7d").click()
    await page.waitForURL(/range=7d/)
    await page.keyboard.press("g")
    await page.keyboard.press("p")
    await page.getByRole("heading", { name: "Projects", level: 1 }).waitFor()
    assert.match(page.url(), /range=7d/)
  })

  it("are reached from a row, too, whose own keys have the same letters", async () => {
    await createKey(portal.gateway, { name: "a row" })
    const { page } = await portal.open("/keys")
    await page.getByRole("row").filter({ hasText: "a row" }).waitFor()
    await page.keyboard.press("j")
    await eventuallyTrue(() => page.evaluate<boolean>("document.activeElement?.tagName === 'TR'"))
    await page.keyboard.press("g")
    await page.keyboard.press("c")
    await page.getByRole("heading", { name: "Configuration", level: 1 }).waitFor()
    assert.strictEqual(await page.getByText("is copied").count(), 0)
  })

  it("give the focus back when the custom range is closed", async () => {
    const { page } = await portal.open("/keys")
    const custom = page.getByRole("button", { name: "Custom" })
    await custom.focus()
    await page.keyboard.press("Enter")
    await page.getByLabel("From").waitFor()
    await page.keyboard.press("Escape")
    await page.getByLabel("From").waitFor({ state: "hidden" })
    await eventuallyTrue(() => page.evaluate<boolean>("document.activeElement?.textContent === 'Custom'"))
  })

  it("are at the thumb on a phone, with all pages in a drawer that is accessible", async () => {
    const { axe, page } = await portal.open("/keys", { width: 360 })
    assert.deepStrictEqual(await axe(), [])
    await page.getByRole("button", { name: "More" }).click()
    await page.getByRole("dialog", { name: "All pages" }).waitFor()
    assert.deepStrictEqual(await axe(), [])
    assert.isAtMost(await page.evaluate<number>("document.documentElement.scrollWidth"), 360)
    await page.getByRole("dialog").getByRole("link", { name: "Audit" }).click()
    await page.getByRole("heading", { name: "Audit", level: 1 }).waitFor()
  })

  it("have what the keys do for a hand on a phone", async () => {
    const { axe, page } = await portal.open("/policies", { width: 360 })
    await page.getByRole("button", { name: /^Signed in as/ }).click()
    await page.getByRole("menuitem", { name: /^Colours: as the system/ }).click()
    await page.getByRole("menuitem", { name: /^Colours: light/ }).waitFor()
    assert.deepStrictEqual(await axe(), [])
    const again = page.waitForRequest(/\/admin\/policy-layers/)
    await page.getByRole("menuitem", { name: /^Read the page again/ }).click()
    await again
    await page.getByRole("button", { name: /^Signed in as/ }).click()
    await page.getByRole("menuitem", { name: /^Keys of the keyboard/ }).click()
    await page.getByRole("dialog", { name: "Keys" }).getByText("read everything on the page again").waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "hidden" })
    assert.isAtMost(await page.evaluate<number>("document.documentElement.scrollWidth"), 360)
  })

  it("of the person is walked through with the arrows", async () => {
    const { page } = await portal.open("/policies")
    await page.getByRole("button", { name: /^Signed in as/ }).focus()
    await page.keyboard.press("Enter")
    await page.getByRole("menuitem", { name: "Sign out" }).waitFor()
    const focused = () => page.evaluate<string | undefined>("document.activeElement?.textContent")
    await eventuallyTrue(async () => (await focused()) === "Colours: as the system")
    await page.keyboard.press("ArrowUp")
    await eventuallyTrue(async () => (await focused()) === "Sign out")
    await page.keyboard.press("Escape")
    await page.getByRole("menuitem", { name: "Sign out" }).waitFor({ state: "hidden" })
  })

  it("let the first filter be reached by its key, also where it is a choice", async () => {
    const { page } = await portal.open("/limits/requests")
    const state = page.getByRole("search").getByLabel("State")
    await state.waitFor()
    await page.keyboard.press("/")
    assert.isTrue(await state.evaluate((field) => field === document.activeElement))
  })

  it("say what a page below needs and what the token has", async () => {
    const create = await portal.open("/keys/new", { scopes: ["operators:manage", "usage:read"] })
    await create.page.getByText(/^This page needs keys:create\. You have operators:manage, usage:read\./).waitFor()
    const project = await portal.open("/projects/00000000-0000-4000-8000-000000000001", { scopes: ["usage:read"] })
    await project.page.getByText(/^This page needs operators:manage\. You have usage:read\./).waitFor()
  })

  it("lead nowhere that the token may not go", async () => {
    await portal.gateway.operate("POST", "/services", {
      name: "search",
      upstream_base_url: "https://search.example.com",
      allowed_methods: ["GET"]
    })
    const { page } = await portal.open("/services", { scopes: ["usage:read"] })
    const row = page.getByRole("row").filter({ hasText: "search.example.com" })
    await row.waitFor()
    assert.strictEqual(await row.getByRole("link").count(), 0)
    await row.click()
    assert.match(page.url(), /\/services$/)
    await page.goto(`${portal.gateway.control}/admin-ui/services/search`)
    await page.getByText("This page needs operators:manage. You have usage:read.").waitFor()
    const whole = await portal.open("/services")
    await whole.page.getByRole("link", { name: "search", exact: true }).click()
    await whole.page.getByRole("heading", { name: "search", level: 1 }).waitFor()
  })

  it("offer no action whose page the token cannot see", async () => {
    const { page } = await portal.open("/projects", { scopes: ["usage:read", "keys:create", "services:update"] })
    await page.keyboard.press("Control+k")
    const find = page.getByPlaceholder("Go to, find an id, do …")
    await find.fill("Create")
    await page.getByText("Create a key", { exact: true }).waitFor()
    await find.fill("Import")
    await page.getByText(/No such id|Looking|No page/).waitFor()
    assert.strictEqual(await page.getByText("Import services", { exact: true }).count(), 0)
    await find.fill("Register")
    await page.getByText("Register a service", { exact: true }).waitFor()
    await page.keyboard.press("Enter")
    await page.waitForURL(/\/services\?.*do=create/)
    await page.getByRole("dialog", { name: "Register a service" }).waitFor()
  })

  it("lead a token that may only make keys to making them, one after the other", async () => {
    const { axe, page } = await portal.open("/", { scopes: ["keys:create"] })
    await page.getByText("This page needs usage:read. You have keys:create.").waitFor()
    await page.keyboard.press("Control+k")
    await page.getByPlaceholder("Go to, find an id, do …").fill("Create a key")
    await page.getByText("Create a key", { exact: true }).waitFor()
    await page.keyboard.press("Enter")
    for (const name of ["first of two", "second of two"]) {
      await page.getByLabel("Name", { exact: true }).fill(name)
      await page.getByRole("button", { name: "To the review" }).click()
      assert.deepStrictEqual(await axe(), [])
      await page.getByRole("button", { name: "Create the key" }).click()
      await page.getByRole("heading", { name: `${name} is ready`, level: 1 }).waitFor()
      await page.getByLabel("I stored it").check()
      await page.getByRole("button", { name: "Done: make another key" }).click()
    }
    assert.strictEqual(await page.getByLabel("Name", { exact: true }).inputValue(), "")
  })

  it("forget with the sign-out what the palette remembers", async () => {
    const { answer, page, problems } = await portal.open("/keys", { ownSession: true })
    // what is asked while the session ends
    problems.expect(/^401 GET /)
    await page.keyboard.press("Control+k")
    await page.getByPlaceholder("Go to, find an id, do …").fill("Audit")
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "Audit", level: 1 }).waitFor()
    const remembered = () => page.evaluate<string | null>("localStorage.getItem('svc-recent')")
    assert.include(await remembered(), "/audit")
    const takeBack = await answer("/session", { status: 503, message: "The database is away." })
    await page.getByRole("button", { name: /^Signed in as/ }).click()
    await page.getByRole("menuitem", { name: "Sign out" }).click()
    await page.getByText("You are still signed in. The database is away.").waitFor()
    await takeBack()
    await page.getByRole("button", { name: /^Signed in as/ }).click()
    await page.getByRole("menuitem", { name: "Sign out" }).click()
    await page.getByRole("heading", { name: "Sign in" }).waitFor()
    assert.isNull(await remembered())
  })
})
