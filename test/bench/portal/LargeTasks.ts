import type { Page } from "playwright-core"
import { buildExecutionView } from "../../../src/graph/ExecutionView.ts"
import { parentOf, retried, workflow } from "../../portal/oncall/Graphs.ts"
import { number } from "../Markdown.ts"
import * as Chromium from "./Chromium.ts"
import { interactionRounds, press, type Site } from "./Site.ts"

/** Tasks of ten thousand attempts, as timelines and as a graph. */

const attempts = 10_000

export interface LargeTaskDrawn {
  readonly name: string
  /** Milliseconds until it is drawn. */
  readonly drawn: number
  readonly elements: number
  readonly interactions: ReadonlyArray<number>
}

interface LargeTask {
  readonly name: string
  readonly tab: string
  readonly graph: ReturnType<typeof retried>
  /** Is there once it is drawn. */
  readonly drawn: string
  readonly act: (page: Page) => Promise<unknown>
}

export const largeTasks: ReadonlyArray<LargeTask> = [
  {
    name: `timeline of ${number(attempts, 0)} attempts of one task`,
    tab: "timeline",
    graph: retried(attempts, "failed"),
    drawn: "[class*=timeline] [class*=bar]",
    act: async (page) => {
      await page.locator("[class*=timeline] button:enabled").first().focus()
      await press(page, "+", "+", "ArrowRight", "ArrowRight", "f", "f", "-", "0")
    }
  },
  {
    name: `timeline of ${number(attempts, 0)} children`,
    tab: "timeline",
    graph: parentOf(attempts),
    drawn: "[class*=timeline] [class*=bar], [class*=timeline] [class*=row]",
    act: async (page) => {
      await page.locator("[class*=timeline] button:enabled").first().focus()
      await press(page, "+", "+", "ArrowRight", "ArrowRight", "f", "f", "-", "0")
    }
  },
  {
    name: `graph of ${number(attempts, 0)} nodes`,
    tab: "graph",
    graph: workflow(attempts / 100, 100),
    drawn: ".react-flow__node",
    act: async (page) => {
      const box = await page.locator(".react-flow").boundingBox()
      const [x, y] = [(box?.x ?? 0) + 500, (box?.y ?? 0) + 200]
      await page.mouse.move(x, y)
      for (let n = 0; n < 4; n++) await page.mouse.wheel(0, 200)
      await page.mouse.down()
      await page.mouse.move(x - 300, y, { steps: 12 })
      await page.mouse.up()
      await page.locator(".react-flow__node").first().focus()
      await press(page, "Enter", "Tab", "Tab", "Enter")
    }
  }
]

export const largeTaskOf = async (
  { browser, origin, session }: Site,
  { act, drawn, graph, name, tab }: LargeTask
): Promise<LargeTaskDrawn> => {
  const opened = await Chromium.open(browser, origin, session, { slower: 1 })
  const { page } = opened
  const view = buildExecutionView({ ...graph, task_id: "sent-1" })
  await page.route(/\/executions\/sent-1\/view/, (route) => route.fulfill({ json: view }))
  const begun = performance.now()
  await page.goto(`/admin-ui/tasks/sent-1?tab=${tab}`)
  await page.locator(drawn).first().waitFor({ timeout: 60_000 })
  const drawnMs = performance.now() - begun
  const interactions: Array<number> = []
  for (let round = 0; round < interactionRounds; round++) interactions.push(await Chromium.slowestOf(opened, act))
  const elements = await Chromium.elementsOf(page)
  await page.context().close()
  return { name, drawn: drawnMs, elements, interactions }
}
