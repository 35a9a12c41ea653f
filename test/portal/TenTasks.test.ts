import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { createKey } from "../RunningGateway.ts"
import { eventuallyTrue } from "./EventuallyTrue.ts"
import { Keyboard } from "./Keyboard.ts"
import { refused } from "./oncall/ShopTasks.ts"
import { describePortal, type Portal } from "./PortalBrowser.ts"
import { StudioServer } from "./upstream/StudioServer.ts"

const shopTasks = fileURLToPath(new URL("oncall/ShopTasks.ts", import.meta.url))
const run = promisify(execFile)

const title = (page: Page, name: string | RegExp) => page.getByRole("heading", { name, level: 1 }).waitFor()

const ask = async ({ gateway }: Portal, key: string, model: string) => {
  const response = await fetch(`${gateway.proxy}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] })
  })
  await response.arrayBuffer()
}

const allAreDead = ({ adminToken, gateway }: Portal) =>
  eventuallyTrue(async () => {
    const answer = await fetch(`${gateway.control}/admin-ui/tasks/dlq/messages?limit=200`, {
      headers: { authorization: `Bearer ${adminToken}` }
    })
    const { items }: { readonly items: ReadonlyArray<unknown> } = await answer.json()
    return items.length >= refused
  })

/** Opens the home page, as somebody does who comes to do something. */
const begin = async (portal: Portal) => {
  const { axe, page, problems } = await portal.open("/")
  return { axe, page, problems, keys: new Keyboard(page) }
}

describePortal(
  "Ten tasks by keyboard alone, from the home page",
  (portal) => {
    it("a key is made, a request is sent with it, and the secret is gone", async () => {
      const { keys, page } = await begin(portal)
      await keys.go("Create a key")
      await title(page, "Create a key")
      await page.getByLabel("Name").waitFor()
      await keys.type("by keyboard")
      // Enter goes on with the usual answer of each step
      for (const step of ["Preset", "Limits", "Guardrails", "Review"]) {
        await keys.press("Enter")
        await page.getByRole("heading", { name: step, level: 2 }).waitFor()
      }
      await page.getByRole("heading", { name: "Its own policy" }).waitFor()
      await keys.press("Enter")
      await title(page, "by keyboard is ready")
      const secret = (await page.getByRole("region", { name: "Secret", exact: true }).innerText()).trim()
      assert.match(secret, /^rk_live_[0-9a-f]{72}$/)
      await run("bash", ["-c", await page.getByRole("region", { name: "Command", exact: true }).innerText()])
      const done = page.getByRole("button", { name: /^Done/ })
      assert.isTrue(await done.isDisabled())
      await keys.tabTo(page.getByLabel("I stored it"))
      await keys.press("Space")
      await keys.choose(done)
      await title(page, "by keyboard")
      assert.notInclude(await page.content(), secret)
      const kept = await page.evaluate<string>("JSON.stringify([localStorage, sessionStorage]) + document.cookie")
      assert.notInclude(kept, secret)
    })

    it("why a request was refused is found", async () => {
      const key = await createKey(portal.gateway, { name: "narrow", policy: { allowed_models: ["gpt-5"] } })
      await ask(portal, key.raw, "forbidden-model")
      const { keys, page } = await begin(portal)
      await keys.press("g", "r")
      await title(page, "Requests")
      await keys.choose(page.getByRole("row").filter({ hasText: "forbidden-model" }))
      await page.getByRole("dialog").getByText("This key may not use this model.").first().waitFor()
    })

    it("a limit is raised until tomorrow", async () => {
      await createKey(portal.gateway, { name: "ada's laptop", policy: { daily_budget_usd: 3 } })
      const { keys, page } = await begin(portal)
      await keys.go("Raise a limit until a time")
      const form = page.getByRole("dialog", { name: "Raise a limit until a time" })
      await keys.tabTo(form.getByRole("combobox", { name: "Key" }).or(form.getByLabel("Key", { exact: true })))
      await keys.type("ada's")
      await page.getByRole("option", { name: "ada's laptop" }).waitFor()
      await keys.press("ArrowDown", "Enter")
      await keys.tabTo(form.getByLabel("Raised to"))
      await keys.replace("50")
      await keys.choose(form.getByRole("button", { name: "End of tomorrow" }))
      await keys.tabTo(form.getByLabel("Reason"))
      await keys.type("a <b>launch</b>")
      await keys.choose(form.getByRole("button", { name: "Show the difference" }))
      const dialog = page.getByRole("dialog", { name: "Raise a limit" })
      await dialog.getByText("a <b>launch</b>").waitFor()
      assert.match(await dialog.getByRole("list").innerText(), /daily_budget_usd 3 → 50/)
      await keys.choose(dialog.getByRole("button", { name: "Raise it" }))
      await page.getByText(/is raised until/).waitFor()
    })

    it("a change of a policy is tried, and whom it hits is seen", async () => {
      await createKey(portal.gateway, { name: "hit", team_id: "green" })
      const { axe, keys, page } = await begin(portal)
      await keys.go("Try out a policy")
      await title(page, "Try a policy out")
      await keys.tabTo(page.getByRole("radio", { name: "Nothing" }))
      await keys.press("ArrowRight", "ArrowRight")
      await keys.tabTo(page.getByLabel("For", { exact: true }))
      await keys.press("ArrowDown")
      await page.getByRole("option", { name: "a team" }).waitFor()
      await keys.press("Home")
      for (let n = 0; n < 6; n++) {
        const id = await page.getByLabel("For", { exact: true }).first().getAttribute("aria-activedescendant")
        if (id !== null && (await page.locator(`[id="${id}"]`).innerText()) === "a team") break
        await keys.press("ArrowDown")
      }
      await keys.press("Enter")
      await keys.tabTo(page.getByLabel("Team", { exact: true }))
      await keys.type("green")
      await page.getByText("There is no such layer yet").waitFor()
      await keys.tabTo(page.getByLabel("Change a field"))
      await keys.type("allowed_models")
      await keys.press("ArrowDown", "Enter")
      await keys.tabTo(
        page.getByRole("textbox", { name: "allowed_models" }).or(page.getByLabel("allowed_models")),
        "Shift+Tab"
      )
      await keys.type("other-model")
      await keys.press("Enter")
      await page.getByText("1 gets another policy").waitFor()
      await page.getByRole("link", { name: "hit" }).waitFor()
      await keys.choose(page.getByRole("button", { name: "Decide now, and with the change" }))
      await page.getByRole("heading", { name: "With the change" }).waitFor()
      assert.deepStrictEqual(await axe(), [])
    })

    it("a service of a studio is imported", async () => {
      const offered = { studio_service_id: "st-1", name: "summaries", display_name: "<i>Summaries</i>" }
      const studio = await StudioServer.start([{ ...offered, base_url: "http://127.0.0.1:9" }])
      await portal.gateway.operate("PATCH", "/studio/connection", { base_url: studio.url, token: "studio-token" })
      const { axe, keys, page } = await begin(portal)
      await keys.go("Import services")
      await page.getByText("<i>Summaries</i>").waitFor()
      assert.deepStrictEqual(await axe(), [])
      await keys.tabTo(page.getByRole("checkbox", { name: "Select st-1" }))
      await keys.press("Space")
      await keys.choose(page.getByRole("button", { name: "Import 1" }), "Shift+Tab")
      await page.getByRole("dialog", { name: "Import 1 service" }).getByText("is new").waitFor()
      await keys.press("Enter")
      await page.getByText("1 service is imported").waitFor()
      await keys.choose(page.getByRole("link", { name: "summaries", exact: true }))
      await title(page, "summaries")
      await studio.stop()
    })

    it("a guardrail is tested: what it finds is marked, with what would be sent and what the client sees", async () => {
      const { axe, keys, page } = await begin(portal)
      await keys.press("g", "w")
      await keys.choose(page.getByRole("row").filter({ hasText: "pii-redact" }))
      await title(page, "pii-redact")
      await keys.tabTo(page.getByRole("tab", { name: "Overview" }))
      await keys.press("ArrowRight")
      await page.getByRole("tab", { name: "Bench", selected: true }).waitFor()
      await keys.tabTo(page.getByLabel("The user's message"))
      await keys.replace("mail ada@example.com <b>now</b>")
      await keys.tabTo(page.getByLabel("The model's answer"))
      await keys.replace("I wrote to [EMA|IL_1].")
      await keys.choose(page.getByRole("button", { name: "Try it" }))
      const sent = page.getByRole("textbox", { name: "Sent to the upstream" })
      await sent.waitFor()
      assert.strictEqual(await sent.innerText(), "mail [EMAIL_1] <b>now</b>")
      assert.deepStrictEqual(await sent.locator("mark").allInnerTexts(), ["[EMAIL_1]"])
      const seen = page.getByRole("textbox", { name: "What the client sees" })
      assert.strictEqual(await seen.innerText(), "I wrote to ada@example.com.")
      assert.include(await page.locator("details summary").innerText(), "4 B held back")
      assert.deepStrictEqual(await axe(), [])
    })

    it("a task is followed to its dead letter", async () => {
      await allAreDead(portal)
      const { keys, page } = await begin(portal)
      await keys.press("g", "t")
      await page.getByRole("link", { name: "refused-3" }).waitFor()
      await keys.press("/")
      await keys.type("status:failed refused-3")
      await keys.press("Escape", "Enter")
      await page.waitForURL(/q=status/)
      await eventuallyTrue(async () => (await page.getByRole("link", { name: /^refused-/ }).count()) === 1)
      await keys.choose(page.getByRole("row").filter({ hasText: "refused-3" }))
      await page.getByRole("dialog").getByText("It was dead-lettered").waitFor()
      await keys.choose(page.getByRole("dialog").getByRole("link", { name: "Its dead letter" }))
      await title(page, "Dead letter")
      await page.getByText("550 no mailbox refused-3@example.org").first().waitFor()
    })

    it("a dead letter is edited and replayed, and is called handled once that is proved", async () => {
      await allAreDead(portal)
      const { keys, page } = await begin(portal)
      await keys.find("task", "refused-0")
      await title(page, "Task")
      await keys.choose(page.getByRole("button", { name: "Edit and replay" }))
      await title(page, "Dead letter")
      const editor = page.getByRole("textbox", { name: "Payload" })
      await keys.tabTo(editor)
      await keys.replace('{"to":"ada@example.org","order":9007199254740993,"isRefused":false}')
      await page.getByText("isRefused", { exact: true }).last().waitFor()
      // in the editor, Tab indents until Escape is pressed
      await keys.press("Escape")
      await keys.choose(page.getByRole("button", { name: "Check" }))
      await page.getByText("envelope checked").waitFor()
      await keys.choose(page.getByRole("button", { name: "Replay edited" }))
      const dialog = page.getByRole("dialog", { name: "Replay the edited message" })
      await dialog.getByText("9007199254740993").waitFor()
      await keys.choose(dialog.getByRole("button", { name: "Replay edited" }))
      await page.getByText("Handled: a status of the task proves it.").waitFor({ timeout: 30_000 })
      assert.notMatch(await page.innerText("main#page"), /processed/i)
      await page.getByText("It is an edit of").waitFor()
      await keys.find("task", "refused-0")
      await page.getByRole("list", { name: "Replays" }).getByText("handled").waitFor()
    })

    it("a group is replayed in steps, stops itself, and is stopped for good", async () => {
      await allAreDead(portal)
      const { keys, page } = await begin(portal)
      await keys.press("g", "d")
      await keys.choose(page.getByRole("link", { name: "PermanentFailure" }))
      await page.getByText(/members differ/).waitFor()
      await keys.choose(page.getByRole("button", { name: "Replay in steps" }))
      const dialog = page.getByRole("dialog", { name: "Replay in steps" })
      await eventuallyTrue(async () => /^1 · 10/.test(await dialog.getByLabel("Steps").inputValue()))
      await keys.tabTo(dialog.getByLabel("Steps"))
      await keys.replace("1 1 all")
      await keys.tabTo(dialog.getByLabel("Stop after"))
      await keys.replace("2")
      await keys.press("Enter")
      await title(page, "Replay")
      await page.getByText("It has stopped itself: Every letter of step 1 failed.").waitFor({ timeout: 60_000 })
      const steps = page.getByRole("list", { name: "Steps" }).getByRole("listitem")
      assert.include(await steps.nth(0).innerText(), "failed again")
      assert.include(await steps.nth(1).innerText(), "not begun")
      await keys.choose(page.getByRole("button", { name: "Stop for good" }))
      const sure = page.getByRole("dialog", { name: "Stop the replay for good" })
      await sure.getByText(/letters are not replayed/).waitFor()
      await keys.press("Enter")
      await page.getByText(/^The replay is cancelled/).waitFor()
      await page.reload()
      await page.getByText("cancelled", { exact: true }).waitFor()
    })

    it("the audit chain is verified, and its head compared with a noted one", async () => {
      const { axe, keys, page } = await begin(portal)
      await keys.go("Verify the audit chain")
      const dialog = page.getByRole("dialog", { name: "Verify the audit chain" })
      await dialog.getByText("intact").waitFor()
      const head = (await dialog.getByRole("region", { name: "Head" }).innerText()).trim()
      assert.match(head, /^\d+:[0-9a-f]{64}$/)
      await keys.tabTo(dialog.getByRole("textbox", { name: "Compare with a noted head" }))
      await keys.type(head)
      await keys.press("Enter")
      await dialog.getByText("same", { exact: true }).waitFor()
      await keys.replace(`${head.split(":")[0]}:${"0".repeat(64)}`)
      await keys.press("Enter")
      await dialog.getByText("different", { exact: true }).waitFor()
      assert.deepStrictEqual(await axe(), [])
      await keys.press("Escape")
      await dialog.waitFor({ state: "detached" })
    })
  },
  { tasks: shopTasks }
)
