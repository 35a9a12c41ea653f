import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { follow } from "../Following.ts"
import { describePortal, type Portal } from "../PortalBrowser.ts"
import { letters, notes, poem } from "./CampaignTasks.ts"

const tasks = fileURLToPath(new URL("CampaignTasks.ts", import.meta.url))

interface Job {
  readonly cancellation_id: string
  readonly state: string
  readonly total: number
  readonly cancelled: number
  readonly ended: number
  readonly reason: string
}

/** Reads from the control listener with the admin token, as curl does. */
const read = async <Body>({ adminToken, gateway }: Portal, path: string): Promise<Body> => {
  const answer = await fetch(`${gateway.control}/admin-ui/${path}`, {
    headers: { authorization: `Bearer ${adminToken}` }
  })
  const body: Body = await answer.json()
  return body
}

const jobsOf = async (portal: Portal): Promise<ReadonlyArray<Job>> =>
  (await read<{ readonly cancellations: ReadonlyArray<Job> }>(portal, "tasks/tasks/cancellations")).cancellations

const count = async (portal: Portal, query: string): Promise<number> => {
  const found = await read<{ readonly counts: ReadonlyArray<{ readonly count: number }> }>(
    portal,
    `tasks/tasks/counts?${query}`
  )
  return found.counts.reduce((sum, { count }) => sum + count, 0)
}

const allArePublished = (portal: Portal) =>
  eventuallyTrue(
    async () =>
      (await count(portal, "type=letter")) === letters.length &&
      (await count(portal, "type=note&status=completed")) === notes.length
  )

const running = {
  cancellation_id: "00000000-0000-4000-8000-000000000001",
  state: "running",
  reason: "a wrong campaign",
  by: "ada",
  query: { type: "letter" },
  total: 5_000,
  truncated: true,
  asked_before: 12,
  cancelled: 900,
  requested: 90,
  ended: 9,
  withdrawn: 0,
  failed: 1,
  remaining: 4_000,
  stopped: null,
  withdrawn_at: null,
  started_at: "2026-11-26T10:00:00+00:00",
  updated_at: "2026-11-26T10:00:05+00:00",
  ended_at: null
}
const problems = [{ task_id: "letter-7", detail: "Redis has refused it." }]

