import { assert, it } from "@effect/vitest"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal } from "../PortalBrowser.ts"

describePortal(
  "The portal of a program without tasks",
  (portal) => {
    it("says on the pages of tasks how to have some, as a hint and not as an error", async () => {
      const { axe, page } = await portal.open("/tasks/board")
      for (const path of ["/tasks/board", "/tasks", "/tasks/t-1", "/dead-letters"]) {
        await page.goto(`${portal.gateway.control}/admin-ui${path}`)
        await page.getByText("This process has no tasks.").waitFor()
        assert.strictEqual(await page.getByRole("alert").count(), 0)
      }
      assert.deepStrictEqual(await axe(), [])
    })

    it("asks for nothing of tasks on any page", async () => {
      const { page } = await portal.open("/")
      const asked: Array<string> = []
      page.on("request", (request) => {
        const { pathname } = new URL(request.url())
        if (request.resourceType() !== "document" && pathname.startsWith("/admin-ui/tasks/")) asked.push(pathname)
      })
      const links = await page.getByRole("navigation").first().getByRole("link").all()
      assert.isAbove(links.length, 20)
      for (const link of links) {
        await link.click()
        await eventuallyTrue(async () => (await page.locator("main [aria-busy=true]").count()) === 0)
      }
      assert.deepStrictEqual(asked, [])
    })
  },
  { example: false }
)
