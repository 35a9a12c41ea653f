import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal, type Portal } from "../PortalBrowser.ts"

const tasks = fileURLToPath(new URL("ParcelTasks.ts", import.meta.url))

interface Letters {
  readonly items: ReadonlyArray<{ readonly dlq_id: string; readonly task_id: string }>
}

interface Detail {
  readonly payload_fit: { readonly not_compared: string | null }
}

const read = async <A>(portal: Portal, path: string): Promise<A> => {
  const answer = await fetch(`${portal.gateway.control}/admin-ui/tasks${path}`, {
    headers: { authorization: `Bearer ${portal.adminToken}` }
  })
  return answer.json()
}

/** The dead letter of a task, once its worker has reported the schemas of its handlers. */
const letterOf = async (portal: Portal, task: string): Promise<string> => {
  let id = ""
  await eventuallyTrue(async () => {
    const { items } = await read<Letters>(portal, "/dlq/messages?state=dead_lettered")
    id = items.find(({ task_id }) => task_id === task)?.dlq_id ?? ""
    if (id === "") return false
    const { payload_fit } = await read<Detail>(portal, `/dlq/messages/${id}`)
    return !payload_fit.not_compared?.startsWith("No worker of")
  })
  return id
}

const good = '{"to":"ada","items":[{"name":"pen","count":1}]}'

/** Replaces the text as a person does, who sees marks in what is replaced. */
const write = async (page: Page, text: string): Promise<void> => {
  await page.getByRole("textbox", { name: "Payload" }).click()
  await page.keyboard.press("Control+a")
  await page.keyboard.insertText(text)
}

describePortal(
  "The payload of a dead letter",
  (portal) => {
    it("is shown whole where its group has no other letter to compare it with", async () => {
      const task = "unknown-1"
      await letterOf(portal, task)
      const { page } = await portal.open("/dead-letters")
      await page.getByRole("row").filter({ hasText: "the scales are broken" }).getByRole("link").click()
      const sample = page.getByRole("region", { name: "Sample of 1" })
      await sample.getByText("its only letter, which nothing can be compared with").waitFor()
      await sample.getByRole("row").filter({ hasText: "task_type" }).getByText("weigh").waitFor()
      assert.strictEqual(await sample.getByRole("button").count(), 0)
    })

    it("is marked where it does not fit the schema of its handler", async () => {
      const { axe, page } = await portal.open(`/dead-letters/${await letterOf(portal, "unfit-1")}`)
      await page
        .getByText(
          /The payload does not fit the schema of send that a worker of version 2\.3\.0 reported .*: items\.1\.count must be an integer; to is required\./
        )
        .waitFor()
      const message = page.getByRole("figure", { name: "Message" })
      // the list was closed, because it is nested, and is open for its mark
      await message
        .getByRole("listitem")
        .filter({ hasText: /^count:\s*"two"must be an integer$/ })
        .waitFor()
      await message.getByText("to is required").waitFor()
      await message.getByText("<b>ink</b>").waitFor()
      assert.deepStrictEqual(await axe(), [])
    })

    it("is compared again while it is edited, marked at its members, and replayed once it fits", async () => {
      const { page } = await portal.open(`/dead-letters/${await letterOf(portal, "unfit-1")}?tab=edit`)
      const marked = page.locator(".cm-lintRange-error")
      // what is stored is marked before anything is checked
      await marked.filter({ hasText: '"two"' }).first().waitFor()
      await write(page, '{"to":5,"items":[]}')
      await page.getByRole("button", { name: "Check" }).click()
      await page.getByText(/^payload does not fit It was checked against the schema of send/).waitFor()
      await page.getByRole("listitem").filter({ hasText: "payload.to must be string" }).waitFor()
      await marked.filter({ hasText: "5" }).first().waitFor()
      await write(page, good)
      await page.getByRole("button", { name: "Replay edited" }).click()
      const dialog = page.getByRole("dialog", { name: "Replay the edited message" })
      await dialog.getByText(/It fits the schema of send that a worker of version 2\.3\.0 reported/).waitFor()
      await dialog.getByRole("button", { name: "Replay edited" }).click()
      await page.getByText("Handled: a status of the task proves it.").waitFor({ timeout: 30_000 })
    })

    it("that does not fit is replayed nevertheless, after a warning", async () => {
      const { page } = await portal.open(`/dead-letters/${await letterOf(portal, "unfit-2")}?tab=edit`)
      await write(page, '{"items":[]}')
      await page.getByRole("button", { name: "Replay edited" }).click()
      const dialog = page.getByRole("dialog", { name: "Replay the edited message" })
      await dialog.getByText("payload.to is required").waitFor()
      await dialog.getByText(/It can be replayed nevertheless/).waitFor()
      await dialog.getByRole("button", { name: "Replay edited" }).click()
      await page
        .getByText(/failed again/i)
        .first()
        .waitFor({ timeout: 30_000 })
    })

    it("is no envelope any more: that is told before anything is replayed", async () => {
      const { page, problems } = await portal.open(`/dead-letters/${await letterOf(portal, "unknown-1")}?tab=edit`)
      await page.getByText("Whole message", { exact: true }).click()
      await page.getByRole("textbox", { name: "Whole message" }).fill('{"payload":{}}')
      problems.expect(/^422 POST /)
      await page.getByRole("button", { name: "Replay edited" }).click()
      await page.getByRole("alert").getByText("body.task_id").waitFor()
      assert.strictEqual(await page.getByRole("dialog").count(), 0)
    })

    it("of a handler without a schema is not compared, and the page says so", async () => {
      const { page } = await portal.open(`/dead-letters/${await letterOf(portal, "unknown-1")}`)
      const words =
        /^payload not compared There is no schema of the handler of weigh in version 2\.3\.0 of the worker\.$/
      await page.getByText(words).waitFor()
      await page.getByRole("tab", { name: "Edit" }).click()
      await page.getByRole("button", { name: "Check" }).click()
      await page.getByText(words).waitFor()
    })
  },
  { tasks, environment: { SVC_TASKS_VERSION: "2.3.0" } }
)
