import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { createKey } from "../../RunningGateway.ts"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal, type Portal } from "../PortalBrowser.ts"

/** Shows the columns too that are hidden at first. */
const showAllColumns = async (page: Page) => {
  await page.getByRole("button", { name: "Columns, rows, CSV" }).click()
  const boxes = page.getByRole("menuitemcheckbox")
  await boxes.first().waitFor()
  for (const box of await boxes.all()) if ((await box.getAttribute("aria-checked")) !== "true") await box.click()
  await page.keyboard.press("Escape")
}

const send = async ({ gateway }: Portal) => {
  const { raw } = await createKey(gateway, { name: "ada's laptop" })
  const response = await fetch(`${gateway.proxy}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${raw}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-5", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] })
  })
  await response.arrayBuffer()
  await eventuallyTrue(async () => {
    const models = await gateway.operate("GET", "/usage/by-model")
    return Array.isArray(models) && models.length > 0
  })
}

describePortal("Lists", (portal) => {
  it("are in the order of each column whose header is a button", async () => {
    await send(portal)
    await portal.gateway.operate("PUT", "/model-prices/gpt-5", { input_usd_per_million: 1, output_usd_per_million: 2 })
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

  it("are filtered by a project that is found as one types, however many there are", async () => {
    for (let n = 0; n < 60; n++) await portal.gateway.operate("POST", "/projects", { name: `a project ${n}` })
    const needle = await portal.gateway.operate("POST", "/projects", { name: "zebra crossing" })
    assert(typeof needle === "object" && needle !== null && "id" in needle)
    const { axe, page } = await portal.open("/keys")
    const project = page.getByRole("search").getByRole("combobox", { name: "Project" })
    await project.click()
    await page.getByRole("option", { name: "a project 0" }).waitFor()
    assert.strictEqual(await page.getByRole("option", { name: "zebra crossing" }).count(), 0)
    await project.fill("zeb")
    await page.getByRole("option", { name: "zebra crossing" }).click()
    await page.waitForURL(`**project_id=${needle.id}`)
    await page.getByText("No key matches these filters.").waitFor()
    await page.reload()
    await eventuallyTrue(async () => (await project.inputValue()) === "zebra crossing")
    assert.deepStrictEqual(await axe(), [])
    await page.getByRole("button", { name: "Clear the filters" }).click()
    await eventuallyTrue(async () => (await project.inputValue()) === "")
    await page.goto(`${portal.gateway.control}/admin-ui/requests`)
    await page.getByRole("button", { name: "Filter", exact: true }).click()
    await page.getByRole("combobox", { name: "Field" }).click()
    await page.getByRole("option", { name: "Project" }).click()
    await page.getByRole("combobox", { name: "Project" }).fill("zeb")
    await page.getByRole("option", { name: "zebra crossing" }).click()
    await page.getByRole("button", { name: "Remove the filter Project" }).waitFor()
  })

  it("say which groups of usage they leave out, in the file too", async () => {
    await send(portal)
    const models = await portal.gateway.operate("GET", "/usage/by-model")
    assert(Array.isArray(models) && models.length > 0)
    const { answer, page } = await portal.open("/")
    const many = Array.from({ length: 101 }, (_, n) => ({ ...models[0], name: `m${n}`, display_name: `m${n}` }))
    await answer(/usage\/by-model\?/, { body: many })
    const asked = page.waitForRequest(/usage\/by-model\?.*sort_by=reasoning_tokens/)
    await page.goto(`${portal.gateway.control}/admin-ui/usage?group=model&measure=reasoning`)
    await asked
    const sentence = "Only the top 100 are listed. Order: reasoning tokens."
    await page.getByText(sentence).waitFor()
    await page.getByRole("button", { name: "Export" }).click()
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name: "This table as CSV" }).click()
    ])
    const lines = (await Array.fromAsync(await file.createReadStream())).join("").split("\r\n")
    assert.lengthOf(lines, 103)
    assert.strictEqual(lines.at(-1), sentence)
    const rest = Array.from({ length: 50 }, (_, n) => ({ ...models[0], name: `n${n}`, display_name: `n${n}` }))
    await answer(/usage\/by-model\?.*breakdown_offset=100/, { body: rest })
    const table = page.getByRole("table", { name: "Usage by model" })
    const next = page.waitForRequest(/usage\/by-model\?.*breakdown_offset=100/)
    await page.getByRole("button", { name: "Show more" }).click()
    await next
    await eventuallyTrue(async () => (await table.getAttribute("aria-rowcount")) === "151")
    assert.strictEqual(await page.getByText(/^Only the top/).count(), 0)
    const least = page.waitForRequest(/usage\/by-model\?.*sort_order=asc/)
    await table.locator("th").getByRole("button", { name: "Reasoning tokens" }).click()
    await least
    await table.locator("th[aria-sort=ascending]").waitFor()
    await page.getByText("Only the last 100 are listed. Order: reasoning tokens.").waitFor()
  })

  it("have all that their columns show in their files", async () => {
    const asked = {
      ...{ id: "1", key_id: "2", key_name: null, key_prefix: "rk_live_1", owner_email: null, state: "open" },
      ...{ meter: null, amount: null, model: "large", reason: "a long text", created_at: "2026-11-26T10:00:00Z" },
      ...{ answer: null, answered_at: null, answered_by: null, granted: null }
    }
    const cancelled = {
      ...{ cancellation_id: "1", state: "done", reason: "a wrong campaign", by: null, query: { type: "letter" } },
      ...{ total: 1, truncated: false, asked_before: 0, cancelled: 0, requested: 0, ended: 0, withdrawn: 1, failed: 0 },
      ...{ remaining: 0, stopped: null, withdrawn_at: null, started_at: asked.created_at },
      ...{ updated_at: asked.created_at, ended_at: null }
    }
    const { answer, page } = await portal.open("/")
    await answer(/limits\/raise-requests\?/, { body: [asked] })
    await answer(/tasks\/cancellations\?/, { body: { cancellations: [cancelled], next_cursor: null } })
    for (const [path, name] of [
      ["/audit?span=all", "target_name"],
      ["/limits/requests", "model"],
      ["/tasks/cancellations", "withdrawn"]
    ] as const) {
      await page.goto(`${portal.gateway.control}/admin-ui${path}`)
      await page.getByRole("row").nth(1).waitFor()
      await showAllColumns(page)
      await page.getByRole("button", { name: "Columns, rows, CSV" }).click()
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("menuitem", { name: /^CSV of / }).click()
      ])
      const [header] = (await Array.fromAsync(await file.createReadStream())).join("").split("\r\n")
      assert.include(header?.split(",") ?? [], name, path)
    }
  })

  it("are saved with the rows that are not shown yet, and with the columns that are", async () => {
    for (let n = 0; n < 105; n++)
      await portal.gateway.operate("POST", "/keys", { name: `saved ${n}`, owner_type: "individual", tags: ["saved"] })
    const { answer, axe, page } = await portal.open("/keys?tag=saved")
    await page.getByText("100 shown, there are more").waitFor()
    const menu = page.getByRole("button", { name: "Columns, rows, CSV" })
    await menu.click()
    for (const column of ["Team", "Owner", "Tags", "Project", "Spend this month", "Last used", "Expires"])
      await page.getByRole("menuitemcheckbox", { name: column, exact: true }).click()
    const all = page.getByRole("menuitem", { name: "CSV of this view, with the rows not shown yet" })
    const [file] = await Promise.all([page.waitForEvent("download"), all.click()])
    const lines = (await Array.fromAsync(await file.createReadStream())).join("").split("\r\n")
    assert.strictEqual(lines[0], "id,name,key_prefix,state")
    assert.lengthOf(lines, 106)
    await page.getByText("105 rows are in the file.").waitFor()
    // what was read for the file is not in the list
    await page.getByText("100 shown, there are more").waitFor()
    const back = await answer(/admin\/keys\?.*cursor=/, { delayMs: 8_000 })
    await menu.click()
    await all.click()
    await page.getByRole("button", { name: "Stop, 100 rows read" }).waitFor()
    assert.deepStrictEqual(await axe(), [])
    await page.getByRole("button", { name: "Stop, 100 rows read" }).click()
    await menu.waitFor()
    await back()
  })
})
