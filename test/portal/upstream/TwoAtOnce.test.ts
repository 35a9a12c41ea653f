import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { describePortal, type Portal } from "../PortalBrowser.ts"

interface Shared {
  /** The path of the API that changes it. */
  readonly path: string
  /** Opens the form that changes it. */
  readonly form: (page: Page) => Promise<void>
  /** A field that both people change, by its name in the API and in the form. */
  readonly field: string
  readonly theirs: unknown
  readonly mine: string
  /** A secret that only the second one changes. */
  readonly secret?: string
  /** Requests that fail because nothing is connected. */
  readonly fails?: RegExp
}

const memberOf = (json: unknown, name: string): unknown =>
  typeof json === "object" && json !== null ? Object.entries(json).find(([key]) => key === name)?.[1] : undefined

/** A field by its name in the API, which stands after the words for it. */
const labelled = (page: Page, field: string) => page.getByLabel(new RegExp(`(^| )${field}$`))

/** Two people change it at once in the portal: the second one sees both versions, and applies the own one. */
const changeAtOnce = async (portal: Portal, address: string, shared: Shared) => {
  const { fails, field, form, mine, path, secret, theirs } = shared
  const { axe, page, problems } = await portal.open(address)
  problems.expect(/^409 PATCH /)
  if (fails !== undefined) problems.expect(fails)
  await form(page)
  // some have the word of people before the name of the API
  await labelled(page, field).fill(mine)
  if (secret !== undefined) await page.getByLabel(secret, { exact: true }).fill("my-secret")
  await portal.gateway.operate("PATCH", path, { [field]: theirs })
  await page.getByRole("button", { name: "Show the difference" }).click()
  const dialog = page.getByRole("dialog", { name: /^Change / })
  await dialog.getByRole("button", { name: "Change", exact: true }).click()
  await dialog.getByRole("heading", { name: "What they changed" }).waitFor()
  const both = await dialog.innerText()
  assert.include(both, `${theirs}`)
  assert.include(both, mine)
  assert.notInclude(both, "my-secret")
  assert.deepStrictEqual(await axe(), [])
  await dialog.getByRole("button", { name: "Apply mine to the new version" }).click()
  await dialog.waitFor({ state: "detached" })
  return { both, page }
}

const edit = (name: string) => (page: Page) => page.getByRole("button", { name, exact: true }).click()

