import { assert, it } from "@effect/vitest"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal } from "../PortalBrowser.ts"

describePortal("Lists without rows", (portal) => {
  it("have their filters cleared, and keep the rest of the address", async () => {
    const { axe, page } = await portal.open("/audit?span=all&target_id=nothing&utc=true")
    await page.getByText("No event of the log matches these filters.").waitFor()
    assert.deepStrictEqual(await axe(), [])
    await page.getByRole("button", { name: "Clear the filters" }).click()
    await page.waitForURL((url) => !url.search.includes("target_id"))
    assert.include(page.url(), "span=all")
    assert.include(page.url(), "utc=true")
    const field = page.getByRole("textbox", { name: "Id or name of the object" })
    await eventuallyTrue(async () => (await field.inputValue()) === "")
    await page.getByRole("table", { name: "Audit events" }).locator("tbody tr").first().waitFor()
  })

  it("empty the field of a name with its filter", async () => {
    const { page } = await portal.open("/limits?q=nobody")
    await page.getByText("No limit that was read matches.").waitFor()
    await page.getByRole("button", { name: "Clear the filters" }).click()
    const field = page.getByRole("textbox", { name: "Name of a key or layer" })
    await eventuallyTrue(async () => (await field.inputValue()) === "")
  })

  it("offer 30 days while the range is shorter", async () => {
    const { axe, page } = await portal.open("/requests?range=15m")
    await page.getByText("No request in this range.").waitFor()
    assert.include(await page.getByRole("region", { name: "Command" }).innerText(), "/v1/chat/completions")
    assert.deepStrictEqual(await axe(), [])
    const longer = page.getByRole("link", { name: "Look at 30 days" })
    await longer.click()
    await page.waitForURL("**range=30d")
    await eventuallyTrue(async () => (await longer.count()) === 0)
  })

  it("name nothing that the token may not do", async () => {
    const { page } = await portal.open("/services", { scopes: ["usage:read"] })
    await page.getByText("No service is registered.").waitFor()
    assert.strictEqual(await page.getByRole("button", { name: "Register a service" }).count(), 0)
    assert.strictEqual(await page.getByRole("region", { name: "Command" }).count(), 0)
  })
})
