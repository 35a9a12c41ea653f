import { assert, it } from "@effect/vitest"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal } from "../PortalBrowser.ts"

describePortal("A service", (portal) => {
  const stored = async (name: string) => Object(await portal.gateway.operate("GET", `/services/${name}`))

  it("has a project, the status of its import and rules of prices with names", async () => {
    const project = Object(await portal.gateway.operate("POST", "/projects", { name: "Shop" }))
    await portal.gateway.operate("POST", "/services", { name: "search", upstream_base_url: "http://127.0.0.1:9" })
    const { axe, page } = await portal.open("/services/search")
    await page.getByRole("button", { name: "Edit", exact: true }).click()
    const form = page.getByRole("dialog", { name: "Edit search" })
    await form.getByRole("combobox", { name: "Project" }).fill("sho")
    await page.getByRole("option", { name: "Shop" }).click()
    await form.getByRole("combobox", { name: "sync_status" }).click()
    await page.getByRole("option", { name: "stale" }).click()
    await form.getByRole("button", { name: /^Add a rule/ }).click()
    const rule = form.getByRole("group", { name: "Rule 1" })
    await rule.getByLabel("name", { exact: true }).fill("large pictures")
    await rule.getByLabel("json_pointer").fill("/size")
    await rule.getByLabel("equals").fill("large")
    await rule.getByLabel("USD").fill("2")
    assert.deepStrictEqual(await axe(), [])
    await form.getByRole("button", { name: "Show the difference" }).click()
    const review = page.getByRole("dialog", { name: "Change search" })
    const difference = await review.innerText()
    assert.match(difference, /project_id\s+not set\s+→\s+Shop/)
    assert.match(difference, /sync_status\s+local\s+→\s+stale/)
    await review.getByRole("button", { name: "Change", exact: true }).click()
    await page.getByText("search is changed.").waitFor()
    const changed = await stored("search")
    assert.strictEqual(changed.project_id, project.id)
    assert.strictEqual(changed.sync_status, "stale")
    assert.deepStrictEqual(changed.pricing_rules, [
      { name: "large pictures", json_pointer: "/size", equals: "large", cost_mode: "fixed", estimated_cost_usd: 2 }
    ])
    await page.getByRole("link", { name: "Shop" }).waitFor()
    await page.getByRole("button", { name: "Undo", exact: true }).click()
    await page.getByText("It is as it was.").waitFor()
    const former = await stored("search")
    assert.deepStrictEqual([former.project_id, former.sync_status, former.pricing_rules], [null, "local", []])
  })

  it("shows prices of endpoints that its document no longer has, and they are removed", async () => {
    const free = { cost_mode: "none" }
    const fixed = { cost_mode: "fixed", estimated_cost_usd: 2 }
    await portal.gateway.operate("POST", "/services", {
      name: "moved",
      openapi_endpoints: [{ method: "GET", path_template: "/items/{item}" }],
      endpoint_pricing_rules: [
        { method: "GET", path_template: "/items/{id}", ...fixed },
        { method: "POST", path_template: "/gone", ...fixed },
        { method: "DELETE", path_template: "/gone", ...free }
      ]
    })
    const priced = async () => {
      const { endpoint_pricing_rules: rules } = await stored("moved")
      assert(Array.isArray(rules))
      return rules.map((rule) => `${rule.method} ${rule.path_template} ${rule.estimated_cost_usd}`).sort()
    }
    const { axe, page } = await portal.open("/services/moved?tab=prices")
    const table = page.getByRole("table", { name: "Endpoints" })
    const rowOf = (endpoint: string) => table.getByRole("row").filter({ hasText: endpoint })
    await rowOf("POST /gone").getByText("stale").waitFor()
    // a parameter with another name does not make it another endpoint
    assert.match(await rowOf("GET /items/{item}").innerText(), /fixed \$2/)
    assert.strictEqual(await table.getByText("stale", { exact: true }).count(), 2)
    for (const colorScheme of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme })
      assert.deepStrictEqual(await axe(), [])
    }

    const review = page.getByRole("dialog", { name: "Remove stale prices" })
    const confirm = () => review.getByRole("button", { name: "Change", exact: true }).click()
    await table.getByRole("button", { name: "Remove the price of POST /gone" }).click()
    assert.match(await review.innerText(), /POST \/gone\s+fixed \$2\s+→\s+as the service/)
    await confirm()
    await page.getByText("The stale price is removed.").waitFor()
    assert.deepStrictEqual(await priced(), ["DELETE /gone null", "GET /items/{id} 2"])
    await page.getByRole("button", { name: "Undo", exact: true }).click()
    await page.getByText("It is as it was.").waitFor()
    await page.getByRole("button", { name: "Remove all of them" }).click()
    assert.match(await review.innerText(), /DELETE \/gone\s+none\s+→\s+as the service/)
    await confirm()
    await page.getByText("2 stale prices are removed.").waitFor()
    await eventuallyTrue(async () => (await table.getByText("stale", { exact: true }).count()) === 0)

    await table.getByRole("button", { name: "Set the price of GET /items/{item}" }).click()
    const form = page.getByRole("dialog", { name: "GET /items/{item}" })
    await form.getByLabel("estimated_cost_usd").fill("3")
    await form.getByRole("button", { name: "Show the difference" }).click()
    const set = page.getByRole("dialog", { name: "Price of GET /items/{item}" })
    await set.getByRole("button", { name: "Change", exact: true }).click()
    await page.getByText("The price of GET /items/{item} is set.").waitFor()
    assert.deepStrictEqual(await priced(), ["GET /items/{item} 3"])
  })
})
