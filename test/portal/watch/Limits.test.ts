import { assert, it } from "@effect/vitest"
import { createKey } from "../../RunningGateway.ts"
import { describePortal, type Portal } from "../PortalBrowser.ts"

const use = async ({ gateway }: Portal, key: string) => {
  const response = await fetch(`${gateway.proxy}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: "hello" }] })
  })
  await response.arrayBuffer()
}

describePortal("Limits", (portal) => {
  it("are raised until a time, and taken back", async () => {
    const key = await createKey(portal.gateway, { name: "ada's laptop", policy: { max_requests_per_day: 3 } })
    await use(portal, key.raw)
    const { page } = await portal.open(`/limits?do=raise&key_id=${key.id}&meter=max_requests_per_day`)
    const form = page.getByRole("dialog", { name: "Raise a limit until a time" })
    await form.getByLabel("Raised to").fill("50")
    await form.getByRole("button", { name: "End of tomorrow" }).press("Enter")
    await form.getByLabel("Reason").fill("a <b>launch</b>")
    await form.getByRole("button", { name: "Show the difference" }).press("Enter")
    const dialog = page.getByRole("dialog", { name: "Raise a limit" })
    await dialog.getByText("a <b>launch</b>").waitFor()
    assert.match(await dialog.getByRole("list").innerText(), /max_requests_per_day 3 → 50/)
    await dialog.getByRole("button", { name: "Raise it" }).press("Enter")
    await page.getByText(/is raised until/).waitFor()
    await page.waitForURL((url) => !url.search.includes("do=raise"))
    await page.goto(`${portal.gateway.control}/admin-ui/keys/${key.id}`)
    await page.getByRole("region", { name: "Limits now" }).getByRole("link", { name: "Limits", exact: true }).click()
    const drawer = page.getByRole("dialog", { name: /Limits of a key/ })
    await drawer.getByText("in force").waitFor()
    await drawer.getByRole("button", { name: "End it" }).press("Enter")
    await page.getByRole("dialog", { name: "End the exception" }).getByRole("button", { name: "End it" }).press("Enter")
    await page.getByText("The former limits are back.").first().waitFor()
    await drawer.getByText("over", { exact: true }).waitFor()
  })

  it("say at the field what is no raise, before anybody is asked to confirm it", async () => {
    const key = await createKey(portal.gateway, { name: "low", policy: { rpm_limit: 9 } })
    const { page } = await portal.open(`/limits?do=raise&key_id=${key.id}`)
    const form = page.getByRole("dialog", { name: "Raise a limit until a time" })
    await form.getByLabel("Raised to").fill("2")
    await form.getByLabel("Until").fill("2020-01-01T00:00")
    await form.getByLabel("Reason").fill("why not")
    await form.getByRole("button", { name: "Show the difference" }).click()
    await form.getByText("It must be more than 9").waitFor()
    await form.getByText("It must be a time to come.").waitFor()
    assert.strictEqual(await page.getByRole("button", { name: "Raise it" }).count(), 0)
  })

  it("are raised beyond what is used of them, unless somebody wants another amount", async () => {
    const key = await createKey(portal.gateway, { name: "over", policy: { max_requests_per_day: 5 } })
    for (let sent = 0; sent < 4; sent++) await use(portal, key.raw)
    await portal.gateway.operate("PATCH", `/keys/${key.id}`, {
      policy: { unpriced_models: "flat", max_requests_per_day: 1 }
    })
    const { page } = await portal.open(`/limits?do=raise&key_id=${key.id}`)
    const form = page.getByRole("dialog", { name: "Raise a limit until a time" })
    const amount = form.getByLabel("Raised to")
    await amount.waitFor()
    assert.strictEqual(await amount.inputValue(), "8")
  })

  const ask = async (settings: Parameters<typeof createKey>[1], asked: object) => {
    const key = await createKey(portal.gateway, settings)
    const asking = await fetch(`${portal.gateway.control}/admin-ui/v1/me/raise-requests`, {
      method: "POST",
      headers: { "x-api-key": key.raw, "content-type": "application/json" },
      body: JSON.stringify(asked)
    })
    assert.isTrue(asking.ok)
    return key
  }

  it("are granted to a holder who asks, with an answer", async () => {
    await ask(
      { name: "asking", policy: { daily_budget_usd: 1 } },
      { reason: "a <i>deadline</i>", meter: "daily_budget_usd", amount: 7 }
    )
    const { page } = await portal.open("/limits/requests?state=open")
    await page.getByText("a <i>deadline</i>").waitFor()
    await page.getByRole("button", { name: "Grant …" }).click()
    const form = page.getByRole("dialog", { name: "Grant a raise" })
    await form.getByLabel("Answer").fill("until tomorrow")
    await form.getByRole("button", { name: "Show the difference" }).click()
    await page.getByText(/daily_budget_usd 1 → 7/).waitFor()
    await page.getByRole("button", { name: "Grant it" }).click()
    await page.getByText("It is granted.").waitFor()
    await page.getByText("Nobody asks for more.").waitFor()
  })

  it("that a holder asked about are not replaced by another one", async () => {
    await ask(
      { name: "confused", policy: { rpm_limit: 5, max_requests_per_day: 9 } },
      { reason: "much to do", meter: "daily_budget_usd", amount: 7 }
    )
    const { page } = await portal.open("/limits/requests?state=open")
    await page.getByRole("row").filter({ hasText: "confused" }).getByRole("button", { name: "Grant …" }).click()
    const form = page.getByRole("dialog", { name: "Grant a raise" })
    await form.getByText("daily_budget_usd is no limit of this key alone now.").waitFor()
    assert.strictEqual(await form.getByRole("combobox", { name: "Limit" }).inputValue(), "")
    assert.isTrue(await form.getByRole("button", { name: "Show the difference" }).isDisabled())
    await form.getByRole("combobox", { name: "Limit" }).click()
    await page.getByRole("option", { name: /max_requests_per_day/ }).click()
    await form.getByRole("button", { name: "Show the difference" }).click()
    await page.getByText(/max_requests_per_day 9 → 18/).waitFor()
  })

  it("are not in the way of a model that a holder asks for", async () => {
    const key = await ask(
      { name: "modest", team_id: "modest", policy: { allowed_models: ["small"], rpm_limit: 5 } },
      { reason: "a long text", model: "<b>large</b>" }
    )
    const layer = Object(
      await portal.gateway.operate("POST", "/policy-layers", {
        kind: "team",
        scope_id: "modest",
        policy: { allowed_models: ["small"] }
      })
    )
    const { axe, page, problems } = await portal.open("/limits/requests?state=open")
    const row = page.getByRole("row").filter({ hasText: "modest" })
    await row.getByText("the model <b>large</b>").waitFor()
    await row.getByRole("button", { name: "Grant …" }).click()
    const dialog = page.getByRole("dialog", { name: "Grant a model" })
    await dialog.getByText("It has now: small.").waitFor()
    assert.deepStrictEqual(await axe(), [])
    problems.expect(/^400 POST .*grant-model/)
    await dialog.getByRole("button", { name: "Grant it" }).click()
    await dialog.getByText("team:modest refuses <b>large</b>. Change that first.").waitFor()
    await portal.gateway.operate("DELETE", `/policy-layers/${layer.id}`)
    await dialog.getByLabel("Answer").fill("use it well")
    await dialog.getByRole("button", { name: "Grant it" }).click()
    await page.getByText("It is granted.").waitFor()
    assert.deepStrictEqual(Object(await portal.gateway.operate("GET", `/keys/${key.id}`)).policy.allowed_models, [
      "small",
      "<b>large</b>"
    ])
  })

  it("freeze a key, and let it go on", async () => {
    const key = await createKey(portal.gateway, { name: "runaway", policy: { rpm_limit: 5 } })
    await use(portal, key.raw)
    const { page } = await portal.open("/limits?q=runaway")
    await page.getByRole("button", { name: "runaway", exact: true }).click()
    const drawer = page.getByRole("dialog", { name: /Limits of a key/ })
    await drawer.getByRole("button", { name: "Freeze the key" }).click()
    await page
      .getByRole("dialog", { name: "Freeze the key" })
      .getByRole("button", { name: "Freeze", exact: true })
      .click()
    await page.getByText("The key is frozen").waitFor()
    await page.getByRole("button", { name: "Undo" }).click()
    await page.getByText("The key works again.").waitFor()
  })

  it("mark the budget that is open, and tell nothing of a counter that cannot be read", async () => {
    const key = await createKey(portal.gateway, { name: "watched", policy: { daily_budget_usd: 5 } })
    await use(portal, key.raw)
    const { answer, page } = await portal.open(`/limits/budgets?q=watched&open=key:${key.id}`)
    await page.locator("tr[data-open]", { hasText: "watched" }).waitFor()
    const found = await portal.gateway.operate("GET", `/limits/state?scope=key&id=${key.id}`)
    assert(typeof found === "object" && found !== null && "limits" in found && Array.isArray(found.limits))
    const unread = { used: null, reserved: null, remaining: null, share: null, forecast: null }
    const limits = found.limits.map((limit: object) => ({ ...limit, ...unread }))
    await answer(/\/limits\/state/, { body: { ...found, limits } })
    await page.reload()
    const drawer = page.getByRole("dialog", { name: /Limits of/ })
    await drawer.getByText("When it ends is not known.").waitFor()
    await drawer.getByText("What is left of $5.00 is not known").waitFor()
    assert.strictEqual(await drawer.getByText("$0 left").count(), 0)
  })

  it("that end soon have their chart within the page, whatever their owners are called", async () => {
    const name = "w".repeat(120)
    const key = await createKey(portal.gateway, { name, policy: { daily_budget_usd: 5 } })
    await use(portal, key.raw)
    const found = Object(await portal.gateway.operate("GET", `/limits/state?scope=key&id=${key.id}`))
    const forecast = new Date(Date.now() + 3_600_000).toISOString()
    const limits = found.limits.map((limit: object) => ({ ...limit, forecast }))
    for (const width of [1280, 360]) {
      const { answer, page } = await portal.open("/keys", { width })
      await answer(/\/limits\/state/, { body: { ...found, limits } })
      await page.goto(`${portal.gateway.control}/admin-ui/limits`)
      await page.getByRole("heading", { name, level: 2 }).waitFor()
      assert.isAtMost(await page.evaluate<number>("document.documentElement.scrollWidth"), width)
    }
  })

  it("of a project are on its page, with a link to all of them, and budgets have their owners", async () => {
    const { operate } = portal.gateway
    const project = Object(await operate("POST", "/projects", { name: "Shop", owner_email: "ada@shop.example" }))
    const shared = { kind: "project", scope_id: project.id, shared: { monthly_budget_usd: 9 } }
    await operate("POST", "/policy-layers", shared)
    const policy = { daily_budget_usd: 2 }
    const key = await createKey(portal.gateway, {
      name: "till",
      owner_type: "project",
      project_id: project.id,
      policy
    })
    await use(portal, key.raw)
    const { axe, page } = await portal.open(`/projects/${project.id}?tab=limits`)
    await page.getByRole("meter", { name: "monthly_budget_usd of Shop" }).waitFor()
    await page.getByRole("meter", { name: "daily_budget_usd of till" }).waitFor()
    assert.deepStrictEqual(await axe(), [])
    await page.getByRole("link", { name: "All limits of its keys" }).click()
    await page.getByRole("link", { name: "Budgets" }).click()
    const budgets = page.getByRole("table", { name: "Budgets" })
    await budgets.getByText("ada@shop.example, Shop").first().waitFor()
  })

  it("are reset for a reason", async () => {
    const key = await createKey(portal.gateway, { name: "spent", policy: { max_requests_per_day: 4, rpm_limit: 9 } })
    await use(portal, key.raw)
    const { page } = await portal.open(`/limits?open=key:${key.id}`)
    const drawer = page.getByRole("dialog", { name: /Limits of a key/ })
    await drawer.getByRole("meter", { name: "max_requests_per_day" }).waitFor()
    assert.strictEqual(await drawer.getByRole("button", { name: /^Reset / }).count(), 1)
    await drawer.getByRole("button", { name: "Reset max_requests_per_day of spent" }).click()
    const dialog = page.getByRole("dialog", { name: "Reset a limit" })
    await dialog.getByText(/max_requests_per_day used 1 → 0/).waitFor()
    await dialog.getByLabel("Reason").fill("a <b>loop</b> of ours")
    await dialog.getByRole("button", { name: "Reset it" }).click()
    await page.getByText(/is reset\./).waitFor()
    await drawer.getByText(/^0 of 4/).waitFor()
    await page.getByRole("link", { name: "Audit event" }).click()
    await page.getByText("limits:reset").first().waitFor()
  })

  it("show no button that the token lacks", async () => {
    const { page } = await portal.open("/limits", { scopes: ["usage:read"] })
    await page.getByRole("heading", { name: "Limits", level: 1 }).waitFor()
    assert.strictEqual(await page.getByRole("button", { name: "Raise a limit" }).count(), 0)
  })
})
