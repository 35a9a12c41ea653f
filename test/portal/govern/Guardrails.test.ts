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
})
