import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { createKey } from "../../RunningGateway.ts"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal } from "../PortalBrowser.ts"

/** Shows the columns too that are hidden at first. */
const showAllColumns = async (page: Page) => {
  await page.getByRole("button", { name: "Columns, rows, CSV" }).click()
  const boxes = page.getByRole("menuitemcheckbox")
  await boxes.first().waitFor()
  for (const box of await boxes.all()) if ((await box.getAttribute("aria-checked")) !== "true") await box.click()
  await page.keyboard.press("Escape")
}

describePortal("Lists", (portal) => {
  it("are in the order of each column whose header is a button", async () => {
    const { raw } = await createKey(portal.gateway, { name: "ada's laptop" })
    await portal.gateway.operate("PUT", "/model-prices/gpt-5", { input_usd_per_million: 1, output_usd_per_million: 2 })
    await fetch(`${portal.gateway.proxy}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${raw}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-5", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] })
    }).then((response) => response.arrayBuffer())
    for (const [path, name, atLeast] of [
      ["/keys", "Keys", 5],
      ["/requests", "Requests", 5],
      ["/models", "Models", 3],
      ["/models?tab=prices", "Stored prices", 5]
    ] as const) {
      const { page } = await portal.open(path)
      const table = page.getByRole("table", { name, exact: true })
      await table.waitFor()
      await showAllColumns(page)
      const headers = await table.locator("th button").allInnerTexts()
      assert.isAtLeast(headers.length, atLeast, path)
      for (const header of headers) {
        await table.locator("th").getByRole("button", { name: header, exact: true }).click()
        const sorted = table.locator("th[aria-sort]")
        await eventuallyTrue(async () => (await sorted.allInnerTexts()).join() === header)
      }
    }
  })
})
