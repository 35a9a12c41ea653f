import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal } from "../PortalBrowser.ts"

/** The ranges that the page asks for from now on, by where they begin. */
const rangesAsked = (page: Page): Set<string> => {
  const asked = new Set<string>()
  page.on("request", (request) => {
    const url = new URL(request.url())
    if (/\/usage\/(summary|by-model)$/.test(url.pathname)) asked.add(url.searchParams.get("from") ?? "")
  })
  return asked
}

describePortal("A range that goes on with the time", (portal) => {
  it("stands still while the person has paused the page", async () => {
    const { page } = await portal.open("/keys")
    await page.clock.install({ time: Math.floor(Date.now() / 60_000) * 60_000 })
    await page.goto(`${portal.gateway.control}/admin-ui/usage?range=1h&compare=nothing`)
    await page.getByRole("button", { name: "live", exact: true }).waitFor()
    const asked = rangesAsked(page)
    await page.clock.runFor(61_000)
    await eventuallyTrue(async () => asked.size > 0)
    await page.keyboard.press("l")
    await page.getByRole("button", { name: "paused", exact: true }).waitFor()
    const before = [...asked]
    await page.clock.runFor(180_000)
    assert.deepStrictEqual([...asked], before)
    await page.keyboard.press("l")
    await eventuallyTrue(async () => asked.size > before.length)
  })

  it("stands still while a list is read further, which would begin anew", async () => {
    const { answer, page } = await portal.open("/keys")
    const summary = await portal.gateway.operate("GET", "/usage/summary")
    const groups = (first: number, count: number) =>
      Array.from({ length: count }, (_, n) => ({ name: `m${first + n}`, display_name: `m${first + n}`, summary }))
    await answer(/usage\/by-model\?/, { body: groups(0, 101) })
    await answer(/usage\/by-model\?.*breakdown_offset=100/, { body: groups(100, 50) })
    await page.clock.install({ time: Math.floor(Date.now() / 60_000) * 60_000 })
    await page.goto(`${portal.gateway.control}/admin-ui/usage?range=1h&group=model&compare=nothing`)
    await page.getByRole("button", { name: "Show more" }).click()
    const table = page.getByRole("table", { name: "Usage by model" })
    await eventuallyTrue(async () => (await table.getAttribute("aria-rowcount")) === "151")
    const asked = rangesAsked(page)
    await page.clock.runFor(180_000)
    assert.strictEqual(await table.getAttribute("aria-rowcount"), "151")
    await page.getByRole("link", { name: "Keys", exact: true }).first().click()
    await page.goBack()
    await eventuallyTrue(async () => asked.size > 1)
  })
})
