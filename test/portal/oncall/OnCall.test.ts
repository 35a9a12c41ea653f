import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal, type Portal } from "../PortalBrowser.ts"
import { hostile, refused } from "./ShopTasks.ts"

const tasks = fileURLToPath(new URL("ShopTasks.ts", import.meta.url))

const readOnly = { scopes: ["tasks:read"] }

const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { name, level: 1 })

interface Letters {
  readonly items: ReadonlyArray<{ readonly dlq_id: string; readonly task_id: string; readonly state: string }>
}

/** Reads the dead letters with the admin token, as curl does. */
const lettersOf = async (portal: Portal): Promise<Letters["items"]> => {
  const answer = await fetch(`${portal.gateway.control}/admin-ui/tasks/dlq/messages?limit=200`, {
    headers: { authorization: `Bearer ${portal.adminToken}` }
  })
  const { items }: Letters = await answer.json()
  return items
}

const allAreDead = (portal: Portal) => eventuallyTrue(async () => (await lettersOf(portal)).length >= refused)

/** The button that has the focus after so many presses of Tab, at most. */
const tabTo = async (page: Page, name: string | RegExp) => {
  const isThere = async () => {
    const focused = page.locator(":focus")
    if ((await focused.count()) === 0) return false
    const text =
      `${await focused.innerText().catch(() => "")} ${(await focused.getAttribute("aria-label")) ?? ""}`.trim()
    return typeof name === "string" ? text === name : name.test(text)
  }
  for (let presses = 0; presses < 80; presses++) {
    if (await isThere()) return
    await page.keyboard.press("Tab")
  }
  assert.fail(`no press of Tab leads to ${name}`)
}

