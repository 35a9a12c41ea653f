import { fileURLToPath } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { type Browser, chromium, type Page } from "playwright-core"
import { inject } from "vitest"
import { buildExecutionGraph, type ExecutionGraph } from "../../src/graph/ExecutionGraph.ts"
import { buildExecutionView } from "../../src/graph/ExecutionView.ts"
import { executionGraphMermaid } from "../../src/graph/Mermaid.ts"
import * as Guides from "../Guides.ts"
import { evidence, observations, received, retried, statuses } from "./Evidence.ts"

const node = (id: string, label = id, timestamp: string | null = null): ExecutionGraph["nodes"][number] => ({
  id,
  kind: "status_event",
  task_id: "t",
  label,
  timestamp,
  annotations: {}
})

const edge = (source: string, target: string): ExecutionGraph["edges"][number] => ({
  source,
  target,
  kind: "published_status",
  timestamp: null,
  annotations: {}
})

const labelled = (...labels: ReadonlyArray<string>) => ({
  nodes: labels.map((label, index) => node(`n${index}`, label)),
  edges: []
})

const graph = buildExecutionGraph(
  evidence({
    statuses: new Map([["task-123", statuses("task-123", ["processing", 1], ["retrying", 2])]]),
    observations: new Map([["task-123", observations(received(0), retried(2), received(3, { retry_attempt: 1 }))]])
  })
)

describe("executionGraphMermaid", () => {
  it("writes what the reference writes", () => {
    const one = buildExecutionGraph(evidence())
    const task = { ...one, nodes: [...one.nodes, node("status:task-123:1", "completed")] }
    const edges = [edge("task:task-123", "status:task-123:1"), edge("task:task-123", "nowhere")]
    assert.strictEqual(
      executionGraphMermaid({ ...task, edges }),
      [
        "flowchart LR",
        '    node_task_task_123["task-123\\ntask"]',
        '    node_status_task_123_1["completed\\nstatus_event"]',
        "    node_task_task_123 -->|published_status| node_status_task_123_1"
      ].join("\n")
    )
    assert.include(
      executionGraphMermaid(graph),
      '    node_retry_task_123_1["retry 1\\nretry\\n2026-04-06T10:00:02+00:00"]'
    )
  })

  it("gives every node an identifier of its own", () => {
    const nodes = ["a-b", "a_b", "", "a_b_2", "a b"].map((id) => node(id, "x"))
    assert.deepStrictEqual(
      executionGraphMermaid({ nodes, edges: [] })
        .split("\n")
        .slice(1)
        .map((line) => line.trim().split("[")[0]),
      ["node_a_b", "node_a_b_2", "node_node", "node_a_b_2_2", "node_a_b_3"]
    )
  })

  it("keeps a label on one line, and short", () => {
    const [, first = "", second = ""] = executionGraphMermaid(labelled("a\r\n\tb", "🚀".repeat(200))).split("\n")
    assert.strictEqual(first, '    node_n0["a b\\nstatus_event"]')
    assert.strictEqual(second, `    node_n1["${"🚀".repeat(119)}…\\nstatus_event"]`)
  })
})

describe("buildExecutionView", () => {
  it("is the graph, its text, and what a list shows", () => {
    assert.deepStrictEqual(buildExecutionView(graph), {
      task_id: "task-123",
      topology_kind: "shared_tasks_shared_status",
      summary: graph.summary,
      related_task_ids: [],
      graph,
      mermaid: executionGraphMermaid(graph)
    })
  })
})

const executable = inject("headlessChromium")

