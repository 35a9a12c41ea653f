import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { describePortal } from "../PortalBrowser.ts"
import { StudioServer } from "./StudioServer.ts"

const press = async (page: Page, ...keys: ReadonlyArray<string>) => {
  for (const key of keys) await page.keyboard.press(key)
}

/** Goes on with the tabulator until the element has the focus. */
const tabTo = async (page: Page, name: string | RegExp, role: "button" | "textbox" | "checkbox" = "button") => {
  const wanted = page.getByRole(role, { name }).first()
  await wanted.waitFor()
  for (let presses = 0; presses < 80; presses += 1) {
    if (await wanted.evaluate((element) => element === element.ownerDocument.activeElement)) return
    await page.keyboard.press("Tab")
  }
  assert.fail(`${String(name)} cannot be reached with the tabulator`)
}

const find = async (page: Page, words: string) => {
  await press(page, "Control+k")
  await page.getByPlaceholder("Go to, find an id, do …").waitFor()
  await page.keyboard.type(words)
  await press(page, "Enter")
}

describePortal("Upstream pages, by keyboard alone", (portal) => {
  it("the audit chain is verified, and its head compared with a noted one", async () => {
    const { axe, page } = await portal.open("/system")
    await find(page, "Verify the audit chain")
    const dialog = page.getByRole("dialog", { name: "Verify the audit chain" })
    await dialog.getByText("intact").waitFor()
    const head = (await dialog.getByRole("region", { name: "Head" }).innerText()).trim()
    assert.match(head, /^\d+:[0-9a-f]{64}$/)
    await tabTo(page, "Compare with a noted head", "textbox")
    await page.keyboard.type(head)
    await press(page, "Enter")
    await dialog.getByText("same", { exact: true }).waitFor()
    await press(page, "Control+a")
    await page.keyboard.type(`${head.split(":")[0]}:${"0".repeat(64)}`)
    await press(page, "Enter")
    await dialog.getByText("different", { exact: true }).waitFor()
    assert.deepStrictEqual(await axe(), [])
    await press(page, "Escape")
    await dialog.waitFor({ state: "detached" })
  })

  it("a guardrail is tried: what it finds is marked, with what would be sent and what the client sees", async () => {
    const { axe, page } = await portal.open("/guardrails/pii-redact?tab=bench")
    await tabTo(page, "The user's message", "textbox")
    await press(page, "Control+a")
    await page.keyboard.type("mail ada@example.com <b>now</b>")
    await tabTo(page, "The model's answer", "textbox")
    await press(page, "Control+a")
    await page.keyboard.type("I wrote to [EMA|IL_1].")
    await tabTo(page, "Try it")
    await press(page, "Enter")
    const sent = page.getByRole("textbox", { name: "Sent to the upstream" })
    await sent.waitFor()
    assert.strictEqual(await sent.innerText(), "mail [EMAIL_1] <b>now</b>")
    assert.deepStrictEqual(await sent.locator("mark").allInnerTexts(), ["[EMAIL_1]"])
    const seen = page.getByRole("textbox", { name: "What the client sees" })
    assert.strictEqual(await seen.innerText(), "I wrote to ada@example.com.")
    assert.include(await page.locator("details summary").innerText(), "4 B held back")
    assert.deepStrictEqual(await axe(), [])
  })

  it("a service of a studio is imported", async () => {
    const studio = await StudioServer.start([
      { studio_service_id: "st-1", name: "summaries", display_name: "<i>Summaries</i>", base_url: "http://127.0.0.1:9" }
    ])
    await portal.gateway.operate("PATCH", "/studio/connection", { base_url: studio.url, token: "studio-token" })
    const { axe, page } = await portal.open("/models")
    await find(page, "Import services")
    await page.getByText("<i>Summaries</i>").waitFor()
    assert.deepStrictEqual(await axe(), [])
    await tabTo(page, "Select st-1", "checkbox")
    await press(page, "Space")
    await page.getByRole("button", { name: "Import 1" }).waitFor()
    await press(page, ...Array.from({ length: 1 }, () => "Shift+Tab"))
    await page.getByRole("button", { name: "Import 1" }).focus()
    await press(page, "Enter")
    await page.getByRole("dialog", { name: "Import 1 services" }).getByText("is new").waitFor()
    await press(page, "Enter")
    await page.getByText("1 services are imported").waitFor()
    await page.getByRole("link", { name: "summaries", exact: true }).waitFor()
    await studio.stop()
  })
})