describePortal("What two people change at once", (portal) => {
  it("is a provider: both versions are shown, and neither credential", async () => {
    const made = await portal.gateway.operate("POST", "/providers", {
      provider: "upstream",
      name: "shared",
      base_url: "https://first.example/v1",
      credential: "old-secret",
      enabled: false
    })
    const path = `/providers/${memberOf(made, "id")}`
    const { both } = await changeAtOnce(portal, "/upstreams", {
      path,
      form: edit("Edit shared"),
      field: "base_url",
      theirs: "https://theirs.example/v1",
      mine: "https://mine.example/v1",
      secret: "credential"
    })
    // moving the address removed the credential that was stored
    assert.match(both, /credential\s+configured\s+→\s+not set/)
    assert.match(both, /credential\s+not set\s+→\s+a new one/)
    const stored = await portal.gateway.operate("GET", path)
    assert.strictEqual(memberOf(stored, "base_url"), "https://mine.example/v1")
    assert.strictEqual(memberOf(stored, "credential_configured"), true)
  })

  it("is a service, although its page follows what others change", async () => {
    await portal.gateway.operate("POST", "/services", { name: "shared", upstream_base_url: "http://127.0.0.1:9" })
    const { page } = await changeAtOnce(portal, "/services/shared", {
      path: "/services/shared",
      form: edit("Edit"),
      field: "health_check_path",
      theirs: "/theirs",
      mine: "/mine",
      secret: "credential"
    })
    const stored = await portal.gateway.operate("GET", "/services/shared")
    assert.strictEqual(memberOf(stored, "health_check_path"), "/mine")
    // nobody can bring back the credential that was stored before
    await page.getByText("shared is changed.").waitFor()
    assert.strictEqual(await page.getByRole("button", { name: "Undo", exact: true }).count(), 0)
  })

  it("is undone where no secret is a part of it", async () => {
    await portal.gateway.operate("POST", "/providers", {
      provider: "internal-service",
      name: "reverted",
      base_url: "https://first.example"
    })
    await portal.gateway.operate("POST", "/services", { name: "reverted", upstream_base_url: "http://127.0.0.1:9" })
    await portal.gateway.operate("POST", "/guardrails", {
      name: "reverted",
      endpoint_url: "http://127.0.0.1:9/check",
      failure_policy: "fail_open",
      runtime_config: { level: 1 },
      enabled: false
    })
    const forms = [
      ["/upstreams", "Edit reverted", "base_url", "https://mine.example"],
      ["/services/reverted", "Edit", "timeout_ms", "1234"],
      ["/guardrails/reverted", "Edit", "timeout_ms", "1234"],
      ["/studio", "Change", "base_url", "https://mine.example"]
    ] as const
    for (const [address, button, field, mine] of forms) {
      const { page, problems } = await portal.open(address)
      // there is no studio at this address, and for a moment after the Undo the page does not know that none is connected
      problems.expect(/^(409|502) GET .*studio\/services/)
      const value = async () => {
        await edit(button)(page)
        return labelled(page, field).inputValue()
      }
      const before = await value()
      await labelled(page, field).fill(mine)
      await page.getByRole("button", { name: "Show the difference" }).click()
      await page
        .getByRole("dialog", { name: /^Change / })
        .getByRole("button", { name: "Change", exact: true })
        .click()
      await page.getByRole("button", { name: "Undo", exact: true }).click()
      await page.getByText("It is as it was.").waitFor()
      assert.strictEqual(await value(), before, address)
      await page.close()
    }
  })

  it("is not undone once somebody else has changed it again", async () => {
    const made = await portal.gateway.operate("POST", "/providers", {
      provider: "internal-service",
      name: "changed twice",
      base_url: "https://first.example"
    })
    const path = `/providers/${memberOf(made, "id")}`
    const { page, problems } = await portal.open("/upstreams")
    problems.expect(/^409 PATCH /)
    await edit("Edit changed twice")(page)
    await labelled(page, "base_url").fill("https://mine.example")
    await page.getByRole("button", { name: "Show the difference" }).click()
    await page
      .getByRole("dialog", { name: "Change changed twice" })
      .getByRole("button", { name: "Change", exact: true })
      .click()
    const undo = page.getByRole("button", { name: "Undo", exact: true })
    await undo.waitFor()
    await portal.gateway.operate("PATCH", path, { base_url: "https://theirs.example" })
    await undo.click()
    await page.getByText(/^Somebody changed this at /).waitFor()
    assert.strictEqual(memberOf(await portal.gateway.operate("GET", path), "base_url"), "https://theirs.example")
  })

  it("is the price of a model, which is new or known", async () => {
    const { page, problems } = await portal.open("/models?do=price")
    problems.expect(/^409 PUT /)
    const path = "/model-prices/shared-model"
    await labelled(page, "model").fill("shared-model")
    const mine = async (input: string, title: string, action: string) => {
      await labelled(page, "input_usd_per_million").fill(input)
      await labelled(page, "output_usd_per_million").fill("9")
      const { updated_at } = Object(
        await portal.gateway.operate("PUT", path, { input_usd_per_million: 2, output_usd_per_million: 4 })
      )
      assert.isString(updated_at)
      await page.getByRole("button", { name: "Show the difference" }).click()
      const dialog = page.getByRole("dialog", { name: title })
      await dialog.getByRole("button", { name: action, exact: true }).click()
      await dialog.getByRole("heading", { name: "What they changed" }).waitFor()
      assert.strictEqual(memberOf(await portal.gateway.operate("GET", path), "input_usd_per_million"), 2)
      await dialog.getByRole("button", { name: "Apply mine to the new version" }).click()
      await page.getByText("The price of shared-model is set.").first().waitFor()
      assert.strictEqual(memberOf(await portal.gateway.operate("GET", path), "input_usd_per_million"), Number(input))
    }
    await mine("1", "Set the price of shared-model", "Set")
    await page.getByRole("button", { name: "Undo", exact: true }).click()
    await page.getByText("It is as it was.").waitFor()
    assert.strictEqual(memberOf(await portal.gateway.operate("GET", path), "output_usd_per_million"), 4)
    await page.goto(`${portal.gateway.control}/admin-ui/models?do=price&model=shared-model`)
    await mine("3", "Change the price of shared-model", "Change")
  })

  it("is a new price, which Undo does not delete once somebody else has changed it", async () => {
    const { page, problems } = await portal.open("/models?do=price")
    problems.expect(/^409 DELETE /)
    const path = "/model-prices/undone-late"
    await labelled(page, "model").fill("undone-late")
    await labelled(page, "input_usd_per_million").fill("1")
    await labelled(page, "output_usd_per_million").fill("9")
    await page.getByRole("button", { name: "Show the difference" }).click()
    const dialog = page.getByRole("dialog", { name: "Set the price of undone-late" })
    await dialog.getByRole("button", { name: "Set", exact: true }).click()
    const undo = page.getByRole("button", { name: "Undo", exact: true })
    await undo.waitFor()
    await portal.gateway.operate("PUT", path, { input_usd_per_million: 2, output_usd_per_million: 4 })
    await undo.click()
    await page.getByText(/^Somebody changed this at /).waitFor()
    assert.strictEqual(memberOf(await portal.gateway.operate("GET", path), "input_usd_per_million"), 2)
  })

  it("is read again if that failed", async () => {
    const made = await portal.gateway.operate("POST", "/providers", {
      provider: "internal-service",
      name: "unread",
      base_url: "https://first.example"
    })
    const { answer, page, problems } = await portal.open("/upstreams")
    problems.expect(/^409 PATCH /)
    await edit("Edit unread")(page)
    await page.getByLabel("base_url").fill("https://mine.example")
    await page.getByRole("button", { name: "Show the difference" }).click()
    await portal.gateway.operate("PATCH", `/providers/${memberOf(made, "id")}`, { base_url: "https://theirs.example" })
    const takeBack = await answer("/admin/providers", { status: 503 })
    const dialog = page.getByRole("dialog", { name: "Change unread" })
    const change = dialog.getByRole("button", { name: "Change", exact: true })
    await change.click()
    await dialog.getByText("Something broke.").waitFor()
    await takeBack()
    await change.click()
    await dialog.getByRole("heading", { name: "What they changed" }).waitFor()
    assert.include(await dialog.innerText(), "https://theirs.example")
  })

  it("is a guardrail", async () => {
    await portal.gateway.operate("POST", "/guardrails", {
      name: "shared",
      endpoint_url: "http://127.0.0.1:9/check",
      failure_policy: "fail_open",
      enabled: false
    })
    await changeAtOnce(portal, "/guardrails/shared", {
      path: "/guardrails/shared",
      form: edit("Edit"),
      field: "description",
      theirs: "their words",
      mine: "my words",
      secret: "bearer_token"
    })
    const stored = await portal.gateway.operate("GET", "/guardrails/shared")
    assert.strictEqual(memberOf(stored, "description"), "my words")
  })

  it("are the identities of callers, which were not stored before", async () => {
    const path = "/auth/front-door"
    await changeAtOnce(portal, "/settings", {
      path,
      form: edit("Change"),
      field: "required_role",
      theirs: "Their.Role",
      mine: "My.Role",
      secret: "trusted_gateway_header_secret"
    })
    const { identity_provider } = Object(await portal.gateway.operate("GET", path))
    assert.strictEqual(memberOf(identity_provider, "required_role"), "My.Role")
  })

  it("is a route, and what is undone is the change to the version of the other one", async () => {
    const timeout = async () => {
      const routes = await portal.gateway.operate("GET", "/family-a-routes")
      assert(Array.isArray(routes))
      return memberOf(
        routes.find((route) => memberOf(route, "route_id") === "embeddings"),
        "timeout_ms"
      )
    }
    const { page } = await changeAtOnce(portal, "/routes", {
      path: "/family-a-routes/embeddings/config",
      form: edit("Edit /v1/embeddings"),
      field: "timeout_ms",
      theirs: 4321,
      mine: "1234"
    })
    assert.strictEqual(await timeout(), 1234)
    await page.getByRole("button", { name: "Undo", exact: true }).click()
    await page.getByText("It is as it was.").waitFor()
    assert.strictEqual(await timeout(), 4321)
  })

  it("is the wildcard", async () => {
    const path = "/providers/upstream-passthrough"
    await changeAtOnce(portal, "/upstreams?tab=passthrough", {
      path,
      form: edit("Change"),
      field: "timeout_ms",
      theirs: 4321,
      mine: "1234"
    })
    assert.strictEqual(memberOf(await portal.gateway.operate("GET", path), "timeout_ms"), 1234)
  })

  it("are all routes, of which the other one has changed one", async () => {
    const { both, page } = await changeAtOnce(portal, "/routes", {
      path: "/family-b-routes/models/config",
      form: edit("Change all routes"),
      field: "timeout_ms",
      theirs: 4321,
      mine: "1234"
    })
    assert.match(both, /4321: [\w, -]*models/)
    for (const family of ["family-a-routes", "family-b-routes"]) {
      const routes = await portal.gateway.operate("GET", `/${family}`)
      assert(Array.isArray(routes))
      assert.deepStrictEqual([...new Set(routes.map((route) => memberOf(route, "timeout_ms")))], [1234])
    }
    await page.getByRole("button", { name: "Undo", exact: true }).click()
    await page.getByText("It is as it was.").waitFor()
    const routes = await portal.gateway.operate("GET", "/family-b-routes")
    assert(Array.isArray(routes))
    const others = routes.filter((route) => memberOf(route, "timeout_ms") !== 4321)
    assert.deepStrictEqual(
      [routes.length - others.length, others.map((route) => memberOf(route, "timeout_ms")).includes(1234)],
      [1, false]
    )
  })

  it("is the connection to the studio, which was not stored before", async () => {
    const path = "/studio/connection"
    await changeAtOnce(portal, "/studio", {
      path,
      form: edit("Change"),
      field: "base_url",
      theirs: "https://theirs.example",
      mine: "https://mine.example",
      secret: "token",
      fails: /^502 GET .*studio\/services/
    })
    assert.strictEqual(memberOf(await portal.gateway.operate("GET", path), "base_url"), "https://mine.example")
  })
})
