import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { follow } from "../Following.ts"
import { holdAnswers, holdRequests } from "../HeldAnswers.ts"
import { describePortal, type Portal } from "../PortalBrowser.ts"
import { hostile, refused, secret } from "./ShopTasks.ts"

const tasks = fileURLToPath(new URL("ShopTasks.ts", import.meta.url))

const readOnly = { scopes: ["tasks:read"] }

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

describePortal(
  "People on call",
  (portal) => {
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
      await page.getByText("1 letter is open again.").waitFor()
      await page.getByRole("button", { name: "Edit", exact: true }).waitFor()
    })

    it("are not led to a longer range by a search that has a time of its own", async () => {
      const { page } = await portal.open("/tasks?q=since:2h+type:nothing")
      await page.getByText("No task matches in the time of the search.").waitFor()
      assert.strictEqual(await page.getByRole("link", { name: "Look at 30 days" }).count(), 0)
    })

    it("see why not all letters were archived, and why they could not be taken back", async () => {
      await allAreDead(portal)
      const [first, second] = (await lettersOf(portal)).filter(
        ({ state, task_id }) => state === "dead_lettered" && task_id.startsWith("refused-")
      )
      const { answer, page } = await portal.open("/dead-letters?tab=letters&queue_name=another")
      await page.getByText(/No dead letter matches/).waitFor()
      // a filter of a link can be seen, and removed
      await page.getByRole("button", { name: "Clear Dead-letter queue" }).click()
      const rows = page.getByRole("table", { name: "Dead letters" }).locator("tbody tr")
      for (const letter of [first, second])
        await rows
          .filter({ hasText: letter?.task_id ?? "" })
          .getByRole("checkbox")
          .click()
      await answer("/tasks/dlq/messages/archive", {
        body: { changed: 1, ids: [first?.dlq_id], refused: [], problem: "Redis is away.", truncated: false }
      })
      await page.getByRole("button", { name: "Archive", exact: true }).click()
      const dialog = page.getByRole("dialog", { name: /^Archive/ })
      await dialog.getByLabel(/^Reason/).fill("test orders")
      await page.keyboard.press("Enter")
      await dialog.getByText("Redis is away.").waitFor()
      await page.getByRole("button", { name: "Undo" }).click()
      await page.getByText(/1 of 1 letter could not be taken back\..* is not archived/).waitFor()
    })

    it("take selected letters of the archive back together, and see what became of each", async () => {
      await allAreDead(portal)
      const letters = (await lettersOf(portal))
        .filter(({ state, task_id }) => state === "dead_lettered" && /^refused-[0-4]$/.test(task_id))
        .slice(0, 3)
      const post = (path: string, body: unknown) =>
        fetch(`${portal.gateway.control}/admin-ui/tasks/dlq/messages/${path}`, {
          method: "POST",
          headers: { authorization: `Bearer ${portal.adminToken}`, "content-type": "application/json" },
          body: JSON.stringify(body)
        })
      const ids = letters.map(({ dlq_id }) => dlq_id)
      assert.strictEqual((await post("archive", { ids, reason: "test orders" })).status, 200)
      const { answer, axe, page } = await portal.open("/dead-letters?tab=archive")
      const rows = page.getByRole("table", { name: "Archived dead letters" }).locator("tbody tr")
      const bar = page.getByRole("toolbar", { name: "Selected letters" })
      for (const { task_id } of letters) await rows.filter({ hasText: task_id }).getByRole("checkbox").click()
      // The server stops after the first one, and refuses the second one.
      const [first, second, third] = letters
      const back = await answer("/tasks/dlq/messages/unarchive", {
        body: {
          changed: 1,
          ids: [first?.dlq_id],
          refused: [{ dlq_id: second?.dlq_id, detail: "It is not archived." }],
          problem: "Redis is away."
        }
      })
      await bar.getByText("3 selected").waitFor()
      await bar.getByRole("button", { name: "Take them back" }).click()
      const dialog = page.getByRole("dialog", { name: "Not all letters were taken back" })
      const resultOf = (letter: typeof first) =>
        dialog
          .getByRole("listitem")
          .filter({ hasText: letter?.task_id ?? "" })
          .innerText()
      await dialog.getByText("1 of 3 were taken back.").waitFor()
      assert.match(await resultOf(first), /taken back/)
      assert.match(await resultOf(second), /refused.*It is not archived\./s)
      assert.match(await resultOf(third), /not reached.*Redis is away\./s)
      assert.deepStrictEqual(await axe(), [])
      await page.keyboard.press("Escape")
      await back()
      await bar.getByText("2 selected").waitFor()
      await rows
        .filter({ hasText: first?.task_id ?? "" })
        .getByRole("checkbox")
        .click()
      await bar.getByRole("button", { name: "Take them back" }).click()
      await page.getByText("3 letters have the state again that they had.").waitFor()
      await page.getByText("Nothing is archived.").waitFor()
    })

    it("archive all letters of a group, and take them back", async () => {
      await allAreDead(portal)
      const open = async () => (await lettersOf(portal)).filter(({ state }) => state === "dead_lettered").length
      const before = await open()
      const { page } = await portal.open("/dead-letters")
      await page.getByRole("row").filter({ hasText: "550 no mailbox" }).waitFor()
      await page.getByRole("link", { name: "PermanentFailure" }).click()
      await page.getByText("new with version 2.3.0").waitFor()
      await page.getByRole("paragraph").filter({ hasText: "550 no mailbox" }).waitFor()
      await page.getByRole("button", { name: "Archive all" }).click()
      const dialog = page.getByRole("dialog", { name: "Archive all that match" })
      await dialog.getByText(`${before} letters of`).waitFor()
      await dialog.getByLabel(/^Reason/).fill("test orders")
      await page.keyboard.press("Enter")
      await page.getByText(`${before} letters are archived.`).waitFor()
      await page.getByText("No letter of this group is open any more.").waitFor()
      await page.getByRole("button", { name: "Undo" }).click()
      await page.getByText(`${before} letters are open again.`).waitFor()
      assert.strictEqual(await open(), before)
    })

    it("pause a queue for a reason, see it among the alarms, and resume it", async () => {
      const { page } = await portal.open("/tasks/board")
      await page.getByRole("button", { name: "Pause shop.mails" }).click()
      await page.getByLabel(/^Reason/).fill("database maintenance")
      await page.keyboard.press("Enter")
      const alarms = page.getByRole("region", { name: "Alarms" })
      await alarms.getByText(/database maintenance/).waitFor()
      await page.getByText(/^shop\.mails is paused\./).waitFor()
      await page.getByRole("button", { name: "Undo" }).click()
      await page.getByText("shop.mails is resumed.", { exact: true }).waitFor()
      await page.getByRole("button", { name: "Pause shop.mails" }).click()
      await page.getByLabel(/^Reason/).fill("database maintenance")
      await page.keyboard.press("Enter")
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

    it("are told that a task has no status yet, instead of waiting for one", async () => {
      let view: unknown
      await eventuallyTrue(async () => {
        const stored = await fetch(`${portal.gateway.control}/admin-ui/tasks/executions/sent-1/view`, {
          headers: { authorization: `Bearer ${portal.adminToken}` }
        })
        view = await stored.json()
        return stored.ok
      })
      const { answer, page, problems } = await portal.open("/")
      problems.expect(/^404 GET .*\/without-status\/explain/)
      await answer("/tasks/executions/without-status/view", { body: view })
      await page.goto(`${portal.gateway.control}/admin-ui/tasks/without-status?tab=statuses`)
      await page.getByText("No status has come yet.").waitFor()
    })

    it("are offered nothing of another task while the page of the next one loads", async () => {
      await allAreDead(portal)
      const { page } = await portal.open("/tasks/refused-3")
      await page.getByRole("button", { name: "Replay", exact: true }).waitFor()
      const answer = await holdAnswers(page, /\/dlq\/messages\?/)
      const asked = page.waitForRequest(/\/dlq\/messages\?.*refused-4/)
      await follow(page, "/tasks/refused-4")
      await asked
      await page.locator("main").getByText("refused-4").first().waitFor()
      assert.strictEqual(await page.getByRole("button", { name: "Replay", exact: true }).count(), 0)
      answer()
      await page.getByRole("button", { name: "Replay", exact: true }).waitFor()
    })

    it("open and close the parts of what a task was given", async () => {
      await allAreDead(portal)
      const { axe, page } = await portal.open("/tasks/refused-2?tab=data")
      const input = page.getByRole("figure", { name: "Message" })
      await input.getByText("refused-2@example.org").waitFor()
      assert.deepStrictEqual(await axe(), [])
      await input.getByRole("button", { name: "payload, 3 fields" }).press("Enter")
      await input.getByText("refused-2@example.org").waitFor({ state: "hidden" })
      await input.getByRole("button", { name: "payload, 3 fields" }).press("Enter")
      await input.getByText("refused-2@example.org").waitFor()
    })

    it("see no secret of what a task was given until they ask for it", async () => {
      await allAreDead(portal)
      const { axe, page } = await portal.open("/tasks/refused-6?tab=data")
      const input = page.getByRole("figure", { name: "Message" })
      await input.getByText(/^Hidden because of its name: api_key/).waitFor()
      assert.notInclude(await page.content(), secret)
      assert.deepStrictEqual(await axe(), [])
      await input.getByRole("button", { name: "Show 1 value" }).click()
      await input.getByText(secret).waitFor()
      await input.getByRole("button", { name: "Hide" }).click()
      await input.getByText(secret).waitFor({ state: "hidden" })
    })

    it("see no secret of the letters that are compared until they ask for it", async () => {
      await allAreDead(portal)
      const { axe, page } = await portal.open("/dead-letters")
      await page.getByRole("link", { name: "PermanentFailure" }).click()
      const sample = page.getByRole("table", { name: "Members of the letters" })
      await sample.getByText("(hidden)").waitFor()
      assert.notInclude(await page.content(), secret)
      assert.deepStrictEqual(await axe(), [])
      await page.getByText(/^Hidden because of its name: api_key/).waitFor()
      await page.getByRole("button", { name: "Show 1 value" }).click()
      await sample.getByText(secret).waitFor()
    })

    it("mute a task, which lists leave out until they ask for it", async () => {
      await allAreDead(portal)
      const { page } = await portal.open("/tasks/refused-1")
      await page.getByRole("button", { name: "Mute" }).click()
      await page.getByRole("button", { name: "Unmute" }).waitFor()
      await follow(page, "/tasks?q=status:failed")
      const row = page.getByRole("row").filter({ hasText: "refused-1" })
      const others = page.getByRole("row").filter({ hasText: "refused-2" })
      await others.waitFor()
      assert.strictEqual(await row.count(), 0)
      await page.getByRole("button", { name: "Columns, rows, CSV" }).click()
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("menuitem", { name: /^CSV of the \d+ rows shown/ }).click()
      ])
      const lines = (await Array.fromAsync(await file.createReadStream())).join("").split("\r\n")
      assert.include(lines[0], "message")
      assert.include(lines[0], "cost_usd")
      assert.isTrue(lines.some((line) => line.startsWith("refused-2,")))
      assert.isFalse(lines.some((line) => line.startsWith("refused-1,")))
      await page.getByRole("button", { name: "1 muted: show" }).click()
      await row.waitFor()
      await follow(page, "/tasks/refused-1")
      await page.getByRole("button", { name: "Unmute" }).click()
      await page.getByRole("button", { name: "Mute" }).waitFor()
    })

    it("plan a replay for later, and stop it before it begins", async () => {
      await allAreDead(portal)
      const { page } = await portal.open("/dead-letters")
      await page.getByRole("link", { name: "PermanentFailure" }).click()
      await page.getByRole("button", { name: "Replay in steps" }).click()
      const dialog = page.getByRole("dialog", { name: "Replay in steps" })
      await eventuallyTrue(async () => /^1 · 10/.test(await dialog.getByLabel("Steps").inputValue()))
      await dialog.getByLabel("Begin at").fill(new Date(Date.now() + 86_400_000).toISOString().slice(0, 16))
      await dialog.getByRole("button", { name: "Start the replay" }).click()
      await page.getByText(/^waiting It begins/).waitFor()
      const event = (await page.getByRole("link", { name: "Audit event" }).getAttribute("href")) ?? ""
      assert.strictEqual(new URLSearchParams(event.split("?")[1]).get("target_id"), "/dlq/replays")
      const steps = page.getByRole("list", { name: "Steps" }).getByRole("listitem")
      assert.include(await steps.nth(0).innerText(), "not begun")
      await page.getByRole("button", { name: "Stop for good" }).click()
      await page.getByRole("button", { name: "Stop it" }).click()
      await page.getByText(/^The replay is cancelled/).waitFor()
    })

    it("replay the letters of the tasks that they have selected, which the server finds in one request", async () => {
      await allAreDead(portal)
      const { axe, page } = await portal.open("/tasks?q=status:failed")
      await page.getByRole("row").filter({ hasText: "refused-5" }).waitFor()
      await page.getByRole("checkbox", { name: "Select all rows that are shown" }).click()
      const asked: Array<string> = []
      page.on("request", (request) => {
        if (new URL(request.url()).pathname.includes("/tasks/dlq/")) asked.push(new URL(request.url()).pathname)
      })
      await page.getByRole("button", { name: "Replay their dead letters" }).click()
      const dialog = page.getByRole("dialog", { name: "Replay in steps" })
      await dialog.getByText(/^\d+ tasks have \d+ open letters\./).waitFor()
      await eventuallyTrue(async () => /^1 · 10/.test(await dialog.getByLabel("Steps").inputValue()))
      assert.sameMembers(
        asked.map((path) => path.replace("/admin-ui/tasks", "")),
        ["/dlq/replays/check", "/dlq/replays"]
      )
      assert.deepStrictEqual(await axe(), [])
    })

    it("select all letters that match, also those that are not shown", async () => {
      await allAreDead(portal)
      const items = await lettersOf(portal)
      const { answer, axe, page } = await portal.open("/dead-letters")
      // so that more match than are shown
      await answer(/\/dlq\/messages\?/, { body: { items: items.slice(0, 2), next_cursor: "1" } })
      await follow(page, "/dead-letters?tab=letters&reason=handler_error")
      await page.getByRole("checkbox", { name: "Select all rows that are shown" }).click()
      await page.getByText("2 selected").waitFor()
      await page.getByRole("button", { name: "Select all that match" }).click()
      const open = items.filter(({ state }) => state === "dead_lettered").length
      await page.getByText(`all ${open} that match`).waitFor()
      await page.getByRole("button", { name: "Archive", exact: true }).click()
      const dialog = page.getByRole("dialog", { name: "Archive all that match" })
      await dialog.getByText("State: dead_lettered, Reason: handler_error").waitFor()
      assert.deepStrictEqual(await axe(), [])
      await page.keyboard.press("Escape")
      await page.getByRole("row").nth(1).getByRole("checkbox").click()
      // whoever leaves one out no longer means all
      await page.getByText("1 selected").waitFor()
      await page.getByRole("row").nth(1).getByRole("checkbox").click()
      await page.getByRole("button", { name: "Select all that match" }).click()
      await page.getByRole("button", { name: "Replay in steps" }).click()
      const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 16)
      await page.getByRole("dialog").getByLabel("Begin at").fill(tomorrow)
      const request = page.waitForRequest(/\/dlq\/replays$/)
      await page.getByRole("dialog").getByRole("button", { name: "Start the replay" }).click()
      assert.deepInclude(JSON.parse((await request).postData() ?? ""), {
        filter: { reason: "handler_error", state: "dead_lettered" }
      })
      await page.getByRole("heading", { name: /^Replay/, level: 1 }).waitFor()
    })

    it("select all that match only of open letters, which a refresh of the page does not count again", async () => {
      await allAreDead(portal)
      const items = await lettersOf(portal)
      // another tab that is still open would have the connection for this one
      const { answer, page } = await portal.open("/settings", { ownSession: true })
      await answer(/\/dlq\/messages\?/, { body: { items: items.slice(0, 2), next_cursor: "1" } })
      // so that the page reads all of it again every ten seconds
      await answer("/live", { status: 503 })
      await page.goto(`${portal.gateway.control}/admin-ui/dead-letters?tab=letters&state=dead_lettered`)
      const selectRows = () => page.getByRole("checkbox", { name: "Select all rows that are shown" }).click()
      let counts = 0
      page.on("request", (request) => {
        if (request.url().endsWith("/dlq/replays/check")) counts += 1
      })
      await page.getByText(/^No connection to the server since/).waitFor()
      await selectRows()
      await page.getByRole("button", { name: "Select all that match" }).click()
      await page.getByText(/^all \d+ that match/).waitFor()
      await page.waitForResponse(/\/dlq\/messages\?/)
      assert.strictEqual(counts, 1)
      for (const state of ["replay_unknown", "replayed", "replaced", "archived"]) {
        await follow(page, `/dead-letters?tab=letters&state=${state}`)
        await page.getByRole("button", { name: "Select none" }).click()
        await selectRows()
        await page.getByText("2 selected").waitFor()
        assert.strictEqual(await page.getByRole("button", { name: "Select all that match" }).count(), 0, state)
      }
    })

    it("are shown stored names as text", async () => {
      await allAreDead(portal)
      const { page } = await portal.open(`/tasks/${encodeURIComponent(hostile)}`)
      await page.getByText(hostile.replace("\u202E", "U+202E")).first().waitFor()
      for (const tab of ["Graph", "Sequence", "Raw", "Timeline"]) {
        await page.getByRole("tab", { name: tab }).click()
        await page.getByRole("tabpanel").waitFor()
      }
      await page.goto(`${portal.gateway.control}/admin-ui/dead-letters?tab=letters`)
      await page.getByText(hostile.replace("\u202E", "U+202E")).first().waitFor()
      assert.strictEqual(await page.locator("main img").count(), 0)
      assert.strictEqual(await page.locator("main a[href^='javascript']").count(), 0)
    })

    it("read times on the timeline that do not cover each other", async () => {
      await allAreDead(portal)
      for (const width of [360, 1280]) {
        const { page } = await portal.open("/tasks/refused-1", { width })
        const times = page.locator("[class^=_tick_]").filter({ hasText: /\d/ })
        await times.first().waitFor()
        const boxes = await Promise.all((await times.all()).map((time) => time.boundingBox()))
        for (const [place, box] of boxes.entries()) {
          const before = boxes[place - 1]
          if (box && before) assert.isAtMost(before.x + before.width, box.x, `the times ${place} and ${place + 1}`)
        }
      }
    })

    it("are told of a group only what is known", async () => {
      await allAreDead(portal)
      const { answer, page } = await portal.open("/dead-letters")
      const group = `${portal.gateway.control}/admin-ui/dead-letters/group?queue_name=shop.mails.dlq&reason=r`
      const open = page.getByRole("region", { name: "Open", exact: true })
      const back = await answer(/\/dlq\/groups/, { status: 500, message: "The index is away." })
      await page.goto(group)
      await open.getByText("not known").waitFor()
      await open.getByText("The index is away.").waitFor()
      await back()
      await answer(/\/dlq\/groups/, { body: { groups: [], next_cursor: "5" } })
      await page.reload()
      await page.getByText("Not known: the group is not among the 200").waitFor()
      await open.getByText("not known").waitFor()
    })

    it("go on from a row of tasks to its drawer and its page with Enter", async () => {
      const { page } = await portal.open("/tasks")
      await page.getByRole("table", { name: "Tasks" }).locator("tbody tr").first().waitFor()
      for (const key of ["j", "Enter"]) await page.keyboard.press(key)
      const whole = page.getByRole("dialog").getByRole("button", { name: "Whole page" })
      await eventuallyTrue(() => whole.evaluate((one) => one === one.ownerDocument.activeElement))
      await page.keyboard.press("Enter")
      await page.waitForURL(/\/admin-ui\/tasks\/[^?]/)
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

    it("explain the longest-running task of a queue from its row, and see which tasks run for longer than usual", async () => {
      const { answer, axe, page } = await portal.open("/tasks/board")
      await page.getByText("shop.mails").first().waitFor()
      const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()
      const runs = (task_id: string, minutes: number, usual_ms: number) =>
        ({ task_id, task_type: "mail", attempt: 0, started_at: ago(minutes), usual_ms }) as const
      const worker = { worker: "one:1:a", host: "one", pid: 1, version: "1.0.0", started_at: ago(90), seen_at: ago(0) }
      const mails = { name: "mails", queue: "shop.mails", concurrency: 4, in_work: 2, paused: false }
      const running = [runs("mail-of-days", 60, 3_600_000), runs("mail-of-seconds", 2, 4_000)]
      await answer("/tasks/workers", { body: { workers: [{ ...worker, consumers: [{ ...mails, running }] }] } })
      await page.keyboard.press("r")
      const long = page
        .getByRole("list", { name: /^Running tasks/ })
        .getByRole("listitem")
        .filter({ hasText: "long" })
      await long.getByText("long: usually 4 s").waitFor()
      assert.strictEqual(await long.count(), 1)
      assert.deepStrictEqual(await axe(), [])
      const explain = page.getByRole("link", { name: "Explain the longest-running task of shop.mails" })
      assert.match((await explain.getAttribute("href")) ?? "", /\/tasks\/mail-of-days$/)
    })

    it("see an alarm also while what it tells of is asked for again", async () => {
      const { answer, page } = await portal.open("/tasks/board")
      const back = await answer("/tasks/queues", { status: 503, message: "Redis is away." })
      await page.reload()
      const alarm = page.getByRole("region", { name: "Alarms" }).getByText("Redis is away.")
      await alarm.waitFor()
      const release = await holdRequests(page, /\/tasks\/queues$/)
      await back()
      const asked = page.waitForRequest(/\/tasks\/queues$/)
      const again = page.getByRole("button", { name: "Try again" })
      await again.press("Enter")
      await asked
      await page.locator("button[aria-busy=true]").waitFor()
      assert.strictEqual(await alarm.count(), 1)
      await release()
      await alarm.waitFor({ state: "hidden" })
      await page.getByText("shop.mails").first().waitFor()
    })

    it("see the queues while nobody knows their dead letters yet, and are not told that all is well", async () => {
      const { page } = await portal.open("/tasks")
      const release = await holdRequests(page, /\/tasks\/dlq\/queues$/)
      await page.goto(`${portal.gateway.control}/admin-ui/tasks/board`)
      await page.getByRole("row").filter({ hasText: "shop.mails" }).first().waitFor()
      const alarms = page.getByRole("region", { name: "Alarms" })
      assert.strictEqual(await alarms.getByText("no alarm").count(), 0)
      await release()
      await alarms.getByText("in its dead-letter queue").first().waitFor()
    })

    it("see no task of another search while a refused one is asked again", async () => {
      await allAreDead(portal)
      const { page, problems } = await portal.open("/tasks")
      problems.expect(/^422 GET /)
      const row = page.getByRole("link", { name: "refused-1" })
      await row.waitFor()
      const search = page
        .getByRole("main")
        .getByRole("combobox")
        .or(page.getByRole("main").getByRole("textbox"))
        .first()
      await search.fill("colour:red")
      await search.press("Enter")
      await page.getByText(/colour is unknown: use status/).waitFor()
      await row.waitFor({ state: "detached" })
      const release = await holdRequests(page, /\/admin-ui\/tasks\/tasks$/)
      const asked = page.waitForRequest(/\/admin-ui\/tasks\/tasks\?/)
      await page.getByRole("heading", { name: "Tasks", level: 1 }).click()
      await page.keyboard.press("r")
      await asked
      // a moment in which a page would draw what it has of another search
      await page.evaluate("new Promise((frame) => requestAnimationFrame(() => requestAnimationFrame(frame)))")
      assert.strictEqual(await row.count(), 0)
      await page.getByText(/colour is unknown: use status/).waitFor()
      await release()
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
      const restored = await answer("/tasks/queues", { status: 500, message: "The broker is away." })
      await page.keyboard.press("r")
      const alarms = page.getByRole("region", { name: "Alarms" })
      await alarms.getByText("an alarm may be missing here: The broker is away.").waitFor()
      assert.strictEqual(await alarms.getByText("no alarm").count(), 0)
      await restored()
      const { page: other, problems } = await portal.open("/tasks?q=colour:red")
      problems.expect(/^422 GET /)
      await other.getByText(/colour is unknown: use status/).waitFor()
      await other.goto(`${portal.gateway.control}/admin-ui/tasks?q=status:broken`)
      await other.getByText(/None has the status broken: there are/).waitFor()
    })
  },
  { tasks, environment: { SVC_TASKS_VERSION: "2.3.0" } }
)