describe.skipIf(executable === null)("executionGraphMermaid, in a browser by the real Mermaid", () => {
  let browser: Browser
  let page: Page

  beforeAll(async () => {
    // tests may run as root, where Chromium has no sandbox
    browser = await chromium.launch({ executablePath: executable ?? "", args: ["--no-sandbox"] })
    page = await browser.newPage()
    await page.setContent("<!doctype html><body></body>")
    await page.addScriptTag({ path: fileURLToPath(import.meta.resolve("mermaid/dist/mermaid.min.js")) })
    await page.evaluate(`mermaid.initialize({ startOnLoad: false, securityLevel: "strict" })`)
  })

  afterAll(() => browser.close())

  /** What is drawn: every node by its identifier, with the text that is seen, and the number of edges. */
  const rendered = async (text: string): Promise<{ readonly nodes: ReadonlyArray<Drawn>; readonly edges: number }> =>
    JSON.parse(
      await page.evaluate<string>(`(async () => {
        const { svg } = await mermaid.render("graph", ${JSON.stringify(text)})
        document.body.innerHTML = svg
        const nodes = [...document.querySelectorAll(".node")].map((node) => ({
          id: node.id.replace(/^.*flowchart-/, "").replace(/-\\d+$/, ""),
          text: node.querySelector(".label").textContent
        }))
        return JSON.stringify({ nodes, edges: document.querySelectorAll(".edgePaths path").length })
      })()`)
    )

  it("is drawn, with every node and every edge", async () => {
    const { edges, nodes } = await rendered(executionGraphMermaid(graph))
    assert.deepStrictEqual(
      nodes.map(({ text }) => text).sort(),
      graph.nodes.map(({ kind, label, timestamp }) => `${label}${kind}${timestamp ?? ""}`).sort()
    )
    assert.strictEqual(edges, graph.edges.length)
  })

  it.each(Guides.blocks(Guides.guide("README.md"), "mermaid"))(
    "draws the README's picture, with every edge",
    async (text) => {
      const { edges, nodes } = await rendered(text)
      assert.strictEqual(edges, text.split("-->").length - 1)
      assert.isAbove(nodes.length, 0)
    }
  )

  it("shows labels as they are, whatever they mean to Mermaid", async () => {
    const labels = [
      'a "b" <c> & d',
      "1. one - two # three",
      "*a* _b_ __c__ ~~d~~ `e`",
      "`markdown`",
      "a|b||c",
      "fa:fa-car",
      "$$x^2$$",
      'style a:b"c',
      'classDef a:b"c',
      "%%{init: {}}%% %% end",
      "back\\nslash\\",
      "🚀👨‍👩‍👧 สวัสดี",
      "<script>alert(1)</script><br/>",
      "&lt;#35;#quot;",
      "end",
      "] --> x",
      "x".repeat(500)
    ]
    const { nodes } = await rendered(executionGraphMermaid(labelled(...labels)))
    assert.deepStrictEqual(
      nodes.map(({ text }) => text),
      labels.map((label) => `${label.length > 120 ? `${label.slice(0, 119)}…` : label}status_event`)
    )
  })

  it("is taken by the parser with any labels and ids: every node and edge is there", async () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: "grapheme" }),
      fc
        .array(
          fc.constantFrom(
            ...'"`#;:%{}[]()<>|&\\$~*_-=\n\t \u2028ﬂ°¶ßae',
            "style",
            "end",
            "fa:fa-",
            "%%{",
            "-->",
            "#quot;"
          ),
          {
            maxLength: 12
          }
        )
        .map((parts) => parts.join(""))
    )
    const any = fc
      .uniqueArray(fc.tuple(text, text), { minLength: 1, maxLength: 12, selector: ([id]) => id })
      .chain((nodes) => {
        const ids = nodes.map(([id]) => id)
        const end = fc.constantFrom(...ids)
        return fc.record({
          nodes: fc.constant(nodes.map(([id, label]) => node(id, label, "2026-04-06T10:00:00Z"))),
          edges: fc.array(
            fc.tuple(end, end).map(([from, to]) => edge(from, to)),
            { maxLength: 12 }
          )
        })
      })
    await fc.assert(
      fc.asyncProperty(any, async (graph) => {
        const parsed: unknown = JSON.parse(
          await page.evaluate<string>(`(async () => {
            const { db } = await mermaid.mermaidAPI.getDiagramFromText(${JSON.stringify(executionGraphMermaid(graph))})
            return JSON.stringify([db.getVertices().size, db.getEdges().length])
          })()`)
        )
        assert.deepStrictEqual(parsed, [graph.nodes.length, graph.edges.length])
      }),
      { numRuns: 200 }
    )
  }, 60_000)
})

interface Drawn {
  readonly id: string
  readonly text: string
}
