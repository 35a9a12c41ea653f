import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { describePortal } from "../PortalBrowser.ts"

const idOf = (made: unknown): string => String(Object(made).id)

describePortal("The credentials of keys and projects", (portal) => {
  it("are set for a project, and a key of it is told which it gets", async () => {
    const project = idOf(await portal.gateway.operate("POST", "/projects", { name: "shop" }))
    const { key } = Object(
      await portal.gateway.operate("POST", "/keys", { name: "till", owner_type: "project", project_id: project })
    )
    const { axe, page } = await portal.open("/upstreams?tab=credentials")
    await page.getByRole("button", { name: "Set a credential" }).click()
    const form = page.getByRole("dialog", { name: "Set a credential" })
    await form.getByRole("combobox", { name: "Project" }).fill("shop")
    await page.getByRole("option", { name: "shop" }).click()
    await form.getByLabel("credential", { exact: true }).fill("sk-of-shop")
    await form.getByRole("button", { name: "Show the difference" }).click()
    const confirm = page.getByRole("dialog", { name: "Set the credential of shop" })
    assert.match(await confirm.innerText(), /credential\s+not set\s+→\s+a new one/)
    await confirm.getByRole("button", { name: "Set it" }).click()
    await page.getByText("The credential of shop is set.").waitFor()
    await page.getByRole("table", { name: "Credentials of keys and projects" }).getByText("configured").waitFor()

    await page.getByRole("button", { name: "Set a credential" }).click()
    await form.getByRole("combobox", { name: "Project" }).fill("shop")
    await page.getByRole("option", { name: "shop" }).click()
    await form.getByLabel("credential", { exact: true }).fill("sk-second")
    await form.getByRole("button", { name: "Show the difference" }).click()
    await confirm.getByText("The one that is stored is gone for good").waitFor()
    await confirm.getByRole("button", { name: "Cancel" }).click()
    await form.getByRole("button", { name: "Cancel" }).click()

    await page.getByRole("button", { name: "Columns, rows, CSV" }).click()
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name: "CSV of the 1 row shown" }).click()
    ])
    assert.strictEqual(file.suggestedFilename(), "mappings.csv")
    assert.match(readFileSync(await file.path(), "utf8"), /^id,scope,target_id,.*\r\n.*,project,/)

    await page.getByRole("combobox", { name: "Key" }).fill("till")
    await page.getByRole("option", { name: /^till/ }).click()
    const openai = page.getByRole("region", { name: "Requests of OpenAI’s kind" })
    await openai.getByText("Requests carry the credential of the project of the key.").waitFor()
    assert.include(await openai.innerText(), "the key has none, its project has one, which decides")
    assert.include(page.url(), idOf(key))
    assert.notInclude(await page.content(), "sk-of-shop")
    assert.deepStrictEqual(await axe(), [])
  })
})
