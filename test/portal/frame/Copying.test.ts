import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { holdAnswers } from "../HeldAnswers.ts"
import { describePortal } from "../PortalBrowser.ts"

/** Copies the open page, and returns the text that was copied. */
const copied = async (page: Page, as: "curl" | "configuration"): Promise<string> => {
  await page.getByRole("button", { name: "Copy as" }).click()
  await page.getByRole("menuitem", { name: as }).click()
  await page.getByText(/(is|are) copied\.$/).waitFor()
  return page.evaluate<string>("navigator.clipboard.readText()")
}

describePortal("Copied pages", (portal) => {
  it("are the requests of what is shown", async () => {
    const { page } = await portal.open("/keys")
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
    const { id } = Object(await portal.gateway.operate("POST", "/projects", { name: "checkout" }))
    const pages = [
      ["/limits", ["limits/state?scope=all&limit=500"]],
      ["/limits/requests?state=open", ["limits/raise-requests?state=open&limit=100"]],
      ["/usage", ["usage/by-", "breakdown_limit=101", "sort_by="]],
      [`/usage?tab=unused&project_id=${id}`, [`usage/unused-keys?project_id=${id}&`]],
      ["/models?priced=false", ["admin/models?priced=false"]],
      ["/models?tab=prices", ["admin/model-prices"]],
      ["/policies?kind=team", ["policy-layers?kind=team"]],
      ["/policies?tab=effective&team_id=blue", ["policy/effective?team_id=blue"]],
      ["/upstreams?tab=credentials", ["providers/upstream-credentials"]],
      ["/upstreams?tab=passthrough", ["providers/upstream-passthrough"]],
      ["/routes", ["family-a-routes", "family-b-routes", "admin/services"]],
      ["/configuration", ["admin/configuration?omit=keys"]],
      ["/dead-letters/group?queue_name=a.dlq&reason=r", ["dlq/messages?queue_name=a.dlq&reason=r&has_exception=false"]]
    ] as const
    for (const [address, parts] of pages) {
      await page.goto(`${portal.gateway.control}/admin-ui${address}`)
      const command = await copied(page, "curl")
      for (const part of parts) assert.include(command, part, address)
    }
  })

  it("are the sections of the configuration that have what is shown, and no other", async () => {
    const { page } = await portal.open("/keys")
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
    const pages = [
      ["/routes", ["routes"]],
      ["/models", ["model_prices"]],
      ["/upstreams", ["providers"]],
      ["/upstreams?tab=passthrough", ["upstream_passthrough"]],
      ["/studio", ["studio_connection"]]
    ] as const
    for (const [address, sections] of pages) {
      await page.goto(`${portal.gateway.control}/admin-ui${address}`)
      const document: unknown = JSON.parse(await copied(page, "configuration"))
      assert.sameMembers(Object.keys(Object(document)), ["format", ...sections], address)
    }
    const weak = await portal.open("/routes", { scopes: ["usage:read"] })
    await weak.page.getByRole("button", { name: "Copy as" }).click()
    await weak.page.getByRole("menuitem", { name: "curl" }).waitFor()
    assert.strictEqual(await weak.page.getByRole("menuitem", { name: "configuration" }).count(), 0)
  })

  it("are an export of requests, all or the first of them, as a file, a command and an address", async () => {
    for (const path of ["/usage?group=model&key_id=00000000-0000-4000-8000-000000000001", "/requests?status=failure"]) {
      const { axe, page } = await portal.open(path)
      await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
      await page.getByRole("button", { name: "Export" }).click()
      await page.getByRole("menuitem", { name: "The first of them, curl, address …" }).click()
      const dialog = page.getByRole("dialog", { name: "Export requests" })
      const address = async () => new URL((await dialog.getByRole("link").getAttribute("href")) ?? "", page.url())
      await dialog.getByRole("link", { name: "Download" }).waitFor()
      assert.deepStrictEqual(await axe(), [])
      const all = await address()
      assert.strictEqual(all.searchParams.get("all"), "true")
      assert.strictEqual(all.pathname, "/admin-ui/admin/usage/export.csv")
      await dialog.getByText("JSON", { exact: true }).click()
      await dialog.getByRole("combobox", { name: "Requests" }).click()
      await page.getByRole("option", { name: "the first 1,000", exact: true }).click()
      const { pathname, search, searchParams } = await address()
      assert.strictEqual(pathname, "/admin-ui/admin/usage/export.json")
      assert.deepStrictEqual([searchParams.get("all"), searchParams.get("limit")], [null, "1000"])
      const filter = new URL(page.url()).searchParams.has("key_id") ? "key_id" : "status"
      assert.strictEqual(searchParams.get(filter), new URL(page.url()).searchParams.get(filter))
      const read = () => page.evaluate<string>("navigator.clipboard.readText()")
      await dialog.getByRole("button", { name: "Copy address" }).click()
      await page.getByText("The address is copied.").waitFor()
      assert.strictEqual(await read(), portal.gateway.control + pathname + search)
      await dialog.getByRole("button", { name: "Copy as curl" }).click()
      await page.getByText("The command is copied.").waitFor()
      assert.include(await read(), `'${portal.gateway.control}${pathname}${search}'`)
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        dialog.getByRole("link", { name: "Download" }).click()
      ])
      assert.strictEqual(file.suggestedFilename(), "svc-usage.json")
    }
    const weak = await portal.open("/requests", { scopes: ["usage:read"] })
    assert.strictEqual(await weak.page.getByRole("button", { name: "Export" }).count(), 0)
  })

  it("are promised to the clipboard in the click, also where the text is still read", async () => {
    const { answer, page } = await portal.open("/routes")
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
    await page.evaluate(`{
      const { clipboard } = navigator
      const write = clipboard.write.bind(clipboard)
      clipboard.write = (items) => {
        window.isPromised = true
        return write(items)
      }
    }`)
    const release = await holdAnswers(page, /admin\/configuration\?/)
    const copy = copied(page, "configuration")
    await eventuallyTrue(() => page.evaluate<boolean>("window.isPromised === true"))
    assert.strictEqual(await page.getByText(/(is|are) copied\.$/).count(), 0)
    release()
    assert.include(await copy, '"routes"')
    await answer(/admin\/configuration\?/, { status: 503, message: "The database is away." })
    await page.getByRole("button", { name: "Copy as" }).click()
    await page.getByRole("menuitem", { name: "configuration" }).click()
    await page.getByText("The database is away.").waitFor()
  })
})