describePortal(
  "People on call who cancel many tasks",
  (portal) => {
    it("cancel those that they have selected, and are told which had ended", async () => {
      await allArePublished(portal)
      const { page } = await portal.open("/tasks?q=type:note")
      await page.getByRole("row").filter({ hasText: "note-1" }).waitFor()
      await page.getByRole("checkbox", { name: "Select all rows that are shown" }).click()
      await page.getByText("2 selected").waitFor()
      await page.getByRole("button", { name: "Cancel them" }).click()
      const dialog = page.getByRole("dialog", { name: "Cancel 2 tasks" })
      await dialog.getByLabel(/^Reason/).fill("test notes")
      await page.keyboard.press("Enter")
      await page.waitForURL(/\/tasks\/cancellations\/[0-9a-f-]{36}/)
      await page.getByRole("heading", { name: "Cancellation", level: 1 }).waitFor()
      await page.getByText("finished").first().waitFor()
      const ended = page.getByRole("region", { name: "Had ended" })
      await ended.getByText("2", { exact: true }).waitFor()
      const [job] = await jobsOf(portal)
      assert.deepInclude(job, { state: "finished", total: 2, ended: 2, cancelled: 0, reason: "test notes" })
    })

    it("pause the statuses of a task with the page, and miss none", async () => {
      await allArePublished(portal)
      const { page } = await portal.open(`/tasks/${poem}?tab=statuses`)
      const opened: Array<string> = []
      page.on("request", (request) => {
        if (request.url().includes(`/events/${poem}`)) opened.push(request.url())
      })
      const statuses = page.getByRole("region", { name: "Statuses" })
      await statuses.getByText("caught up, live").waitFor()
      const rows = statuses.getByRole("row")
      const before = await rows.count()
      await page.locator("main#page h1").click()
      await page.keyboard.press("l")
      await statuses.getByText("paused", { exact: true }).waitFor()
      const asked = await fetch(`${portal.gateway.control}/admin-ui/tasks/tasks/${poem}/cancel`, {
        method: "POST",
        headers: { authorization: `Bearer ${portal.adminToken}`, "content-type": "application/json" },
        body: JSON.stringify({ reason: "nobody reads it" })
      })
      assert.isTrue(asked.ok)
      await eventuallyTrue(async () => (await count(portal, "type=poem&status=cancelled")) === 1)
      assert.strictEqual(await rows.count(), before)
      opened.length = 0
      await page.keyboard.press("l")
      await statuses.getByRole("row", { name: /cancelled/ }).waitFor()
      assert.match(opened[0] ?? "", /\?last_event_id=./)
      const { events } = await read<{ readonly events: ReadonlyArray<unknown> }>(
        portal,
        `tasks/history?task_id=${poem}`
      )
      await statuses.getByText(`${events.length} statuses`).waitFor()
    })

    it("cancel all that match, see the end, and find it among the cancellations", async () => {
      await allArePublished(portal)
      const { axe, page } = await portal.open("/tasks?q=type:letter")
      const first = page.getByRole("row").filter({ hasText: "letter-" }).first()
      await first.waitFor()
      await first.getByRole("checkbox").click()
      await page.getByRole("button", { name: "Cancel all that match" }).click()
      const dialog = page.getByRole("dialog", { name: "Cancel all that match" })
      await dialog.getByText(`${letters.length} tasks match and have not ended.`, { exact: true }).waitFor()
      await eventuallyTrue(async () => (await dialog.getByRole("listitem").count()) === 5)
      assert.deepStrictEqual(await axe(), [])
      await dialog.getByLabel(/^Reason/).fill("a wrong campaign")
      await dialog.getByLabel("Type “all that match” to confirm").fill("all that match")
      await page.keyboard.press("Enter")
      await page.waitForURL(/\/tasks\/cancellations\/[0-9a-f-]{36}/)
      const audited = (await page.getByRole("link", { name: "Audit event" }).getAttribute("href")) ?? ""
      assert.strictEqual(new URLSearchParams(audited.split("?")[1]).get("target_id"), "/tasks/cancellations")
      await page.getByText("finished").first().waitFor({ timeout: 60_000 })
      await page.getByRole("region", { name: "Cancelled" }).getByText(String(letters.length), { exact: true }).waitFor()
      await page.getByText("a wrong campaign").waitFor()
      assert.deepStrictEqual(await axe(), [])
      const [job] = await jobsOf(portal)
      assert.deepInclude(job, { state: "finished", total: letters.length, cancelled: letters.length })
      assert.strictEqual(await count(portal, "type=letter&status=cancelled"), letters.length)
      const [event] = await read<
        ReadonlyArray<{ readonly after: { readonly path: string; readonly result: unknown } }>
      >(portal, "admin/audit-events?action=tasks:operated&limit=1")
      assert(event !== undefined)
      assert.strictEqual(event.after.path, "/tasks/cancellations")
      assert.deepStrictEqual(event.after.result, {
        cancellation_id: job?.cancellation_id,
        state: "running",
        total: letters.length,
        query: { type: "letter", since: "24h", ended: "false" }
      })
      const other = await portal.open("/tasks")
      await other.page.keyboard.press("Control+k")
      await other.page.getByPlaceholder("Go to, find an id, do …").fill(job?.cancellation_id ?? "")
      await other.page.getByText(`finished, ${letters.length} tasks`).click()
      await other.page.getByRole("heading", { name: "Cancellation", level: 1 }).waitFor()
      await follow(page, "/tasks?q=type:letter")
      await page.getByRole("link", { name: "Cancellations" }).click()
      await page.getByRole("row").filter({ hasText: "a wrong campaign" }).getByText("finished").waitFor()
      assert.deepStrictEqual(await axe(), [])
    })

    it("find a running one above the list of tasks, see its problems, stop it, and withdraw what had no effect", async () => {
      const { answer, page } = await portal.open("/tasks/board")
      const list = { cancellations: [running], next_cursor: null, tasks_at_most: 10_000, task_ids_at_most: 500 }
      await answer(/\/tasks\/cancellations\?/, { body: list })
      const back = await answer(/\/tasks\/cancellations\/[^/]+$/, { body: { ...running, problems } })
      await follow(page, "/tasks")
      await page.getByRole("link", { name: "cancelling: 910 of 5,000 are over" }).click()
      await page.getByText("more may match: cancel again for the rest; 12 were asked for before").waitFor()
      await page.getByText(problems[0]?.detail ?? "").waitFor()
      const stopped = { ...running, state: "stopped", stopped: { at: running.updated_at, reason: null } }
      await answer(/\/tasks\/cancellations\/[^/]+\/stop$/, { body: stopped })
      await back()
      const noLonger = await answer(/\/tasks\/cancellations\/[^/]+$/, { body: { ...stopped, problems } })
      await page.getByRole("button", { name: "Stop" }).click()
      await page.getByText("The cancellation is stopped. Not asked for: 4,000 tasks.").waitFor()
      await page.getByText("somebody has stopped it. Not asked for: 4,000 tasks.").waitFor()
      await page.getByText("90 tasks had no answer at the end.").waitFor()
      assert.strictEqual(await page.getByRole("button", { name: "Stop" }).count(), 0)
      const withdrawn = { ...stopped, requested: 0, withdrawn: 90, withdrawn_at: running.updated_at }
      await page.getByRole("button", { name: "Withdraw" }).click()
      const dialog = page.getByRole("dialog", { name: "Withdraw the cancellation" })
      await dialog.getByText(/^90 tasks had no answer of a worker yet/).waitFor()
      await noLonger()
      await answer(/\/tasks\/cancellations\/[^/]+\/withdraw$/, { status: 202, body: withdrawn })
      await answer(/\/tasks\/cancellations\/[^/]+$/, { body: { ...withdrawn, problems } })
      await dialog.getByRole("button", { name: "Withdraw it" }).click()
      await page.getByText("The cancellation is withdrawn.").waitFor()
      await page.getByRole("region", { name: "Withdrawn" }).getByText("90", { exact: true }).waitFor()
      await page.getByText("what had no effect by then is taken back").waitFor()
      assert.strictEqual(await page.getByRole("button", { name: "Withdraw" }).count(), 0)
    })

    it("are told where no cancellation has an id, and offered nothing that their token does not allow", async () => {
      const { page, problems } = await portal.open(`/tasks/cancellations/${running.cancellation_id}`)
      problems.expect(/^404 GET /)
      await page.getByText(/^No cancellation has the id/).waitFor()
      const { answer, page: other } = await portal.open("/tasks/board", { scopes: ["tasks:read"] })
      await answer(/\/tasks\/cancellations\/[^/]+$/, { body: { ...running, problems: [] } })
      await follow(other, `/tasks/cancellations/${running.cancellation_id}`)
      await other.getByText("900", { exact: true }).waitFor()
      assert.strictEqual(await other.getByRole("button", { name: /Stop|Withdraw/ }).count(), 0)
      await follow(other, "/tasks?q=type:note")
      await other.getByRole("row").filter({ hasText: "note-1" }).waitFor()
      assert.strictEqual(await other.getByRole("checkbox").count(), 0)
    })
  },
  { tasks }
)
