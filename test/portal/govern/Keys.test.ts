import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
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
  it("are made by keyboard alone; the secret is shown once, with a request to copy", async () => {
    const { page } = await portal.open("/")
    await press(page, "Control+k")
    await page.getByPlaceholder("Go to, find an id, do …").waitFor()
    await page.keyboard.type("Create a key")
    await press(page, "Enter")
    await page.getByRole("heading", { name: "Create a key", level: 1 }).waitFor()
    await page.getByLabel("Name").waitFor()
    await page.keyboard.type("by keyboard")
    // Enter goes on with the usual answer of each step
    for (const step of ["Preset", "Limits", "Guardrails", "Review"]) {
      await press(page, "Enter")
      await page.getByRole("heading", { name: step, level: 2 }).waitFor()
    }
    await page.getByText("Nothing.").waitFor()
    await press(page, "Enter")
    await page.getByRole("heading", { name: "by keyboard is ready" }).waitFor()
    const secret = await page.getByRole("region", { name: "Secret", exact: true }).innerText()
    assert.match(secret.trim(), /^rk_live_[0-9a-f]{72}$/)
    assert.include(await page.locator("main").innerText(), "curl")
    const done = page.getByRole("button", { name: /^Done/ })
    assert.isTrue(await done.isDisabled())
    await page.getByLabel("I stored it").focus()
    await press(page, "Space")
    await done.focus()
    await press(page, "Enter")
    await page.getByRole("heading", { name: "by keyboard", level: 1 }).waitFor()
    assert.notInclude(await page.content(), secret.trim())
    const kept = await page.evaluate<string>("JSON.stringify([localStorage, sessionStorage]) + document.cookie")
    assert.notInclude(kept, secret.trim())
  })

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
