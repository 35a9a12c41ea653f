import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import type { Locator, Page } from "playwright-core"
import { createKey } from "../../RunningGateway.ts"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { refused } from "../oncall/ShopTasks.ts"
import { describePortal } from "../PortalBrowser.ts"

const tasks = fileURLToPath(new URL("../oncall/ShopTasks.ts", import.meta.url))

/** The headers of the cells of a card that are seen, and those of them that stand in the card. */
const seenIn = async (card: Locator) => {
  const cells = card.locator("td[data-label]:visible")
  await cells.first().waitFor()
  return cells.evaluateAll((all) => all.map((cell) => cell.getAttribute("data-label")))
}

const labelsIn = (card: Locator) =>
  card
    .locator("td[data-labelled]:visible")
    .evaluateAll((all) => all.map((cell) => cell.ownerDocument.defaultView?.getComputedStyle(cell, "::before").content))

/** Whether the whole hint of an empty field is seen. */
const isWhole = (field: Locator) =>
  field.evaluate((one: HTMLInputElement) => {
    const style = getComputedStyle(one)
    const canvas = one.ownerDocument.createElement("canvas").getContext("2d")
    if (canvas === null) return false
    canvas.font = style.font
    const room = one.clientWidth - Number.parseFloat(style.paddingLeft) - Number.parseFloat(style.paddingRight)
    return canvas.measureText(one.placeholder).width <= room
  })

const cutIn = async (page: Page) => {
  await page.getByRole("search").first().waitFor()
  const fields = await page.getByRole("search").locator("input[placeholder]").all()
  const all = await Promise.all(
    fields.map(async (field) => ((await isWhole(field)) ? [] : [await field.getAttribute("placeholder")]))
  )
  return all.flat()
}

describePortal(
  "Lists",
  (portal) => {
    it("have in the cards of a phone whatever a person decides by, and say what a number counts", async () => {
      const key = await createKey(portal.gateway, { name: "phone", policy: { max_requests_per_day: 1 } })
      for (let n = 0; n < 2; n++) {
        const answer = await fetch(`${portal.gateway.proxy}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${key.raw}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: "hello" }] })
        })
        await answer.arrayBuffer()
      }
      const { page } = await portal.open("/keys", { width: 360 })
      const cardOf = (list: string, text: string) =>
        page.getByRole("table", { name: list, exact: true }).locator("tbody tr").filter({ hasText: text }).first()
      const ofKey = await seenIn(cardOf("Keys", "phone"))
      assert.includeMembers(ofKey, ["State", "Owner", "Last used", "Spend this month", "Expires"])
      assert.include(await labelsIn(cardOf("Keys", "phone")), '"Expires "')

      await eventuallyTrue(async () => {
        await page.goto(`${portal.gateway.control}/admin-ui/requests?range=1h`)
        await page.getByRole("heading", { name: "Requests", level: 1 }).waitFor()
        return (await cardOf("Requests", "429").count()) > 0
      })
      const refusal = cardOf("Requests", "429").locator("td", { hasText: "429" }).locator("code")
      assert.isTrue(await refusal.evaluate((one) => one.scrollWidth <= one.clientWidth), "its reason is not cut")
      assert.includeMembers(await seenIn(cardOf("Requests", "phone")), ["Time", "Status", "Model", "Duration", "Cost"])

      await page.goto(`${portal.gateway.control}/admin-ui/tasks`)
      const task = cardOf("Tasks", "refused-1")
      await task.getByText("550 no mailbox refused-1@example.org").waitFor()
      const ofTask = ["Status", "Type", "Retry", "First status", "First to last", "Last message", "Cost"]
      assert.includeMembers(await seenIn(task), ofTask)

      await page.goto(`${portal.gateway.control}/admin-ui/dead-letters?tab=letters`)
      const letter = cardOf("Dead letters", "refused-1")
      const ofLetter = ["State", "Dead since", "Exception", "Message", "Attempts", "Queue", "Replays"]
      assert.includeMembers(await seenIn(letter), ofLetter)
      const message = letter.locator("td", { hasText: "550 no mailbox refused-1@example.org" })
      assert.isTrue(await message.evaluate((one) => one.scrollWidth <= one.clientWidth), "its message is not cut")
    })

    it("have filters that are wide enough for their words", async () => {
      for (const path of ["/audit", "/keys", "/dead-letters?tab=letters"]) {
        const { page } = await portal.open(path)
        assert.deepStrictEqual(await cutIn(page), [], path)
      }
    })

    it("lead to dialogs whose buttons are in view, however long they are", async () => {
      const { page } = await portal.open("/models?do=import")
      await page.setViewportSize({ width: 1280, height: 800 })
      const dialog = page.getByRole("dialog", { name: "Import the price book" })
      const button = dialog.getByRole("button", { name: /^Import \d+ prices$/ })
      await dialog.getByRole("row").nth(20).waitFor()
      const box = await button.boundingBox()
      assert.isAtMost((box?.y ?? 800) + (box?.height ?? 0), 800)
      // it is not below something else there
      await button.click({ trial: true })
    })

    it("lead to tasks whose state is explained without raw times and with short ids", async () => {
      await eventuallyTrue(async () => {
        const all = await fetch(`${portal.gateway.control}/admin-ui/tasks/dlq/messages?limit=200`, {
          headers: { authorization: `Bearer ${portal.adminToken}` }
        })
        const { items }: { readonly items: ReadonlyArray<unknown> } = await all.json()
        return items.length >= refused
      })
      const { page } = await portal.open("/tasks/refused-2")
      const sentence = page.getByRole("paragraph").filter({ hasText: "It was dead-lettered" }).first()
      await sentence.locator("time").first().waitFor()
      assert.notMatch(await sentence.innerText(), /\d{4}-\d\d-\d\dT/)
      assert.match((await sentence.locator("time").first().getAttribute("title")) ?? "", /\d\d:\d\d:\d\d/)
      const link = sentence.getByRole("link")
      assert.isAtMost((await link.boundingBox())?.width ?? 1_000, 220)
      await link.click()
      await page.waitForURL(/\/dead-letters\/[^/]+$/)
    })
  },
  { tasks }
)
