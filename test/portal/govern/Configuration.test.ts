import { assert, it } from "@effect/vitest"
import { holdAnswers } from "../HeldAnswers.ts"
import { describePortal } from "../PortalBrowser.ts"

/** A page complains about this once its server is gone. */
const lost = /ERR_|^50[0-9] /

describePortal("The configuration", (portal) => {
  it("is shown without its keys, and with them once they are asked for", async () => {
    await portal.gateway.operate("POST", "/keys", { name: "one of many", owner_type: "individual" })
    const { page } = await portal.open("/configuration")
    await page.getByText("no document was applied yet").waitFor()
    const section = page.getByRole("combobox", { name: "Section" })
    await section.click()
    await page.getByRole("option", { name: "projects (0)" }).waitFor()
    assert.strictEqual(await page.getByRole("option", { name: /^keys/ }).count(), 0)
    await page.keyboard.press("Escape")
    await page.getByLabel("With keys").check()
    await section.click()
    await page.getByRole("option", { name: "keys (1)" }).click()
    await page.getByText("one of many").waitFor()
    assert.include(page.url(), "keys=yes")
  })

  it("is compared and applied; a person who was slower sees both plans first", async () => {
    const { page, problems } = await portal.open("/configuration?tab=plan")
    problems.expect(/^409 POST /)
    const current = await portal.gateway.operate("GET", "/configuration")
    const document = page.getByRole("textbox", { name: "Configuration" })
    await document.fill(JSON.stringify({ ...Object(current), projects: [{ name: "mine" }] }))
    await page.getByRole("button", { name: "Show what would change" }).click()
    await page.getByRole("heading", { name: "What would change" }).waitFor()
    await portal.gateway.operate("POST", "/projects", { name: "theirs" })
    await page.getByRole("button", { name: "Apply", exact: true }).click()
    await page.getByLabel("Type “apply” to confirm").fill("apply")
    const confirm = page.getByRole("button", { name: "Apply 1 change" })
    await confirm.click()
    await page.getByText("Somebody changed the configuration after the plan was made.").waitFor()
    await page.getByRole("heading", { name: "What you saw before" }).waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("button", { name: "Apply", exact: true }).click()
    await page.getByLabel("Type “apply” to confirm").fill("apply")
    await page.getByRole("button", { name: "Apply 2 changes" }).click()
    await page.getByText("The document is applied.").waitFor()
    await page.getByText("as applied").waitFor()
    const applied = await portal.gateway.operate("GET", "/configuration")
    assert.deepStrictEqual(Object(applied).projects, [{ name: "mine" }])
    await portal.gateway.operate("POST", "/projects", { name: "by hand" })
    await page.getByRole("link", { name: "changed since the last apply by 1 event" }).click()
    await page
      .getByRole("dialog", { name: /^Event / })
      .getByText("configuration:apply")
      .first()
      .waitFor()
  })

  it("has a history that tells applies from changes by hand, and leaves out what changes nothing of it", async () => {
    const { page } = await portal.open("/configuration?tab=history")
    const history = page.getByRole("table", { name: "History of the configuration" })
    await history.getByRole("row").filter({ hasText: "configuration:apply" }).getByText("applied").waitFor()
    await portal.gateway.operate("POST", "/projects", { name: "seen at once" })
    await history.getByRole("row").nth(1).filter({ hasText: "projects:create" }).getByText("by hand").waitFor()
    assert.strictEqual(await history.getByText(/sessions:|operators:/).count(), 0)
  })

  it("is compared as it is now, whatever an older answer says", async () => {
    const { page } = await portal.open("/configuration?tab=plan")
    const document = page.getByRole("textbox", { name: "Configuration" })
    const current = Object(await portal.gateway.operate("GET", "/configuration"))
    const compare = page.getByRole("button", { name: "Show what would change" })
    await document.fill(JSON.stringify({ ...current, projects: [{ name: "older" }] }))
    const answer = await holdAnswers(page, /\/configuration\/plan$/)
    const asked = page.waitForRequest(/\/configuration\/plan$/)
    await compare.click()
    await asked
    await document.fill(JSON.stringify({ ...current, projects: [{ name: "newer" }] }))
    const answered = page.waitForResponse(/\/configuration\/plan$/)
    answer()
    await (await answered).finished()
    await compare.click()
    await page.getByRole("heading", { name: "What would change" }).waitFor()
    const plan = page.getByRole("region", { name: "What would change" })
    await plan.getByText("newer").first().waitFor()
    assert.strictEqual(await plan.getByText("older").count(), 0)
  })
})

// the drain ends the program, so that it is one of its own
describePortal("A process", (portal) => {
  it("is drained by typing what it is", async () => {
    const { page, problems } = await portal.open("/system")
    problems.expect(lost)
    await page.getByRole("button", { name: /^Drain all \d+$/ }).click()
    const dialog = page.getByRole("dialog", { name: "Drain a process" })
    await dialog.getByText("This process serves the page that you see.").waitFor()
    await dialog.getByLabel("Reason").fill("a <b>new</b> kernel")
    const confirm = dialog.getByRole("button", { name: "Drain it" })
    assert.isTrue(await confirm.isDisabled())
    const typed = dialog.getByLabel(/^Type “all \d+” to confirm$/)
    const label = await dialog.getByText(/^Type “all \d+” to confirm$/).innerText()
    await typed.fill(/“(.*)”/.exec(label)?.[1] ?? "")
    await confirm.click()
    await page.getByText(/is asked to drain/).waitFor()
    await page.goto("about:blank")
    assert.strictEqual(await portal.gateway.exited, 0)
  })
})
