import { assert, it } from "@effect/vitest"
import type { Locator, Page } from "playwright-core"
import { follow } from "../Following.ts"
import { holdAnswers } from "../HeldAnswers.ts"
import { describePortal, type Portal } from "../PortalBrowser.ts"

const hostile = `<img src=x onerror="document.title='owned'">\u202e`

const idOf = (json: unknown, ...path: ReadonlyArray<string>): string => {
  const found = path.reduce<unknown>(
    (value, step) =>
      typeof value === "object" && value !== null
        ? Object.entries(value).find(([name]) => name === step)?.[1]
        : undefined,
    json
  )
  return String(found)
}

const makeKey = async (portal: Portal, body: object): Promise<string> =>
  idOf(await portal.gateway.operate("POST", "/keys", { owner_type: "individual", ...body }), "key", "id")

/** Works through the form as somebody without a mouse does. */
const press = async (page: Page, ...keys: ReadonlyArray<string>) => {
  for (const key of keys) await page.keyboard.press(key)
}

describePortal("Keys", (portal) => {
  it("show names with markup as text, are found, and are disabled and enabled again", async () => {
    await makeKey(portal, { name: hostile, tags: ["<b>bold"], owner_email: "ada@example.com" })
    const { axe, page } = await portal.open("/keys?q=onerror")
    await page.getByText("onerror").first().waitFor()
    assert.notStrictEqual(await page.title(), "owned")
    assert.deepStrictEqual(await axe(), [])
    await page.getByRole("row").nth(1).focus()
    await press(page, "Enter")
    const drawer = page.getByRole("dialog")
    await drawer.getByRole("button", { name: "Disable" }).click()
    await page
      .getByText(/is disabled/)
      .first()
      .waitFor()
    await page.getByRole("button", { name: "Undo" }).click()
    await drawer.getByRole("button", { name: "Disable" }).waitFor()
  })

  it("are reached, read and copied without a mouse, in rows as close as a person wants them", async () => {
    for (const name of ["keyboard one", "keyboard two"])
      await makeKey(portal, { name, owner_email: `${name[9]}@k.org` })
    const { page } = await portal.open("/keys?q=keyboard")
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
    const rows = page.getByRole("table", { name: "Keys" }).locator("tbody tr")
    await rows.nth(1).waitFor()
    const focused = () => page.evaluate<string>("document.activeElement.innerText")
    const copied = () => page.evaluate<string>("navigator.clipboard.readText()")
    await press(page, "j")
    assert.include(await focused(), "keyboard two")
    await press(page, "c")
    await page.getByText("Name and prefix is copied.").waitFor()
    assert.match(await copied(), /^keyboard two\s+rk_live_/)
    await press(page, "j", "ArrowRight", "ArrowRight", "c")
    await page.getByText("State is copied.").waitFor()
    assert.strictEqual(await copied(), "active")
    await press(page, "k", "ArrowLeft")
    assert.match(await focused(), /^keyboard two\s+rk_live_/)

    const height = async () => (await rows.first().boundingBox())?.height ?? 0
    const before = await height()
    await page.getByRole("button", { name: "Columns, rows, CSV" }).click()
    await page.getByRole("menuitemradio", { name: "Compact rows" }).click()
    await page.reload()
    await rows.first().waitFor()
    assert.isBelow(await height(), before)
  })

  it("are made with services of their own, and the list has these and their policy where they are asked for", async () => {
    await portal.gateway.operate("POST", "/services", { name: "search-service" })
    const { page } = await portal.open("/keys/new")
    await page.getByLabel("Name").fill("with a service")
    await page.getByRole("combobox", { name: "Services" }).click()
    await page.getByRole("option", { name: "search-service" }).click()
    await page.getByRole("button", { name: "To the review" }).click()
    await page.getByText("search-service", { exact: true }).waitFor()
    await page.getByRole("button", { name: "Create the key" }).click()
    await page.getByRole("heading", { name: "with a service is ready" }).waitFor()
    await page.getByLabel("I stored it").click()
    await page.getByRole("button", { name: "Done: go to the key" }).click()
    await page.goto(`${portal.gateway.control}/admin-ui/keys?q=service`)
    await page.getByRole("button", { name: "Columns, rows, CSV" }).click()
    await page.getByRole("menuitemcheckbox", { name: "Services" }).click()
    await page.getByRole("menuitemcheckbox", { name: "Own policy" }).click()
    await page.keyboard.press("Escape")
    const row = page.getByRole("table", { name: "Keys" }).locator("tbody tr").first()
    await row.getByText("search-service", { exact: true }).waitFor()
    await row.getByText(/rpm_limit \d+/).waitFor()
  })

  it("are not changed while the text of their guardrails means nothing", async () => {
    const id = await makeKey(portal, { name: "with overrides" })
    const { page } = await portal.open(`/keys/${id}?tab=guardrails`)
    await page.getByRole("button", { name: "Edit its own" }).click()
    const form = page.getByRole("dialog")
    const overrides = form.getByLabel("guardrail_config_overrides")
    await overrides.fill('{"pii-redact":{"restore_output":false}}')
    await overrides.fill('{"pii-redact":')
    await form.getByRole("button", { name: "See the difference" }).click()
    assert.isTrue(await overrides.evaluate((one) => one.matches(":invalid")))
    await overrides.waitFor()
    await overrides.fill('{"pii-redact":{}}')
    await form.getByRole("button", { name: "See the difference" }).click()
    await overrides.waitFor({ state: "hidden" })
    await page.getByRole("dialog").getByRole("status").waitFor()
  })

  it("are read again each minute, and say how old they are while they are not", async () => {
    await makeKey(portal, { name: "of the table" })
    // whoever may not read the audit log hears of no change
    const { page } = await portal.open("/keys", { scopes: ["operators:manage", "usage:read"] })
    await page.clock.install()
    await page.reload()
    await page.getByRole("table", { name: "Keys" }).waitFor()
    await page.getByRole("button", { name: "live", exact: true }).waitFor()
    await makeKey(portal, { name: "of somebody else" })
    await page.clock.fastForward("01:05")
    await page.getByText("of somebody else").waitFor()
    await press(page, "l")
    await page.getByRole("button", { name: "paused", exact: true }).waitFor()
    let reads = 0
    page.on("request", (request) => {
      if (/\/admin\/keys\?/.test(request.url())) reads++
    })
    await page.clock.fastForward("05:00")
    await page
      .getByText(/^5 min.* old$/)
      .first()
      .waitFor()
    assert.strictEqual(reads, 0)
  })

  it("say what holds and which layer set it, and a change shows whom it hits before it is made", async () => {
    await portal.gateway.operate("POST", "/policy-layers", {
      kind: "team",
      scope_id: "blue",
      policy: { rpm_limit: 20 }
    })
    const id = await makeKey(portal, { name: "under a team", team_id: "blue", policy: { rpm_limit: 90 } })
    const { axe, page } = await portal.open(`/keys/${id}?tab=policy`)
    const row = page.getByRole("row").filter({ hasText: "rpm_limit" })
    await row.getByText("team blue").waitFor()
    assert.include(await row.innerText(), "20")
    await page.getByRole("button", { name: "Edit its own policy" }).click()
    const form = page.getByRole("dialog")
    await form.getByRole("textbox", { name: "rpm_limit" }).fill("10")
    await form.getByRole("button", { name: "See the difference" }).click()
    await page.getByText("its rpm_limit falls from 20 to 10").waitFor()
    assert.deepStrictEqual(await axe(), [])
    await page.getByRole("button", { name: "Change it" }).click()
    await page.getByText("is changed.").waitFor()
    await row.getByText("this key").waitFor()
    assert.match(
      (await page.getByRole("link", { name: "Audit event" }).getAttribute("href")) ?? "",
      new RegExp(`target_type=key&target_id=${id}$`)
    )
    await page.getByRole("button", { name: "Undo" }).click()
    await page.getByText("It is as it was.").waitFor()
    const policy = Object(await portal.gateway.operate("GET", `/keys/${id}`)).policy
    assert.deepInclude(policy, { rpm_limit: 90 })
  })

  it("say in the form what the server refuses, and why an Undo has failed, with no link that the token lacks", async () => {
    const id = await makeKey(portal, { name: "refused" })
    const { answer, page } = await portal.open(`/keys/${id}`, {
      scopes: ["operators:manage", "policies:update", "keys:disable"]
    })
    await page.getByRole("button", { name: "Edit", exact: true }).click()
    await page.getByLabel("rotation_due_at").fill("2030-01-01T00:00")
    await page.getByRole("button", { name: "See the difference" }).click()
    const message = "It is after the end of the key."
    const takeBack = await answer(`/admin/keys/${id}`, {
      status: 400,
      body: { error: { code: "invalid_key_payload", message, param: "rotation_due_at" } }
    })
    await page.getByRole("button", { name: "Change it" }).click()
    await page.getByRole("dialog", { name: "Edit refused" }).getByText(message).waitFor()
    await takeBack()
    await page.getByRole("button", { name: "Cancel" }).click()
    await page.getByRole("button", { name: "Disable", exact: true }).click()
    await page.getByText("refused is disabled.").waitFor()
    assert.strictEqual(await page.getByRole("link", { name: "Audit event" }).count(), 0)
    await answer(`/admin/keys/${id}/enable`, { status: 503, message: "The database is away." })
    await page.getByRole("button", { name: "Undo" }).click()
    await page.getByText("The database is away.").waitFor()
  })

  it("move to a project by its id where a token may not search for projects", async () => {
    const id = await makeKey(portal, { name: "moving" })
    const project = idOf(await portal.gateway.operate("POST", "/projects", { name: "its new home" }), "id")
    const { axe, page } = await portal.open(`/keys/${id}`, {
      scopes: ["operators:manage", "keys:create", "policies:update"]
    })
    await page.getByRole("button", { name: "More actions" }).click()
    await page.getByRole("menuitem", { name: "Move to another project" }).click()
    const dialog = page.getByRole("dialog", { name: "Move moving" })
    await dialog.getByLabel("Project").fill(project)
    await dialog.getByText("usage:read").waitFor()
    assert.deepStrictEqual(await axe(), [])
    await page.getByRole("button", { name: "See the difference" }).click()
    await page.getByRole("button", { name: "Change it" }).click()
    await page.getByText("moving is moved.").waitFor()
    assert.strictEqual(idOf(await portal.gateway.operate("GET", `/keys/${id}`), "project_id"), project)
  })

  it("get a new secret, and the old one is stopped before its grace is over", async () => {
    const key = await makeKey(portal, { name: "leaked" })
    await portal.gateway.operate("POST", `/keys/${key}/rotate`, { grace_seconds: 3600 })
    const { page } = await portal.open(`/keys/${key}`)
    await page.getByRole("button", { name: "More actions" }).click()
    await page.getByRole("menuitem", { name: "Stop the old secret now" }).click()
    await page.getByRole("button", { name: "Stop it", exact: true }).click()
    await page.getByText("The old secret does not work any more.").waitFor()
    await page.getByRole("button", { name: "More actions" }).click()
    await page.getByRole("menuitem", { name: "Revoke for ever" }).waitFor()
    assert.strictEqual(await page.getByRole("menuitem", { name: "Stop the old secret now" }).count(), 0)
  })

  it("get a new secret that neither leaving nor a slow list takes away", async () => {
    const key = await makeKey(portal, { name: "rotated" })
    const { page } = await portal.open("/keys/changes")
    await follow(page, `/keys/${key}`)
    await page.getByRole("button", { name: "Rotate", exact: true }).click()
    const answerRotation = await holdAnswers(page, /\/rotate$/)
    const answerReads = await holdAnswers(page, /\/admin\/keys(\?|\/[^/]*$)/)
    const asked = page.waitForRequest(/\/rotate$/)
    await page.getByRole("button", { name: "Make a new secret" }).click()
    await asked
    await page.keyboard.press("Escape")
    await page.getByRole("dialog", { name: "Rotate rotated" }).waitFor()
    answerRotation()
    await page.getByRole("region", { name: "Secret", exact: true }).waitFor()
    await page.goBack()
    await page.getByText("Store the new secret first").waitFor()
    await page.getByLabel("I stored it").check()
    await page.getByRole("button", { name: "Done" }).click()
    await page.getByRole("region", { name: "Secret", exact: true }).waitFor({ state: "hidden" })
    assert.match(
      (await page.getByRole("link", { name: "Audit event" }).getAttribute("href")) ?? "",
      new RegExp(`target_type=key&target_id=${key}$`)
    )
    answerReads()
    await page.goBack()
    await page.getByRole("heading", { name: "Bulk key changes" }).waitFor()
  })

  it("lose their old secret at once only where their name is typed", async () => {
    const key = await makeKey(portal, { name: "at once" })
    await makeKey(portal, { name: "at once too" })
    const atOnce = async (page: Page, dialog: Locator) => {
      await dialog.getByRole("combobox", { name: "The old secret stops working" }).click()
      await page.getByRole("option", { name: "at once" }).click()
      await dialog.getByText("Whoever has the old secret is refused").waitFor()
    }
    const { page } = await portal.open(`/keys/${key}`)
    await page.getByRole("button", { name: "Rotate", exact: true }).click()
    const dialog = page.getByRole("dialog", { name: "Rotate at once" })
    await atOnce(page, dialog)
    const rotate = dialog.getByRole("button", { name: "Make a new secret" })
    assert.isTrue(await rotate.isDisabled())
    await dialog.getByLabel("Type “at once” to confirm").fill("at once")
    await rotate.click()
    await page.getByText("The old secret does not work any more.").waitFor()

    const { page: list } = await portal.open("/keys?q=at+once")
    await list.getByLabel("Select all rows that are shown").click()
    await list.getByRole("button", { name: "Rotate", exact: true }).click()
    const many = list.getByRole("dialog", { name: "Rotate 2 keys" })
    await atOnce(list, many)
    assert.isTrue(await many.getByRole("button", { name: "Rotate 2" }).isDisabled())
    await many.getByLabel("Type “2 keys” to confirm").fill("2 keys")
    await many.getByRole("button", { name: "Rotate 2" }).click()
    await many.getByRole("button", { name: "Download the new secrets" }).waitFor()
  })

  it("that two people change at once show both versions to the second", async () => {
    const id = await makeKey(portal, { name: "shared", owner_email: "ada@example.com" })
    const { page, problems } = await portal.open(`/keys/${id}`)
    problems.expect(/^409 PATCH /)
    await page.getByRole("button", { name: "Edit", exact: true }).click()
    await page.getByRole("dialog").getByLabel("Owner").fill("mine@example.com")
    await portal.gateway.operate("PATCH", `/keys/${id}`, { owner_email: "theirs@example.com" })
    await page.getByRole("button", { name: "See the difference" }).click()
    await page.getByRole("button", { name: "Change it" }).click()
    await page.getByRole("heading", { name: "What they changed" }).waitFor()
    const both = await page.getByRole("dialog").innerText()
    assert.include(both, "theirs@example.com")
    assert.include(both, "mine@example.com")
    await page.getByRole("button", { name: "Apply mine to the new version" }).click()
    await page.getByText("is changed.").waitFor()
    assert.strictEqual(idOf(await portal.gateway.operate("GET", `/keys/${id}`), "owner_email"), "mine@example.com")
  })

  it("that match are tagged by a change that goes on by itself, and it is undone", async () => {
    await Promise.all(
      Array.from({ length: 105 }, (_, place) => makeKey(portal, { name: `fleet ${place}`, tags: ["fleet"] }))
    )
    const { axe, page } = await portal.open("/keys?q=fleet")
    await page.getByLabel("Select all rows that are shown").click()
    await page.getByRole("button", { name: "Select all that match" }).click()
    await page.getByText("all 105 that match").waitFor()
    const first = page.getByRole("row").nth(1).getByRole("checkbox")
    await first.click()
    // whoever leaves one out no longer means all
    await page.getByText("99 selected").waitFor()
    await first.click()
    await page.getByRole("button", { name: "Select all that match" }).click()
    await page.getByText("all 105 that match").waitFor()
    await page.getByRole("button", { name: "Tag", exact: true }).click()
    const dialog = page.getByRole("dialog", { name: "Tag 105 keys" })
    await dialog.getByText("All keys that match Name, prefix, owner or tag: fleet.").waitFor()
    await dialog.getByLabel("Add tags").fill("to replace")
    await page.keyboard.press("Enter")
    assert.deepStrictEqual(await axe(), [])
    await dialog.getByRole("button", { name: "Tag 105" }).click()
    await page.getByRole("heading", { name: "Bulk key change", level: 1 }).waitFor()
    await page.getByText("done", { exact: true }).waitFor()
    assert.match(await page.getByRole("region", { name: "Changed", exact: true }).innerText(), /105/)
    await page.getByRole("button", { name: "Undo" }).click()
    await page.getByRole("dialog", { name: "Undo the change" }).getByRole("button", { name: "Undo it" }).click()
    await page.getByText("Undo a change of 105 keys.").waitFor()
    await page.getByText("done", { exact: true }).waitFor()
    assert.deepStrictEqual(await axe(), [])
    await page.goto(`${portal.gateway.control}/admin-ui/keys?tag=to+replace`)
    await page.getByText("No key matches these filters.").waitFor()
    await page.goto(`${portal.gateway.control}/admin-ui/keys/changes`)
    await page.getByRole("link", { name: "Tag 105 keys: add to replace" }).waitFor()
  })

  it("that are too many to be rotated at once leave the button, with the reason", async () => {
    const { answer, axe, page } = await portal.open("/keys?q=fleet")
    await answer("/admin/bulk-key-changes/selection", { body: { selected: 6_000, is_too_many: false } })
    await page.getByLabel("Select all rows that are shown").click()
    await page.getByRole("button", { name: "Select all that match" }).click()
    await page.getByText("all 6,000 that match").waitFor()
    assert.isTrue(await page.getByRole("button", { name: "Rotate", exact: true }).isDisabled())
    await page.getByText("At most 5,000 keys are rotated at once").waitFor()
    assert.deepStrictEqual(await axe(), [])
  })

  it("are rotated together, with their new secrets in one file", async () => {
    for (const name of ["rotated a", "rotated b"]) await makeKey(portal, { name, tags: ["together"] })
    const { page } = await portal.open("/keys?tag=together")
    await page.getByLabel("Select all rows that are shown").click()
    await page.getByRole("button", { name: "Rotate", exact: true }).click()
    await page.getByRole("button", { name: "Rotate 2" }).click()
    const file = page.waitForEvent("download")
    await page.getByRole("button", { name: "Download the new secrets" }).click()
    const stream = await (await file).createReadStream()
    const text = (await Array.fromAsync(stream)).join("")
    assert.match(text, /rotated a,rk_live_.*\n.*rotated b,rk_live_|rotated b,rk_live_.*\n.*rotated a,rk_live_/)
    await page.getByLabel("I stored the file").click()
    await page.getByRole("button", { name: "Done" }).click()
    await page.getByRole("button", { name: "Rotate", exact: true }).waitFor({ state: "hidden" })
  })

  it("that cannot be read show the error with its request, and hide what a token lacks", async () => {
    const { answer, page } = await portal.open("/projects")
    await answer("/admin/keys", { status: 500 })
    await press(page, "g", "k")
    await page.getByRole("alert").filter({ hasText: "req-of-the-test" }).waitFor()
    const weak = await portal.open("/keys", { scopes: ["operators:manage"] })
    await weak.page.getByRole("row").nth(1).waitFor()
    assert.strictEqual(await weak.page.getByRole("link", { name: "Create a key" }).count(), 0)
    assert.strictEqual(await weak.page.getByRole("checkbox").count(), 0)
  })
})
