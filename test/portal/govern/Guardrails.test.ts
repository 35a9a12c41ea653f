import { assert, it } from "@effect/vitest"
import { createKey } from "../../RunningGateway.ts"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal } from "../PortalBrowser.ts"

describePortal("Guardrails", (portal) => {
  it("have one list of what all of them did, from which each is reached", async () => {
    const { raw } = await createKey(portal.gateway, { guardrail_policy: { mandatory_guardrails: ["pii-redact"] } })
    const response = await fetch(`${portal.gateway.proxy}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${raw}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: "Write to jane@example.com." }] })
    })
    assert.strictEqual(response.status, 200)
    await eventuallyTrue(async () =>
      JSON.stringify(await portal.gateway.operate("GET", "/guardrails/executions")).includes("modify")
    )
    const { axe, page } = await portal.open("/guardrails")
    await page.getByRole("table", { name: "Guardrails" }).waitFor()
    await page.getByRole("tab", { name: "Executions" }).click()
    const rows = page.getByRole("table", { name: "Executions" }).locator("tbody tr")
    await rows.filter({ hasText: "modify" }).first().waitFor()
    assert.deepStrictEqual(await axe(), [])
    await page.getByRole("combobox", { name: "Action" }).click()
    await page.getByRole("option", { name: "block" }).click()
    await page.waitForURL(/tab=executions.*action=block|action=block.*tab=executions/)
    await page.getByText("No run in this range matches these filters.").waitFor()
    await page.goto(`${portal.gateway.control}/admin-ui/guardrails?tab=executions`)
    await rows.first().getByRole("link", { name: "pii-redact" }).click()
    await page.getByRole("heading", { name: "pii-redact", level: 1 }).waitFor()
  })

  it("say which keys they check, and list those of an outcome", async () => {
    const { operate } = portal.gateway
    await operate("POST", "/guardrails", {
      name: "house-rules",
      endpoint_url: "https://guard.example.com/check",
      failure_policy: "fail_closed"
    })
    for (let made = 0; made < 101; made++)
      await operate("POST", "/keys", { owner_type: "individual", name: `plain ${made}` })
    const named = (name: string, guardrail_policy: object) =>
      operate("POST", "/keys", { owner_type: "individual", name, guardrail_policy })
    await named("demanding key", { mandatory_guardrails: ["house-rules"] })
    await named("offering key", { optional_guardrails: ["house-rules"] })
    await operate("PATCH", "/guardrails/house-rules", { enabled: true })
    for (const width of [1280, 360])
      for (const scheme of ["light", "dark"] as const) {
        const { axe, page } = await portal.open("/guardrails/house-rules?tab=coverage", { width, scheme })
        const rows = page.getByRole("table", { name: "Keys" }).locator("tbody tr")
        await rows.filter({ hasText: "offering key" }).waitFor()
        const mandatory = page.getByRole("button", { name: "Mandatory" })
        await mandatory.focus()
        await page.keyboard.press("Enter")
        await page.waitForURL(/outcome=mandatory/)
        await rows.filter({ hasText: "offering key" }).waitFor({ state: "detached" })
        assert.strictEqual(await rows.count(), 1)
        assert.match(await rows.innerText(), /demanding key[\s\S]*mandatory/)
        assert.strictEqual(await mandatory.getAttribute("aria-pressed"), "true")
        assert.deepStrictEqual(await axe(), [])
      }
    const { page } = await portal.open("/guardrails/house-rules?tab=coverage&outcome=none")
    await page.getByText("100 shown, there are more").waitFor()
    await page.getByRole("button", { name: "Show more" }).click()
    await page.getByText("100 shown, there are more").waitFor({ state: "detached" })
    await page.getByRole("button", { name: "Refused" }).click()
    await page.getByText("No key is among these.").waitFor()
    await page.getByRole("button", { name: "Clear the filters" }).click()
    await page.getByRole("table", { name: "Keys" }).getByRole("link", { name: "demanding key" }).click()
    await page.getByRole("heading", { name: "demanding key", level: 1 }).waitFor()
  })
})