describePortal(
  "People on call",
  (portal) => {
    it("follow a task to its dead letter with the keyboard", async () => {
      await allAreDead(portal)
      const { page } = await portal.open("/tasks")
      await page.getByRole("link", { name: "refused-3" }).waitFor()
      await page.keyboard.press("/")
      await page.keyboard.type("status:failed refused-3")
      await page.keyboard.press("Escape")
      await page.keyboard.press("Enter")
      await page.waitForURL(/q=status/)
      await eventuallyTrue(async () => (await page.getByRole("link", { name: /^refused-/ }).count()) === 1)
      await tabTo(page, /^refused-3\n?.*failed/s)
      await page.keyboard.press("Enter")
      await page.getByRole("dialog").getByText("It was dead-lettered").waitFor()
      await tabTo(page, "Its dead letter")
      await page.keyboard.press("Enter")
      await heading(page, "Dead letter").waitFor()
      await page.getByText("550 no mailbox refused-3@example.org").first().waitFor()
    })

    it("edit a dead letter, see the difference and what the server says, and learn that it was handled", async () => {
      await allAreDead(portal)
      const letter = (await lettersOf(portal)).find(({ task_id }) => task_id === "refused-0")
      const { page } = await portal.open(`/dead-letters/${letter?.dlq_id}?tab=edit`)
      const editor = page.getByRole("textbox", { name: "Payload" })
      await editor.focus()
      await page.keyboard.press("Control+a")
      await page.keyboard.insertText('{"to":"ada@example.org","order":9007199254740993,"isRefused":false}')
      await page.getByText("isRefused", { exact: true }).last().waitFor()
      await tabTo(page, "Check")
      await page.keyboard.press("Enter")
      await page.getByText("shop.mails takes such a message").waitFor()
      await tabTo(page, "Replay edited")
      await page.keyboard.press("Enter")
      const dialog = page.getByRole("dialog", { name: "Replay the edited message" })
      await dialog.getByText("9007199254740993").waitFor()
      await tabTo(page, "Replay edited")
      await page.keyboard.press("Enter")
      await page.getByText("Handled: a status of the task proves it.").waitFor({ timeout: 30_000 })
      assert.notMatch(await page.innerText("main#page"), /processed/i)
      await page.getByText("It is an edit of").waitFor()
    })

    it("replay a group in steps, see it stop itself, and stop it for good", async () => {
      await allAreDead(portal)
      const { page } = await portal.open("/dead-letters")
      await page.getByRole("link", { name: "PermanentFailure" }).click()
      await page.getByText(/members differ/).waitFor()
      await tabTo(page, "Replay in steps")
      await page.keyboard.press("Enter")
      const dialog = page.getByRole("dialog", { name: "Replay in steps" })
      await eventuallyTrue(async () => /^1 · 10/.test(await dialog.getByLabel("Steps").inputValue()))
      await dialog.getByLabel("Steps").fill("1 1 all")
      await dialog.getByLabel("Stop after").fill("2")
      await page.keyboard.press("Enter")
      await heading(page, "Replay").waitFor()
      await page.getByText("It has stopped itself:").waitFor({ timeout: 60_000 })
      const steps = page.getByRole("list", { name: "Steps" }).getByRole("listitem")
      assert.include(await steps.nth(0).innerText(), "failed again")
      assert.include(await steps.nth(2).innerText(), "not begun")
      await tabTo(page, "Stop for good")
      await page.keyboard.press("Enter")
      await page
        .getByRole("dialog", { name: "Stop the replay for good" })
        .getByText(/letters are not replayed/)
        .waitFor()
      await page.keyboard.press("Enter")
      await page.getByText(/^The replay is cancelled/).waitFor()
      await page.reload()
      await page.getByText("cancelled", { exact: true }).waitFor()
    })

    it("archive a letter with a reason, and take it back", async () => {
      await allAreDead(portal)
      const letter = (await lettersOf(portal)).find(
        ({ state, task_id }) => task_id === "refused-5" && state === "dead_lettered"
      )
      const { page } = await portal.open(`/dead-letters/${letter?.dlq_id}`)
      await page.getByRole("button", { name: "Archive" }).click()
      const dialog = page.getByRole("dialog", { name: "Archive the letter" })
      await dialog.getByLabel(/^Reason/).fill("a test order")
      await page.keyboard.press("Enter")
      await page.getByText("archived it").waitFor()
      await page.getByRole("button", { name: "Undo" }).click()
      await page.getByText("1 are open again.").waitFor()
      await page.getByRole("button", { name: "Edit", exact: true }).waitFor()
    })

    it("pause a queue for a reason, see it among the alarms, and resume it", async () => {
      const { page } = await portal.open("/tasks/board")
      await page.getByRole("button", { name: "Pause shop.mails" }).click()
      await page.getByLabel(/^Reason/).fill("database maintenance")
      await page.keyboard.press("Enter")
      const alarms = page.getByRole("region", { name: "Alarms" })
      await alarms.getByText(/database maintenance/).waitFor()
      await page.getByRole("button", { name: "Resume shop.mails" }).click()
      await page.getByRole("dialog", { name: "Resume shop.mails" }).getByRole("button", { name: "Resume" }).click()
      await page.getByRole("button", { name: "Pause shop.mails" }).waitFor()
    })

    it("see the statuses of a task come, and the end of its stream", async () => {
      const { page } = await portal.open("/tasks/sent-1?tab=statuses")
      await page.getByRole("row", { name: /completed/ }).waitFor()
      await page
        .getByText(/ended|caught up, live/)
        .first()
        .waitFor()
    })

    it("are shown stored names as text", async () => {
      await allAreDead(portal)
      const { page } = await portal.open(`/tasks/${encodeURIComponent(hostile)}`)
      await page.getByText(hostile).first().waitFor()
      for (const tab of ["Graph", "Sequence", "Raw", "Timeline"]) {
        await page.getByRole("tab", { name: tab }).click()
        await page.getByRole("tabpanel").waitFor()
      }
      await page.goto(`${portal.gateway.control}/admin-ui/dead-letters?tab=letters`)
      await page.getByText(hostile).first().waitFor()
      assert.strictEqual(await page.locator("main img").count(), 0)
      assert.strictEqual(await page.locator("main a[href^='javascript']").count(), 0)
    })

    it("find no button that their token does not allow", async () => {
      await allAreDead(portal)
      const [letter] = await lettersOf(portal)
      const { page } = await portal.open("/tasks/board", readOnly)
      await page.getByText("shop.mails").first().waitFor()
      assert.strictEqual(await page.getByRole("button", { name: /^(Pause|Resume)/ }).count(), 0)
      await page.goto(`${portal.gateway.control}/admin-ui/dead-letters/${letter?.dlq_id}`)
      await page.getByText("It failed on").waitFor()
      assert.strictEqual(await page.getByRole("button", { name: /^(Replay|Edit|Archive)/ }).count(), 0)
    })

    it("see what the server said where a part of a page fails, and the other parts", async () => {
      const { answer, page } = await portal.open("/tasks/board")
      await page.getByText("shop.mails").first().waitFor()
      const back = await answer("/tasks/workers", { status: 503, message: "The workers cannot be read." })
      await page.keyboard.press("r")
      await page.getByText("The workers cannot be read.").waitFor()
      await page.getByText("shop.mails").first().waitFor()
      await back()
      await page.getByRole("button", { name: "Try again" }).click()
      await page.getByText("The workers cannot be read.").waitFor({ state: "hidden" })
      const { page: other, problems } = await portal.open("/tasks?q=colour:red")
      problems.expect(/^422 GET /)
      await other.getByText(/colour is unknown: use status/).waitFor()
    })
  },
  { example: false, flags: ["--tasks", tasks] }
)
