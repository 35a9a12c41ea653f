import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { buildExecutionView } from "../../../src/graph/ExecutionView.ts"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal, type Portal, type View } from "../PortalBrowser.ts"
import { workflow } from "./Graphs.ts"

const tasks = fileURLToPath(new URL("ShopTasks.ts", import.meta.url))

const openGraph = async (portal: Portal, search = "", view?: View) => {
  const opened = await portal.open("/tasks", view)
  const body = buildExecutionView({ ...workflow(100, 100), task_id: "sent-1" })
  await opened.answer(/\/executions\/sent-1\/view/, { body })
  await opened.page.goto(`${portal.gateway.control}/admin-ui/tasks/sent-1?tab=graph${search}`)
  await opened.page.locator(".react-flow__node").first().waitFor()
  return opened
}

const stage = (page: Page, name: string) => page.locator(".react-flow__node").filter({ hasText: name })

const isInView = (page: Page, name: string) =>
  eventuallyTrue(async () => {
    const node = await stage(page, name).boundingBox()
    const chart = await page.locator(".react-flow").boundingBox()
    return (
      node !== null &&
      chart !== null &&
      node.x >= chart.x &&
      node.x + node.width <= chart.x + chart.width &&
      node.y >= chart.y &&
      node.y + node.height <= chart.y + chart.height
    )
  })

describePortal(
  "A graph of 10,000 nodes",
  (portal) => {
    it("begins with the task, draws what is in view, and more of it once it is moved", async () => {
      const { axe, page } = await openGraph(portal)
      await isInView(page, "stage 0, part 0")
      assert.isAtMost(await page.locator(".react-flow__node").count(), 300)
      const chart = await page.locator(".react-flow").boundingBox()
      const [x, y] = [(chart?.x ?? 0) + 600, (chart?.y ?? 0) + 300]
      for (let n = 0; n < 5; n++) {
        await page.mouse.move(x, y)
        await page.mouse.down()
        await page.mouse.move(x - 500, y, { steps: 3 })
        await page.mouse.up()
      }
      await stage(page, "stage 2, part 20").waitFor()
      assert.isAtMost(await page.locator(".react-flow__node").count(), 300)
      assert.deepStrictEqual(await axe(), [])
    })

    it("begins with the node of the address, and shows what another one is about", async () => {
      const { page } = await openGraph(portal, "&at=stage:50:50")
      await isInView(page, "stage 50, part 50")
      await stage(page, "stage 50, part 51").click()
      await page.waitForURL((url) => url.searchParams.get("at") === "stage:50:51")
    })

    it("is moved with the arrow keys, also once the node with the focus is out of view", async () => {
      const { page } = await openGraph(portal)
      await isInView(page, "stage 0, part 0")
      await stage(page, "w").first().focus()
      for (let n = 0; n < 24; n++) await page.keyboard.press("ArrowRight")
      await stage(page, "stage 2, part 20").waitFor()
      for (let n = 0; n < 24; n++) await page.keyboard.press("ArrowLeft")
      await isInView(page, "stage 0, part 0")
    })

    it("can be read on a phone", async () => {
      const { page } = await openGraph(portal, "", { width: 360 })
      const node = await stage(page, "stage 0, part 0").boundingBox()
      assert.isAtLeast(node?.width ?? 0, 150)
    })
  },
  { tasks }
)
