import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal } from "../PortalBrowser.ts"

/** Types the name by which a dialog has its change confirmed. */
const typeName = async (page: Page) => {
  const field = page.getByLabel(/^Type “.*” to confirm$/)
  const label = await page.getByText(/^Type “.*” to confirm$/).innerText()
  await field.fill(/“(.*)”/.exec(label)?.[1] ?? "")
}

describePortal("Policies", (portal) => {
  const layerOf = async (team: string): Promise<unknown> =>
    Object(await portal.gateway.operate("GET", `/policy-layers?kind=team&scope_id=${team}`))[0]

  it("are layers that are made after their impact was seen, switched off, deleted, and restored", async () => {
    const { answer, page } = await portal.open("/policies?do=create")
    const form = page.getByRole("dialog")
    await form.getByLabel("Team", { exact: true }).fill("red")
    await form.getByRole("textbox", { name: "Requests a minute rpm_limit" }).first().fill("7")
    await form.getByRole("button", { name: "See whom it hits" }).click()
    await page.getByText("No usable key is under this layer yet.").waitFor()
    await page.getByRole("button", { name: "Create it" }).click()
    const drawer = page.getByRole("dialog", { name: /Policy layer/ })
    await drawer.getByRole("button", { name: "Switch off" }).click()
    await page.getByRole("button", { name: "Change it" }).click()
    await drawer.getByRole("button", { name: "Switch on" }).waitFor()
    await drawer.getByRole("button", { name: "Delete" }).click()
    await page.getByLabel("Type “red” to confirm").fill("red")
    await page.getByRole("button", { name: "Delete it" }).click()
    await page.getByText("The layer of team red is deleted.").waitFor()
    await page.getByRole("tab", { name: "Deleted" }).click()
    const row = page.getByRole("row").filter({ hasText: "team red" })
    const takeBack = await answer("/admin/policy-layers", { status: 503, message: "The layers cannot be read." })
    await row.getByRole("button", { name: "Restore" }).click()
    await page.getByText("The layers cannot be read.").waitFor()
    await takeBack()
    await row.getByRole("button", { name: "Restore" }).click()
    const review = page.getByRole("dialog", { name: "Create the layer" })
    await review.getByRole("button", { name: "Create it" }).click()
    await review.waitFor({ state: "hidden" })
    // it was off when it was deleted
    const restored = await layerOf("red")
    assert.deepInclude(restored, { enabled: false })
    assert.deepInclude(Object(restored).policy, { rpm_limit: 7 })
    await row.getByRole("link", { name: /^#\d+$/ }).click()
    await page
      .getByRole("dialog", { name: /^Event \d+/ })
      .getByText("policies:delete-layer")
      .waitFor()
  })

  it("that exist already are shown to whoever wants to create them, and only what was set changes", async () => {
    await portal.gateway.operate("POST", "/policy-layers", {
      kind: "team",
      scope_id: "taken",
      policy: { rpm_limit: 5, max_requests_per_day: 100 }
    })
    const { page } = await portal.open("/policies?do=create")
    const form = page.getByRole("dialog")
    await form.getByLabel("Team", { exact: true }).fill("taken")
    await form.getByRole("textbox", { name: "rpm_limit" }).first().fill("7")
    await form.getByRole("button", { name: "See whom it hits" }).click()
    const review = page.getByRole("dialog", { name: "Change the layer of team taken" })
    await review.getByText("There is such a layer already.").waitFor()
    assert.match(await review.getByRole("list").first().innerText(), /rpm_limit\s+5\s+→\s+7/)
    await review.getByRole("button", { name: "Change it" }).click()
    await page.getByText("The layer of team taken is changed.").waitFor()
    assert.deepInclude(Object(await layerOf("taken")).policy, { rpm_limit: 7, max_requests_per_day: 100 })
    await page.getByRole("button", { name: "Undo" }).click()
    await page.getByText("It is as it was.").waitFor()
    assert.deepInclude(Object(await layerOf("taken")).policy, { rpm_limit: 5, max_requests_per_day: 100 })
  })

  it("that two people create at once show both versions to the second", async () => {
    const { axe, page, problems } = await portal.open("/policies?do=create")
    problems.expect(/^409 POST /)
    const form = page.getByRole("dialog")
    await form.getByLabel("Team", { exact: true }).fill("both")
    await form.getByRole("textbox", { name: "rpm_limit" }).first().fill("7")
    await form.getByRole("button", { name: "See whom it hits" }).click()
    const review = page.getByRole("dialog", { name: "Create the layer" })
    await review.getByRole("button", { name: "Create it" }).waitFor()
    await portal.gateway.operate("POST", "/policy-layers", {
      kind: "team",
      scope_id: "both",
      policy: { rpm_limit: 3, max_requests_per_day: 100 }
    })
    await review.getByRole("button", { name: "Create it" }).click()
    await review.getByRole("heading", { name: "What they changed" }).waitFor()
    assert.match(await review.innerText(), /policy\.max_requests_per_day\s+not set\s+→\s+100/)
    assert.match(await review.innerText(), /policy\.rpm_limit\s+3\s+→\s+7/)
    assert.deepStrictEqual(await axe(), [])
    await review.getByRole("button", { name: "Apply mine to the new version" }).click()
    await page.getByText("The layer of team both is changed.").waitFor()
    assert.deepInclude(Object(await layerOf("both")).policy, { rpm_limit: 7, max_requests_per_day: 100 })
  })

  it("that cannot be read are not taken for absent when a change is tried out", async () => {
    await portal.gateway.operate("POST", "/policy-layers", { kind: "team", scope_id: "slow", policy: { rpm_limit: 5 } })
    const { answer, page } = await portal.open("/policies?do=create")
    const takeBack = await answer("/admin/policy-layers", { status: 503, message: "The layers cannot be read." })
    await page.goto(`${portal.gateway.control}/admin-ui/policies/simulate?kind=team&scope=slow&model=claude-sonnet-5`)
    assert.include(await page.getByRole("textbox", { name: "Body" }).inputValue(), "claude-sonnet-5")
    const change = page.getByRole("region", { name: "The change" })
    await change.getByText("The layers cannot be read.").waitFor()
    assert.notInclude(await change.innerText(), "it would be made")
    await takeBack()
    await change.getByRole("button", { name: "Try again" }).click()
    await change.getByText("The layer as it is, with these changes:").waitFor()
    await change.getByLabel("Team", { exact: true }).fill("slowest")
    await change.getByText("There is no such layer yet: it would be made.").waitFor()
  })

  it("are tried out with all that a simulation takes", async () => {
    const { axe, page } = await portal.open("/policies/simulate")
    await portal.gateway.operate("POST", "/policy-layers", {
      kind: "team",
      scope_id: "heavy",
      policy: { max_request_body_bytes: 1_000 }
    })
    const request = page.getByRole("region", { name: "The request" })
    await request.getByText("More", { exact: true }).click()
    await request.getByLabel("team_id").fill("heavy")
    await request.getByRole("combobox", { name: "preset" }).click()
    await page.getByRole("option", { name: "developer" }).click()
    await request.getByRole("combobox", { name: "provider" }).click()
    await page.getByRole("option", { name: "upstream" }).click()
    await request.getByLabel("request_body_bytes").fill("2000")
    await request.getByRole("combobox", { name: "mandatory_guardrails" }).click()
    await page.getByRole("option", { name: "pii-redact" }).click()
    await page.keyboard.press("Escape")
    assert.deepStrictEqual(await axe(), [])
    const [sent] = await Promise.all([
      page.waitForRequest(/policy\/simulate/),
      page.getByRole("button", { name: "Decide", exact: true }).click()
    ])
    assert.deepInclude(sent.postDataJSON(), {
      team_id: "heavy",
      preset: "developer",
      provider: "upstream",
      request_body_bytes: 2_000,
      guardrail_policy: { mandatory_guardrails: ["pii-redact"] }
    })
    const decision = page.getByRole("region", { name: "Decision" })
    await decision.getByText("refused").first().waitFor()
    await decision.getByText("team:heavy").first().waitFor()
    // what is emptied is sent no more
    await request.getByLabel("request_body_bytes").fill("")
    await request.getByLabel("team_id").fill("")
    const [again] = await Promise.all([
      page.waitForRequest(/policy\/simulate/),
      page.getByRole("button", { name: "Decide", exact: true }).click()
    ])
    assert.doesNotHaveAnyKeys(again.postDataJSON(), ["team_id", "request_body_bytes"])
  })

  it("are tried out with other shared limits and guardrails, and changed so", async () => {
    await portal.gateway.operate("POST", "/policy-layers", {
      kind: "team",
      scope_id: "sharing",
      policy: { rpm_limit: 5 },
      shared: { rpm_limit: 50, monthly_budget_usd: 10 }
    })
    const key = Object(
      await portal.gateway.operate("POST", "/keys", { name: "sharer", owner_type: "individual", team_id: "sharing" })
    ).key
    for (const view of [{ width: 360 }, { width: 360, scheme: "dark" }, { scheme: "dark" }, {}] as const) {
      const { axe, page } = await portal.open(`/policies/simulate?key_id=${key.id}&kind=team&scope=sharing`, view)
      const change = page.getByRole("region", { name: "The change" })
      await change.getByText("The layer as it is, with these changes:").waitFor()
      await change.getByRole("combobox", { name: "Change a shared limit" }).click()
      assert.strictEqual(await page.getByRole("option", { name: "allowed_models" }).count(), 0)
      await page.getByRole("option", { name: "rpm_limit" }).click()
      await change.getByText("now: 50").waitFor()
      await change.getByRole("textbox", { name: "rpm_limit" }).fill("0")
      await change.getByRole("combobox", { name: "mandatory_guardrails" }).click()
      await page.getByRole("option", { name: "pii-redact" }).click()
      await page.keyboard.press("Escape")
      const [asked] = await Promise.all([
        page.waitForRequest((request) => /policy\/simulate/.test(request.url()) && request.postDataJSON().layer),
        page.getByRole("button", { name: "Decide now, and with the change" }).click()
      ])
      const proposed = asked.postDataJSON().layer
      assert.deepInclude(proposed.shared, { rpm_limit: 0, monthly_budget_usd: 10 })
      assert.deepInclude(proposed.policy, { rpm_limit: 5 })
      assert.deepStrictEqual(proposed.guardrail_policy.mandatory_guardrails, ["pii-redact"])
      const differs = page.getByRole("region", { name: "What differs in force" })
      assert.match(await differs.innerText(), /shared\.team:sharing\.rpm_limit\s+50\s+→\s+0/)
      assert.match(await differs.innerText(), /guardrail_plan\s+\[\]\s+→\s+\["pii-redact"\]/)
      await page.getByRole("region", { name: "With the change" }).getByText("refused", { exact: true }).waitFor()
      assert.deepStrictEqual(await axe(), [])
      const width = "width" in view ? view.width : 1280
      assert.isAtMost(await page.evaluate<number>("document.documentElement.scrollWidth"), width)
      if ("width" in view || "scheme" in view) continue
      await page.getByRole("button", { name: "Make this change" }).click()
      const review = page.getByRole("dialog", { name: "Change the layer of team sharing" })
      assert.match(await review.getByRole("list").first().innerText(), /shared\.rpm_limit\s+50\s+→\s+0/)
      await review.getByRole("button", { name: "Change it" }).click()
      await page.getByText("The layer of team sharing is changed.").waitFor()
      // what was decided before the change is not "now" any more
      await differs.waitFor({ state: "detached" })
    }
    const layer = Object(await layerOf("sharing"))
    assert.deepInclude(layer.policy, { rpm_limit: 5 })
    assert.deepInclude(layer.shared, { rpm_limit: 0, monthly_budget_usd: 10 })
    assert.deepInclude(layer.guardrail_policy, { mandatory_guardrails: ["pii-redact"] })
  })

  it("are tried out on the layer that is chosen, keep what another person changes meanwhile, and wait for readable text", async () => {
    const layer = (scope_id: string, ...mandatory_guardrails: ReadonlyArray<string>) =>
      portal.gateway.operate("POST", "/policy-layers", {
        kind: "team",
        scope_id,
        guardrail_policy: { mandatory_guardrails }
      })
    await layer("first", "pii-redact")
    await layer("second")
    const { page, problems } = await portal.open("/policies/simulate?kind=team&scope=first")
    problems.expect(/^409 PATCH/)
    const change = page.getByRole("region", { name: "The change" })
    const mandatory = change.getByRole("combobox", { name: "mandatory_guardrails" })
    const optional = change.getByRole("combobox", { name: "optional_guardrails" })
    const pick = async () => {
      await optional.click()
      await page.getByRole("option", { name: "pii-redact" }).click()
      await page.keyboard.press("Escape")
    }
    await mandatory.waitFor()
    await pick()
    // the lists of one layer are no change of another one
    await change.getByRole("textbox", { name: "Team" }).fill("second")
    await change.getByText("The layer as it is, with these changes:").waitFor()
    await page.getByRole("button", { name: "Decide", exact: true }).waitFor()
    await pick()
    await page.getByRole("button", { name: "Decide now, and with the change" }).waitFor()

    const overrides = change.getByRole("textbox", { name: "guardrail_config_overrides" })
    await overrides.fill('{"pii-redact": {')
    const make = page.getByRole("button", { name: "Make this change" })
    await make.click()
    assert.strictEqual(await page.getByRole("dialog").count(), 0)
    await overrides.fill("{}")

    await layer("second", "pii-redact")
    await make.click()
    await page.getByRole("dialog").getByRole("button", { name: "Change it" }).click()
    await page.getByText("Somebody else changed this").waitFor()
    assert.deepInclude(Object(await layerOf("second")).guardrail_policy, {
      mandatory_guardrails: ["pii-redact"],
      optional_guardrails: []
    })
  })

  it("are tried out by whoever may not see the catalogue of guardrails, too", async () => {
    const { axe, page } = await portal.open("/policies/simulate?kind=global", { scopes: ["policies:update"] })
    const change = page.getByRole("region", { name: "The change" })
    const list = change.getByRole("combobox", { name: "forbidden_guardrails" })
    await list.fill("pii-redact")
    await list.press("Enter")
    assert.deepStrictEqual(await axe(), [])
    await page.getByRole("button", { name: "Decide now, and with the change" }).click()
    await page.getByRole("region", { name: "With the change" }).waitFor()
  })

  it("show what is effective for a key, whose name is shown as text and is no search", async () => {
    const key = Object(
      await portal.gateway.operate("POST", "/keys", { name: "a\u202Eb", owner_type: "individual" })
    ).key
    const searches: Array<string | null> = []
    const { page } = await portal.open("/policies")
    page.on("request", (request) => {
      const { pathname, searchParams } = new URL(request.url())
      if (pathname.endsWith("/admin/keys")) searches.push(searchParams.get("q"))
    })
    await page.goto(`${portal.gateway.control}/admin-ui/policies?tab=effective&key_id=${key.id}`)
    const field = page.getByRole("combobox", { name: "Key" })
    await eventuallyTrue(async () => (await field.inputValue()) === "aU+202Eb")
    // a search follows what is typed after a moment
    await page.waitForTimeout(500)
    await field.fill("no such key")
    await eventuallyTrue(async () => searches.includes("no such key"))
    assert.deepStrictEqual([...new Set(searches)], [null, "no such key"])
  })

  it("show what is effective for a project, in both colours and on a phone", async () => {
    const made = await portal.gateway.operate("POST", "/projects", { name: "<b>Blue</b>" })
    const id = typeof made === "object" && made !== null && "id" in made ? String(made.id) : ""
    const typing = await portal.open("/policies?tab=effective")
    const asked: Array<string> = []
    typing.page.on("request", (request) => {
      if (request.url().includes("/policy/effective")) asked.push(request.url())
    })
    const team = typing.page.getByLabel("Team", { exact: true })
    await team.pressSequentially("blueberries")
    await typing.page.waitForURL(/team_id=blueberries/)
    assert.strictEqual(await team.inputValue(), "blueberries")
    assert.isBelow(asked.length, "blueberries".length)
    await portal.gateway.operate("POST", "/policy-layers", {
      kind: "project",
      scope_id: id,
      policy: { max_tokens_per_day: 1000 }
    })
    for (const view of [{ width: 360 }, { scheme: "dark" }] as const) {
      const { axe, page } = await portal.open(`/policies?tab=effective&project_id=${id}`, view)
      await page.getByRole("row").filter({ hasText: "max_tokens_per_day" }).getByText("<b>Blue</b>").waitFor()
      assert.deepStrictEqual(await axe(), [])
      assert.isAtMost(await page.evaluate<number>("document.documentElement.scrollWidth"), view.width ?? 1280)
    }
  })
})

describePortal("Projects and operators", (portal) => {
  it("have no usage where it cannot be read", async () => {
    await portal.gateway.operate("POST", "/projects", { name: "unread" })
    const { answer, page } = await portal.open("/projects")
    await page.getByRole("row").filter({ hasText: "unread" }).getByText("$0").waitFor()
    await answer(/\/usage\/by-project/, { status: 500, message: "The sums are away." })
    await page.reload()
    const row = page.getByRole("row").filter({ hasText: "unread" })
    await row.getByText("not known").first().waitFor()
    assert.strictEqual(await row.getByText("$0").count(), 0)
  })

  it("a project is made, renamed, and deleted by typing its name", async () => {
    const { axe, page, problems } = await portal.open("/projects?do=create")
    // the live feed may tell of the deletion just before the page is left
    problems.expect(/^404 GET \/admin-ui\/admin\/projects\//)
    await page.getByRole("dialog").getByLabel("Name").fill("Search")
    await page.getByRole("button", { name: "Create the project" }).click()
    await page.getByRole("heading", { name: "Search", level: 1 }).waitFor()
    assert.deepStrictEqual(await axe(), [])
    await page.getByRole("button", { name: "Edit", exact: true }).click()
    await page.getByRole("dialog").getByLabel("Name").fill("Find")
    await page.getByRole("button", { name: "See the difference" }).click()
    await page.getByRole("button", { name: "Change it" }).click()
    await page.getByRole("heading", { name: "Find", level: 1 }).waitFor()
    await page.getByRole("button", { name: "More actions" }).click()
    await page.getByRole("menuitem", { name: "Delete" }).click()
    await page.getByLabel("Type “Find” to confirm").fill("Find")
    await page.getByRole("button", { name: "Delete it" }).click()
    await page.getByRole("heading", { name: "Projects", level: 1 }).waitFor()
  })

  it("a token is made with scopes, and revoked; a refused one says at its field why", async () => {
    const { axe, page } = await portal.open("/operators?do=create")
    const form = page.getByRole("dialog")
    await form.getByLabel("Name").fill("dashboards")
    await form.getByRole("checkbox", { name: /^usage:read/ }).click()
    await form.getByRole("button", { name: "Create the token" }).click()
    const secret = (await page.getByRole("region", { name: "Secret" }).innerText()).trim()
    assert.match(secret, /^op_live_/)
    await page.getByLabel("I stored it").click()
    await page.getByRole("button", { name: "Done" }).click()
    const row = page.getByRole("row").filter({ hasText: "dashboards" })
    await row.waitFor()
    const event = page.getByRole("link", { name: "Audit event" })
    assert.match((await event.getAttribute("href")) ?? "", /target_type=operator_token&target_id=[0-9a-f-]{36}$/)
    assert.notInclude(await page.content(), secret)
    assert.deepStrictEqual(await axe(), [])
    await row.focus()
    await page.keyboard.press("Enter")
    await page.waitForURL(/open=/)
    // as other pages link to a token
    await page.reload()
    const drawer = page.getByRole("dialog", { name: /Operator token/ })
    await drawer.getByText("dashboards").waitFor()
    assert.deepStrictEqual(await axe(), [])
    await page.keyboard.press("Escape")
    await drawer.waitFor({ state: "hidden" })
    await row.getByRole("button", { name: "Revoke" }).click()
    await page.getByLabel("Type “dashboards” to confirm").fill("dashboards")
    await page.getByRole("button", { name: "Revoke for ever" }).click()
    await row.waitFor({ state: "hidden" })
  })

  it("a new secret stays until it is stored, although the session has ended with the old one", async () => {
    const token = await portal.tokenWith("operators:manage", "audit:read")
    const { answer, page, problems } = await portal.open("/operators", { token, ownSession: true })
    problems.expect(/^(?:401|503) (?:GET|POST) /)
    // the browser cannot sign in with the new secret
    const takeBack = await answer(/^\/admin-ui\/session$/, { status: 503 })
    await page.getByRole("button", { name: "Rotate your own token" }).click()
    await typeName(page)
    await page.getByRole("button", { name: "Make a new secret" }).click()
    await page.getByLabel("I stored it").waitFor()
    await takeBack()
    // whatever says that the session is over says it now
    await page.evaluate(`fetch("/admin-ui/admin/keys")`)
    assert.match(await page.getByRole("region", { name: "Secret" }).innerText(), /op_live_/)
    await page.getByLabel("I stored it").click()
    await page.getByRole("button", { name: "Done" }).click()
    await page.getByLabel("Operator token or gateway key").waitFor()
  })

  it("the own token is rotated without being signed out, and a browser is signed out by its session", async () => {
    const token = await portal.tokenWith("operators:manage", "usage:read")
    const { page, problems } = await portal.open("/operators", { token, ownSession: true })
    await page.getByRole("button", { name: "Rotate your own token" }).click()
    await typeName(page)
    await page.getByRole("button", { name: "Make a new secret" }).click()
    await page.getByLabel("I stored it").click()
    await page.getByRole("button", { name: "Done" }).click()
    await page.getByRole("row").filter({ hasText: "(you)" }).waitFor()
    const other = await portal.open("/operators?tab=sessions")
    const session = other.page.getByRole("row").filter({ hasText: "operators:manage usage:read" })
    await session.getByRole("button", { name: "Sign out" }).click()
    await other.page
      .getByRole("dialog", { name: /^Sign out a browser/ })
      .getByRole("button", { name: "Sign it out" })
      .click()
    await session.waitFor({ state: "hidden" })
    problems.expect(/^401 GET /)
    await page.getByLabel("Operator token or gateway key").waitFor()
  })
})
