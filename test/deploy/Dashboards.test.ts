import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import * as RunningBroker from "../RunningBroker.ts"
import { chosenSource, dashboards, missingIn, type Panel, queryOf } from "./DashboardFiles.ts"
import * as LiveMetrics from "./LiveMetrics.ts"
import * as MonitoredProcess from "./MonitoredProcess.ts"
import * as PromQL from "./PromQL.ts"
import * as Rules from "./Rules.ts"
import * as SupervisorMetrics from "./SupervisorMetrics.ts"

const queries = [...dashboards.values()].flatMap(({ panels }) =>
  panels.flatMap(({ targets = [] }) => targets.map(queryOf))
)

describe.each([...dashboards])("the dashboard %s", (_, { panels, templating }) => {
  it("has panels with a unit, a description and the chosen data source", () => {
    assert.deepStrictEqual(
      panels.flatMap((panel) => missingIn(panel).map((what) => `${panel.title}: ${what}`)),
      []
    )
    assert.deepStrictEqual(
      templating.list.map(({ name, type }) => `${name} ${type}`),
      ["datasource datasource", "job query", "instance query"]
    )
  })

  it("has panels with ids of their own that do not overlap", () => {
    assert.strictEqual(new Set(panels.map(({ id }) => id)).size, panels.length)
    const cells = panels.flatMap(({ gridPos: { h, w, x, y } }) =>
      Array.from({ length: h }, (_, row) => Array.from({ length: w }, (_, column) => `${x + column} ${y + row}`)).flat()
    )
    assert.strictEqual(new Set(cells).size, cells.length)
    assert.isTrue(panels.every(({ gridPos: { w, x } }) => x + w <= 24))
  })

  it("names in legends what its queries leave", () => {
    for (const { targets = [], title } of panels) {
      for (const target of targets) {
        const legend = [...target.legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label)
        const { groupings } = PromQL.parse(queryOf(target))
        const left = groupings.length === 0 ? ["worker"] : groupings.flatMap(({ labels }) => labels)
        const unknown = legend.filter((label) => ![...left, "job", "instance"].includes(label))
        assert.deepStrictEqual(unknown, [], title)
      }
    }
  })
})

describe("a panel", () => {
  const panel: Panel = {
    ...{ id: 1, type: "stat", title: "Requests", description: "Of all routes.", gridPos: { h: 1, w: 1, x: 0, y: 0 } },
    datasource: { type: "prometheus", uid: chosenSource },
    fieldConfig: { defaults: { unit: "reqps" }, overrides: [] },
    targets: [{ refId: "A", datasource: { type: "prometheus", uid: chosenSource }, expr: "up", legendFormat: "" }]
  }

  it("without a unit, a description, a query or the chosen data source is found", () => {
    assert.deepStrictEqual(missingIn(panel), [])
    assert.deepStrictEqual(missingIn({ ...panel, fieldConfig: { defaults: {}, overrides: [] } }), ["unit"])
    assert.deepStrictEqual(missingIn({ ...panel, description: "" }), ["description"])
    assert.deepStrictEqual(missingIn({ ...panel, targets: [] }), ["targets"])
    assert.deepStrictEqual(missingIn({ ...panel, datasource: { type: "prometheus", uid: "mine" } }), ["datasource"])
  })
})

describe("a query", () => {
  const live = LiveMetrics.read('requests_total{route="/v1",code="a,b=\\"c\\""} 1\nlag_seconds 0.5\n')
  const recorded = new Map([["job:requests:rate5m", new Set(["job"])]])
  const unknown = (query: string) => LiveMetrics.unknownIn(live, recorded, PromQL.parse(query))

  it.each([
    'sum by (route) (rate(requests_total{job=~".*", route=~"/v.+"}[5m])) / on (job) group_left job:requests:rate5m > 0.5',
    'topk(5, sum(requests_total{code!="none"}) by (route, code)) or lag_seconds * 1e3 unless on (instance) up_to(lag_seconds)',
    'histogram_quantile(0.95, sum without (code) (increase(requests_total{code="a,b=\\"c\\""}[1h:5m] offset 1d)))'
  ])("that names only what there is passes: %s", (query) => {
    assert.deepStrictEqual(unknown(query), [])
  })

  it.each([
    ["rate(requests[5m])", "no process has the metric requests"],
    ["sum(requests_total{path='x'})".replaceAll("'", '"'), "requests_total has no label path"],
    ["sum by (path) (requests_total)", "requests_total has no label path"],
    ["sum(requests_total) by (path)", "requests_total has no label path"],
    ["sum by (route) (requests_total / on (route) lag_seconds)", "lag_seconds has no label route"],
    ['sum(requests_total{route="/v2"})', "no series of requests_total is route=/v2"],
    ["sum by (route) (job:requests:rate5m)", "job:requests:rate5m has no label route"]
  ])("with a planted mistake is found: %s", (query, problem) => {
    assert.include(unknown(query), problem)
  })
})

describe.skipIf(!Rules.available)("the queries of dashboards, for promtool", () => {
  it("are PromQL", () => {
    const { isOk, output } = Rules.checkQueries(queries)
    assert.isTrue(isOk, output)
  })

  it("that are broken are found", () => {
    for (const broken of ["sum(rate(up[5m])", "sum by job (up)", "rate(up)"]) {
      assert.isFalse(Rules.checkQueries([...queries, broken]).isOk, broken)
    }
  })
})

class Live extends Context.Service<Live, LiveMetrics.LiveMetrics>()("test/deploy/Live") {
  static readonly layer = Layer.effect(
    Live,
    Effect.map(
      Effect.all([MonitoredProcess.metrics, SupervisorMetrics.metrics]),
      ([ofProcess, ofSupervisor]) => new Map([...ofSupervisor, ...ofProcess])
    )
  )
}

describe.skipIf(RunningBroker.server === null)("beside a running process", () => {
  layer(Live.layer, { excludeTestServices: true, timeout: "2 minutes" })((it) => {
    const unknownIn = (queries: ReadonlyArray<string>) =>
      Effect.map(Live, (live) =>
        queries.flatMap((query) =>
          LiveMetrics.unknownIn(live, Rules.recorded, PromQL.parse(query)).map((problem) => `${problem}: ${query}`)
        )
      )

    it.effect("dashboards name only metrics, labels and values that it has", () =>
      Effect.gen(function* () {
        assert.isAbove(queries.length, 80)
        assert.deepStrictEqual(yield* unknownIn(queries), [])
      })
    )

    it.effect("rules name only metrics, labels and values that it has", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* unknownIn(Rules.expressions), [])
      })
    )
  })
})
