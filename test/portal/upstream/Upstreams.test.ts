import { assert, it } from "@effect/vitest"
import type { Locator } from "playwright-core"
import { describePortal } from "../PortalBrowser.ts"

const choose = (form: Locator, group: string, choice: string) =>
  form.getByRole("radiogroup", { name: group }).getByText(choice, { exact: true }).click()

describePortal("Upstreams", (portal) => {
  it("are asked for what an open wildcard lets people do before it is open", async () => {
    const { axe, page } = await portal.open("/upstreams?tab=passthrough")
    await page.getByRole("button", { name: "Change", exact: true }).click()
    const form = page.getByRole("dialog", { name: "Wildcard" })
    await form.getByRole("combobox", { name: "guardrails" }).click()
    await page.getByRole("option", { name: "skip" }).click()
    const show = () => form.getByRole("button", { name: "Show the difference" }).click()
    const review = page.getByRole("dialog", { name: "Change the wildcard" })
    const warning = review.getByText("Requests on the wildcard pass no guardrail")
    await show()
    await review.getByText("guardrails").first().waitFor()
    assert.strictEqual(await warning.count(), 0)
    await review.getByRole("button", { name: "Cancel" }).click()
    await form.getByRole("switch", { name: /^enabled/ }).click({ force: true })
    await show()
    await warning.waitFor()
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme })
      assert.deepStrictEqual(await axe(), [])
    }
    await review.getByRole("button", { name: "Cancel" }).click()
    const settings = Object(await portal.gateway.operate("GET", "/providers/upstream-passthrough"))
    assert.strictEqual(settings.enabled, false)
  })

  it("have states by hand with a kind and what they rest on", async () => {
    const path = "/provider-health/state"
    await portal.gateway.operate("POST", path, {
      name: "main",
      provider: "internal-service",
      status: "healthy",
      circuit_state: "closed",
      passive_success_count: 12
    })
    const { axe, page } = await portal.open("/upstreams?tab=health")
    await page.getByRole("region", { name: "Fallbacks" }).getByText("0", { exact: true }).waitFor()
    await page.getByRole("button", { name: "Record a state by hand" }).click()
    const form = page.getByRole("dialog", { name: "Record a state by hand" })
    const kinds = form.getByRole("radiogroup", { name: "provider" })
    assert.isTrue(await kinds.getByRole("radio", { name: "internal-service" }).isChecked())
    await form.getByLabel("name", { exact: true }).fill("payments")
    assert.isTrue(await kinds.getByRole("radio", { name: "upstream" }).isChecked())
    await choose(form, "provider", "internal-service")
    await form.getByText("More", { exact: true }).click()
    await choose(form, "active_check_ok", "failed")
    await form.getByLabel("passive_failure_count").fill("4")
    await form.getByRole("button", { name: "7 d" }).click()
    assert.deepStrictEqual(await axe(), [])
    await form.getByRole("button", { name: "Show the difference" }).click()
    const review = page.getByRole("dialog", { name: "State of payments" })
    assert.match(await review.innerText(), /passive_failure_count\s+not set\s+→\s+4/)
    await review.getByRole("button", { name: "Record" }).click()
    await page.getByText("The state of payments is recorded.").waitFor()
    const states = await portal.gateway.operate("GET", path)
    assert(Array.isArray(states))
    const recorded = states.find(({ name }) => name === "payments")
    assert.deepInclude(recorded, {
      provider: "internal-service",
      status: "degraded",
      active_check_ok: false,
      passive_failure_count: 4
    })
    assert.isAbove(Date.parse(recorded.cooldown_until), Date.now())
    // the state of another name is as it was
    assert.deepInclude(
      states.find(({ name }) => name === "main"),
      { status: "healthy", passive_success_count: 12 }
    )

    // what is recorded of one is found again by its row, also after a check of all
    await page.getByRole("button", { name: "Run checks" }).first().click()
    const dialog = page.getByRole("dialog", { name: "Check the upstreams" })
    await dialog.getByRole("button", { name: "Run the checks" }).click()
    await dialog.waitFor({ state: "hidden" })
    const table = page.getByRole("table", { name: "States" })
    await table.getByRole("row").filter({ hasText: "payments" }).click()
    const history = page.getByRole("region", { name: "History of internal-service/payments" })
    const events = history.getByRole("row").filter({ hasText: "degraded" })
    await events.getByText("by hand").waitFor()
    assert.strictEqual(await events.count(), 1)
    await history.getByRole("button", { name: "Of all" }).click()
    const all = page.getByRole("region", { name: "History", exact: true })
    await all.getByRole("row").filter({ hasText: "check" }).first().waitFor()
    await all.getByRole("row").filter({ hasText: "healthy" }).getByText("by hand").waitFor()
    await page.getByRole("button", { name: "Columns, rows, CSV" }).first().click()
    for (const column of ["active_check_ok", "passive_failure_count", "cooldown_until"])
      await page.getByRole("menuitemcheckbox", { name: column }).click()
    await page.keyboard.press("Escape")
    assert.match(
      await table.getByRole("row").filter({ hasText: "payments" }).innerText(),
      /\bno\b[\s\S]*\b4\b[\s\S]*in \d d/
    )
  })

  it("get no credential of a project before it is enabled", async () => {
    const project = Object(await portal.gateway.operate("POST", "/projects", { name: "later" }))
    const { page } = await portal.open("/upstreams?tab=credentials")
    const set = async () => {
      await page.getByRole("button", { name: "Set a credential" }).click()
      const form = page.getByRole("dialog", { name: "Set a credential" })
      await form.getByRole("combobox", { name: "Project" }).fill("later")
      await page.getByRole("option", { name: "later" }).click()
      await form.getByLabel("credential", { exact: true }).fill("sk-later")
      return form
    }
    const form = await set()
    await form.getByRole("switch", { name: /^enabled/ }).click({ force: true })
    await form.getByRole("button", { name: "Show the difference" }).click()
    const review = page.getByRole("dialog", { name: "Set the credential of later" })
    await review.getByText("Requests carry it once somebody enables it.").waitFor()
    await review.getByRole("button", { name: "Set it" }).click()
    await page.getByText("The credential of later is set.").waitFor()
    const mappings = await portal.gateway.operate("GET", "/providers/upstream-credentials")
    assert(Array.isArray(mappings))
    assert.deepInclude(
      mappings.find(({ target_id }) => target_id === project.id),
      { enabled: false, credential_configured: true }
    )
    // a new credential does not enable what somebody has disabled
    const again = await set()
    assert.isFalse(await again.getByRole("switch", { name: /^enabled/ }).isChecked())
  })

  it("lose the token of the studio, and keep its address", async () => {
    const path = "/studio/connection"
    await portal.gateway.operate("PATCH", path, { base_url: "http://127.0.0.1:9", token: "studio-token" })
    const { page, problems } = await portal.open("/studio")
    // nothing listens there
    problems.expect(/^502 GET .*studio\/services/)
    await page.getByRole("button", { name: "Change", exact: true }).click()
    const form = page.getByRole("dialog", { name: "Connection to the studio" })
    await form.getByRole("checkbox", { name: "Clear the token that is configured" }).click()
    await form.getByRole("button", { name: "Show the difference" }).click()
    const review = page.getByRole("dialog", { name: "Change the connection to the studio" })
    assert.match(await review.innerText(), /token\s+configured\s+→\s+cleared/)
    await review.getByRole("button", { name: "Change", exact: true }).click()
    await page.getByText("The connection is changed.").waitFor()
    assert.strictEqual(await page.getByRole("button", { name: "Undo", exact: true }).count(), 0)
    assert.deepInclude(await portal.gateway.operate("GET", path), {
      base_url: "http://127.0.0.1:9",
      token_configured: false
    })
  })
})
