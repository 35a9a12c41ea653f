import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { createKey } from "../../RunningGateway.ts"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal, type Portal } from "../PortalBrowser.ts"

const hostile = '<img src=x onerror="document.title=1"> \u202eevil'

const sendWith = async ({ gateway }: Portal, key: string, model = "gpt-5") => {
  const response = await fetch(`${gateway.proxy}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] })
  })
  await response.arrayBuffer()
  return response.headers.get("x-request-id") ?? ""
}

const isLive = async (page: Page) => {
  await eventuallyTrue(
    async () => (await page.getByRole("button", { name: /^(live|reconnecting)$/ }).innerText()) === "live"
  )
}

describePortal("Requests", (portal) => {
  it("appear as they end, each once, and wait while the reader is at the rows", async () => {
    const key = await createKey(portal.gateway, { name: hostile })
    const { page } = await portal.open("/requests?range=1h")
    await isLive(page)
    const rows = page.getByRole("table", { name: "Requests" }).locator("tbody tr")
    // the first batch of a new listener may come before the processes know of it
    await eventuallyTrue(async () => {
      await sendWith(portal, key.raw)
      return (await rows.count()) > 0
    })
    await page.getByText(hostile.replace("\u202e", "U+202E"), { exact: true }).first().waitFor()
    await rows.first().hover()
    const before = await rows.count()
    await sendWith(portal, key.raw, "another-model")
    const waiting = page.getByRole("button", { name: /^\d+ new$/ })
    await waiting.waitFor()
    assert.strictEqual(await rows.filter({ hasText: "another-model" }).count(), 0)
    assert.isAtMost(await rows.count(), before + 1)
    await waiting.click()
    await rows.filter({ hasText: "another-model" }).waitFor()
    const answered = page.waitForResponse(/\/usage\/events/)
    await page.keyboard.press("r")
    await answered
    assert.strictEqual(await rows.filter({ hasText: "another-model" }).count(), 1)
  })

  it("say why they were refused, and whether they would be now", async () => {
    const key = await createKey(portal.gateway, { name: "narrow", policy: { allowed_models: ["gpt-5"] } })
    const refused = await sendWith(portal, key.raw, "forbidden-model")
    const { axe, page, problems } = await portal.open(`/requests?range=1h&key_id=${key.id}`)
    // records are written a moment after the request has ended
    problems.expect(/^404 GET/)
    const first = page.getByRole("table", { name: "Requests" }).locator("tbody tr").first()
    await first.waitFor()
    await first.focus()
    await page.keyboard.press("Enter")
    const drawer = page.getByRole("dialog")
    await drawer.getByText("This key may not use this model.").first().waitFor()
    assert.deepStrictEqual(await axe(), [])
    await page.goto(`${portal.gateway.control}/admin-ui/requests/${refused}`)
    await page.getByText("This key may not use this model.").first().waitFor()
    const checks = page.getByRole("list", { name: "Checks, in their order" }).getByRole("listitem")
    assert.deepStrictEqual(
      [await checks.first().textContent(), await checks.last().textContent()],
      ["deny passed", "model refused"]
    )
    // a layer that was made since then let nothing pass
    await portal.gateway.operate("POST", "/policy-layers", {
      kind: "model",
      scope_id: "forbidden-model",
      policy: { rpm_limit: 1_000 }
    })
    await page.reload()
    await page.getByText("The record names only the layer that refused").waitFor()
    assert.strictEqual(await page.getByText("lets pass", { exact: true }).count(), 0)
    await page.getByText("Now", { exact: true }).first().click()
    await page.getByText("would be refused").waitFor()
    await page.getByText("model:forbidden-model", { exact: true }).waitFor()
    await page.getByText("refuses", { exact: true }).first().waitFor()
    const traces = page.getByRole("figure", { name: "Raw traces" })
    assert.isFalse(await traces.isVisible())
    await page.getByText("Raw traces", { exact: true }).click()
    assert.match(await traces.innerText(), /policy_trace[\s\S]*policy_version=/)
    assert.deepStrictEqual(await axe(), [])
  })

  it("lead to the policy that refused them, and to the simulator with their model", async () => {
    await portal.gateway.operate("POST", "/policy-layers", {
      kind: "model",
      scope_id: "walled:off",
      policy: { deny: true }
    })
    const key = await createKey(portal.gateway, { name: "walled" })
    const refused = await sendWith(portal, key.raw, "walled:off")
    const { page, problems } = await portal.open(`/requests?range=1h&key_id=${key.id}`)
    // records are written a moment after the request has ended
    problems.expect(/^404 GET/)
    await page.getByRole("table", { name: "Requests" }).locator("tbody tr").first().waitFor()
    await page.goto(`${portal.gateway.control}/admin-ui/requests/${refused}`)
    const simulate = page.getByRole("link", { name: "Simulate with a change" })
    await simulate.click()
    await eventuallyTrue(async () =>
      (await page.getByRole("textbox", { name: "Body" }).inputValue()).includes("walled:off")
    )
    await page.goBack()
    await page.getByRole("link", { name: "Change the layer" }).click()
    await page.getByRole("dialog", { name: "The layer of model walled:off" }).waitFor()
  })

  it("are found by chips that are in the address, and an error of the list leaves the rest", async () => {
    const { answer, page, problems } = await portal.open("/requests?range=1h")
    await page.getByRole("button", { name: "Filter", exact: true }).waitFor()
    await page.keyboard.press("/")
    await page.keyboard.press("Enter")
    await page.getByLabel("Field", { exact: true }).first().click()
    await page.getByRole("option", { name: "Result" }).click()
    await page.getByLabel("Result", { exact: true }).first().click()
    await page.getByRole("option", { name: "failure" }).click()
    await page.waitForURL(/status=failure/)
    // keys go to its fields until it is closed
    await page.getByRole("dialog").waitFor({ state: "detached" })
    await page.getByRole("button", { name: "Remove the filter Result" }).click()
    await page.waitForURL((url) => !url.search.includes("status="))
    problems.expect(/^500 GET/)
    await answer(/\/usage\/events/, { status: 500, message: "The database is away." })
    await page.keyboard.press("r")
    await page.getByText("The database is away.").first().waitFor()
    await page.getByRole("figure", { name: "Requests by their result" }).waitFor()
  })

  it("keep their filters while they load, and a filter that they fail of can be removed", async () => {
    const { answer, page } = await portal.open("/usage")
    const takeBack = await answer(/\/usage\/events/, {
      status: 504,
      message: "The query took too long.",
      delayMs: 1_000
    })
    await page.goto(`${portal.gateway.control}/admin-ui/requests?range=1h&session_id=endless`)
    const remove = page.getByRole("button", { name: "Remove the filter Session" })
    await remove.waitFor()
    assert.strictEqual(await page.getByText("The query took too long.").count(), 0)
    await page.getByText("The query took too long.").first().waitFor()
    await takeBack()
    await remove.click()
    await page.getByRole("table", { name: "Requests" }).waitFor()
    assert.notInclude(page.url(), "session_id")
  })
})
