import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import * as LocalPort from "../LocalPort.ts"
import { eventuallyTrue } from "./EventuallyTrue.ts"
import { holdAnswers, holdRequests } from "./HeldAnswers.ts"
import { describePortal } from "./PortalBrowser.ts"

const stateOf = (page: Page) => page.getByRole("button", { name: /^(live|paused|reconnecting|reset)$/ }).innerText()

const folder = mkdtempSync(join(tmpdir(), "svc-test-portal-"))
const [control, proxy, status] = await Effect.runPromise(Effect.all([LocalPort.free, LocalPort.free, LocalPort.free]))

describePortal(
  "The live connection",
  (portal) => {
    afterAll(() => rmSync(folder, { recursive: true }))

    it("is one for all tabs, and another tab takes it over", async () => {
      const { page, problems } = await portal.open("/")
      const open = new Set<Page>()
      page.context().on("request", (request) => {
        if (new URL(request.url()).pathname === "/admin-ui/live") open.add(request.frame().page())
      })
      await page.reload()
      await eventuallyTrue(async () => open.has(page) && (await stateOf(page)) === "live")
      const second = await page.context().newPage()
      problems.watch(second)
      await second.goto(`${portal.gateway.control}/admin-ui/projects`)
      await eventuallyTrue(async () => (await stateOf(second)) === "live")
      assert.isFalse(open.has(second))
      await portal.gateway.operate("POST", "/projects", { name: "before" })
      await second.getByText("before").waitFor()
      const release = await holdRequests(second, /\/admin-ui\/live$/)
      await second.evaluate(`{
        const button = [...document.querySelectorAll("button")].find(({ textContent }) => textContent === "live")
        window.seen = []
        const observer = new MutationObserver(() => window.seen.push(button.textContent))
        observer.observe(button, { characterData: true, childList: true, subtree: true })
      }`)
      await page.close()
      await eventuallyTrue(async () => open.has(second))
      await portal.gateway.operate("POST", "/projects", { name: "between the connections" })
      await release()
      await second.getByText("between the connections").waitFor()
      await portal.gateway.operate("POST", "/projects", { name: "after the other tab" })
      await second.getByText("after the other tab").waitFor()
      assert.deepStrictEqual(await second.evaluate("window.seen"), [])
    })

    it("that begins late is none that was lost: nothing is read twice", async () => {
      const { answer, page } = await portal.open("/settings")
      await answer("/live", { delayMs: 3_000 })
      let reads = 0
      page.on("request", (request) => {
        if (/\/admin\/projects\?/.test(request.url())) reads++
      })
      await page.goto(`${portal.gateway.control}/admin-ui/projects`)
      await eventuallyTrue(async () => (await stateOf(page)) === "live")
      await page.waitForTimeout(500)
      assert.strictEqual(await page.getByText("The server is back").count(), 0)
      assert.strictEqual(reads, 1)
    })

    it("that does not come is no reason to show what is old", async () => {
      // another tab that is still open would have the connection for this one
      const { answer, page } = await portal.open("/settings", { ownSession: true })
      await answer("/live", { status: 503 })
      await page.goto(`${portal.gateway.control}/admin-ui/projects`)
      await page.getByText(/^No connection to the server since/).waitFor()
      await portal.gateway.operate("POST", "/projects", { name: "without a connection" })
      await page.getByText("without a connection").waitFor()
    })

    it("leaves out nothing that happened during a read", async () => {
      const { page } = await portal.open("/projects")
      await eventuallyTrue(async () => (await stateOf(page)) === "live")
      const answer = await holdAnswers(page, /\/admin\/projects\?/)
      const asked = page.waitForRequest(/\/admin\/projects\?/)
      await portal.gateway.operate("POST", "/projects", { name: "before the read" })
      await asked
      await portal.gateway.operate("POST", "/projects", { name: "during the read" })
      // longer than a page waits with a refresh, which meets the read that is under way
      await page.waitForTimeout(3_000)
      answer()
      await page.getByText("during the read").waitFor()
    })

    it("reads again what it shows after a pause in which another tab went on", async () => {
      const { page, problems } = await portal.open("/projects")
      await eventuallyTrue(async () => (await stateOf(page)) === "live")
      const second = await page.context().newPage()
      problems.watch(second)
      await second.goto(`${portal.gateway.control}/admin-ui/projects`)
      await eventuallyTrue(async () => (await stateOf(second)) === "live")
      await page.locator("main#page h1").click()
      await page.keyboard.press("l")
      await eventuallyTrue(async () => (await stateOf(page)) === "paused")
      await portal.gateway.operate("POST", "/projects", { name: "while it was paused" })
      await second.getByText("while it was paused").waitFor()
      await page.keyboard.press("l")
      await page.getByText("while it was paused").waitFor()
      await eventuallyTrue(async () => (await stateOf(page)) === "live")
    })

    it("brings a page whose files did not arrive, in the frame, once the server answers", async () => {
      // a browser that has not seen the page before
      const { page, problems } = await portal.open("/settings", { ownSession: true })
      problems.expect(/ERR_FAILED|a file of the page did not arrive|Unable to preload|dynamically imported module/)
      await page.route(/./, (route) => route.abort())
      await page.getByRole("link", { name: "Board" }).click()
      await page.getByRole("heading", { name: "This page did not arrive" }).waitFor()
      await page.getByText("The server does not answer. The page is loaded as soon as it does.").waitFor()
      await page.getByRole("button", { name: "Load the portal again" }).click()
      // another page that is missing waits for the server, too
      await page.getByRole("link", { name: "Dead letters" }).click()
      await page.waitForURL(/\/dead-letters/)
      await page.getByText("The server does not answer. The page is loaded as soon as it does.").waitFor()
      await page.unroute(/./)
      await page.getByRole("heading", { name: "Dead letters", level: 1 }).waitFor()
    })

    it("comes back by itself after a restart of the server, and says so", async () => {
      const { page, problems } = await portal.open("/projects")
      await eventuallyTrue(async () => (await stateOf(page)) === "live")
      problems.expect(
        /ERR_CONNECTION_REFUSED|ERR_SOCKET_NOT_CONNECTED|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE/
      )
      problems.expect(/^503 GET /)
      const restarted = portal.restart()
      await eventuallyTrue(async () => (await stateOf(page)) === "reconnecting")
      await restarted
      await page.getByText("The server is back.").waitFor()
      await eventuallyTrue(async () => (await stateOf(page)) === "live")
      await page.getByRole("heading", { name: "Projects", level: 1 }).waitFor()
    })
  },
  {
    isEmbedded: true,
    flags: ["--data", folder],
    environment: {
      GATEWAY_CONTROL_BIND_ADDR: `127.0.0.1:${control}`,
      GATEWAY_BIND_ADDR: `127.0.0.1:${proxy}`,
      SVC_STATUS_BIND_ADDR: `127.0.0.1:${status}`
    }
  }
)
