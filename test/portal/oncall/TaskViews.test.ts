import { assert, describe, it } from "@effect/vitest"
import { attemptsOf } from "../../../src/portal/pages/tasks/attempts/attempts.ts"
import { attemptsText, outcomesText } from "../../../src/portal/pages/tasks/attempts/outcomes.ts"
import { fold } from "../../../src/portal/pages/tasks/task/graph/fold.ts"
import { stepsOf } from "../../../src/portal/pages/tasks/task/sequence/steps.ts"
import { barsOf, ticksOf } from "../../../src/portal/pages/tasks/task/timeline/bars.ts"
import { failuresOf, mostRows, rowsOf, spanOf, wholeOf } from "../../../src/portal/pages/tasks/task/timeline/rows.ts"
import { areaOf, firstViewport, partIn } from "../../../src/portal/shared/graph/area.ts"
import { placesOf, size } from "../../../src/portal/shared/graph/layout.ts"
import { parentOf, repaired, retried, workflow } from "./Graphs.ts"

const none: ReadonlySet<string> = new Set()
const screen = { width: 1_200, height: 600 }
const now = Date.UTC(2026, 10, 27)

/** The time that the work takes, in milliseconds. */
const timeOf = (work: () => unknown): number => {
  const begun = performance.now()
  work()
  return performance.now() - begun
}

const drawnIn = (...args: Parameters<typeof partIn>) => partIn(...args).nodes.map(({ id }) => id)

describe("attempts of a task", () => {
  it("have their outcome, their end, and the wait for the next one", () => {
    const attempts = attemptsOf(retried(3, "failed"), undefined)
    assert.deepStrictEqual(
      attempts.map(({ outcome }) => outcome),
      ["retried", "retried", "dead"]
    )
    const [first] = attempts
    assert.strictEqual((first?.end ?? 0) - (first?.start ?? 0), 50)
    assert.strictEqual((first?.retry?.until ?? 0) - (first?.retry?.from ?? 0), 950)
    assert.strictEqual(first?.reason, "handler_error")
    assert.strictEqual(attemptsOf(retried(2), undefined).at(-1)?.outcome, "done")
  })

  it("are counted once in every place, and the delivery to the aggregation is none", () => {
    const attempts = attemptsOf(repaired, undefined)
    assert.strictEqual(attemptsText(attempts), "3 attempts and 1 aggregation")
    assert.strictEqual(outcomesText(attempts), "1 failed, 1 failed and retried, 2 done")
    assert.strictEqual(attempts[0]?.message, "no such page")
    assert.lengthOf(failuresOf(rowsOf(attempts, "t", none)), 2)
  })
})

describe("the delivery to the aggregation", () => {
  it("is called so in every view", () => {
    const attempts = attemptsOf(repaired, undefined)
    assert.strictEqual(attempts.at(-1)?.type, "aggregation")
    const last = fold(repaired).nodes.at(-1)
    assert.deepStrictEqual([last?.title, last?.lines[0]], ["aggregation", "aggregation · a"])
    const received = stepsOf(repaired, attempts).flatMap(({ words }) => (words.startsWith("receives") ? [words] : []))
    assert.deepStrictEqual(received, [...[1, 2, 3].map((n) => `receives t attempt ${n}`), "receives t aggregation"])
  })
})

describe("the timeline", () => {
  it("stays small with 10,000 attempts in one row, and hides no failure among them", () => {
    const attempts = attemptsOf(retried(10_000), undefined)
    const [row] = rowsOf(attempts, "t", none)
    const span = spanOf(attempts, now)
    let bars = barsOf([], span, 1_000, now)
    const took = timeOf(() => {
      bars = barsOf(row?.attempts ?? [], span, 1_000, now)
    })
    assert.isAtMost(bars.length, 1_000)
    assert.isAtMost(took, 500)
    assert.isTrue(bars.slice(0, -1).every(({ outcome }) => outcome === "retried"))
    assert.strictEqual(bars.at(-1)?.outcome, "done")
    assert.strictEqual(
      bars.reduce((sum, { count, kind }) => sum + (kind === "attempt" ? count : 0), 0),
      10_000
    )
  })

  it("takes as long as from the first start to the last end, and the margin beside its bars is no time", () => {
    const attempts = attemptsOf(retried(2), undefined)
    const whole = wholeOf(attempts, now)
    assert.strictEqual(whole.to - whole.from, 1_100)
    assert.isAbove(spanOf(attempts, now).to, whole.to)
  })

  it("shows a bar of several attempts as the task went on, unless it has failed for good", () => {
    const worst = (graph: typeof repaired) =>
      barsOf(attemptsOf(graph, undefined), { from: 0, to: now * 2 }, 100, now).map(({ outcome }) => outcome)
    assert.deepStrictEqual(worst(retried(3)), ["done"])
    assert.deepStrictEqual(worst(repaired), ["dead"])
  })

  it("folds more than 500 rows into groups with counts, which open", () => {
    const attempts = attemptsOf(parentOf(mostRows + 100), undefined)
    const rows = rowsOf(attempts, "p", none)
    assert.deepStrictEqual(
      rows.map(({ detail, kind, tasks }) => [kind, tasks, detail]),
      [["group", 600, "2 failed, 598 done"]]
    )
    assert.lengthOf(rowsOf(attempts, "p", new Set(["group part"])), 601)
    assert.lengthOf(rowsOf(attemptsOf(parentOf(100), undefined), "p", none), 101)
    assert.lengthOf(failuresOf(rows), 2)
  })

  it("has even times on its axis", () => {
    assert.deepStrictEqual(ticksOf({ from: 900, to: 5_100 }, 5), [1_000, 2_000, 3_000, 4_000, 5_000])
  })
})

describe("the graph", () => {
  it("folds statuses into attempts and retries into edges", () => {
    const { edges, nodes } = fold(retried(3))
    assert.deepStrictEqual(
      nodes.map(({ id }) => id),
      ["task:t", "task-attempt:t:1", "task-attempt:t:2", "task-attempt:t:3"]
    )
    assert.deepStrictEqual(
      edges.filter(({ isDashed }) => isDashed).map(({ label }) => label),
      ["retry 1 · handler_error", "retry 2 · handler_error"]
    )
    assert.deepStrictEqual(nodes.at(-1)?.parts, ["status:t:1"])
  })

  it("draws thousands of attempts that look alike by the first and the last of them", () => {
    const { edges, nodes } = fold(retried(10_000, "failed"))
    const titles = nodes.map(({ title }) => title)
    assert.deepStrictEqual(titles.slice(0, 5), ["t", ...[1, 2, 3, 4].map((n) => `attempt ${n}`)])
    assert.include(titles, "9,991 more like these")
    assert.deepStrictEqual(
      titles.slice(-5),
      [9_996, 9_997, 9_998, 9_999, 10_000].map((n) => `attempt ${n}`)
    )
    assert.lengthOf(edges, nodes.length - 1)
    const [folded] = nodes.filter(({ title }) => title.includes("more"))
    assert.isTrue(folded?.parts.includes("task-attempt:t:5000"))
    assert.isUndefined(fold(retried(12)).nodes.find(({ title }) => title.includes("more")))
  })

  it("shows the number of an attempt however long the ids are, and a child after its parent", () => {
    const { edges, nodes } = fold(parentOf(2, "a-task-with-a-very-long-id-1795824612370"))
    const titles = nodes.map(({ title }) => title)
    assert.isTrue(titles.every((title) => title.length <= 26))
    assert.isTrue(titles.some((title) => title.endsWith("12370.1 attempt 1")))
    assert.isTrue(edges.some(({ label, source }) => label === "child" && source.startsWith("task:")))
  })

  it("draws more than 50 children as one node with counts", () => {
    const { nodes } = fold(parentOf(10_000))
    assert.deepStrictEqual(
      nodes.map(({ title }) => title),
      ["p", "10,000 children"]
    )
    assert.deepStrictEqual(nodes.at(-1)?.lines, ["2 failed", "9,998 completed"])
    assert.lengthOf(fold(parentOf(50)).nodes, 101)
  })

  it("finds a place for each of 10,000 nodes, and none twice", () => {
    const { edges, nodes } = fold(workflow(100, 100))
    assert.lengthOf(nodes, 10_001)
    let places = placesOf([], [])
    const took = timeOf(() => {
      places = placesOf(nodes, edges)
    })
    assert.isAtMost(took, 3_000)
    assert.strictEqual(new Set([...places.values()].map(({ x, y }) => `${x} ${y}`)).size, nodes.length)
  })

  it("begins with all of it if it can be read then", () => {
    const places = new Map([
      ["one", { x: 0, y: 0 }],
      ["other", { x: 400, y: 0 }]
    ])
    const view = firstViewport(places, screen, undefined)
    assert.strictEqual(view.zoom, 1)
    const { bottom, left, right, top } = areaOf(view, screen)
    assert.deepStrictEqual([(left + right) / 2, (top + bottom) / 2], [305, size.height / 2])
  })

  it("begins at its left upper end if it is large, or around the chosen node", () => {
    const { edges, nodes } = fold(workflow(100, 100))
    const places = placesOf(nodes, edges)
    const area = areaOf(firstViewport(places, screen, undefined), screen)
    assert.isBelow(area.left, 0)
    assert.isBelow(area.top, 0)
    assert.include(drawnIn(area, places, { nodes, edges }), "task:w")
    const chosen = firstViewport(places, screen, "stage:50:50")
    const ids = drawnIn(areaOf(chosen, screen), places, { nodes, edges })
    assert.include(ids, "stage:50:50")
    assert.notInclude(ids, "task:w")
    assert.isAtMost(ids.length, 300)
  })

  it("without a node begins anywhere", () => {
    assert.deepStrictEqual(firstViewport(new Map(), screen, undefined), { x: 0, y: 0, zoom: 1 })
  })

  it("draws of a node with thousands of edges those that do not lead away", () => {
    const ids = Array.from({ length: 10_000 }, (_, n) => `part ${n}`)
    const star = {
      nodes: ["hub", ...ids].map((id) => ({ id, title: id, lines: [], meaning: "idle" as const, parts: [] })),
      edges: ids.map((target) => ({ id: target, source: "hub", target, label: "", isDashed: false }))
    }
    const places = placesOf(star.nodes, star.edges)
    const nearHub = partIn(areaOf(firstViewport(places, screen, "hub"), screen), places, star)
    assert.include(
      nearHub.nodes.map(({ id }) => id),
      "hub"
    )
    const near = new Set(nearHub.nodes.map(({ id }) => id))
    assert.isTrue(nearHub.edges.every(({ source, target }) => near.has(source) && near.has(target)))
    assert.isAtLeast(nearHub.edges.length, 5)
    assert.isAtMost(nearHub.edges.length, 200)
    const far = partIn(areaOf(firstViewport(places, screen, "part 9000"), screen), places, star)
    assert.include(
      far.edges.map(({ target }) => target),
      "part 9000"
    )
    assert.isAtMost(far.nodes.length, 200)
  })
})

describe("the sequence", () => {
  it("is that of the messages, and says where another clock is behind", () => {
    const graph = retried(2)
    const late = graph.nodes.map((node) =>
      node.id === "task-attempt:t:1" ? { ...node, annotations: { consumer_name: "other" } } : node
    )
    const slow = late.map((node) =>
      node.id.startsWith("task-attempt:t:2") ? { ...node, timestamp: "2026-11-25T23:59:59.000Z" } : node
    )
    const shifted = { ...graph, nodes: slow }
    const steps = stepsOf(shifted, attemptsOf(shifted, undefined))
    assert.deepStrictEqual(
      steps.map(({ isBeforeClock, lifeline, words }) => [lifeline, words, isBeforeClock]),
      [
        ["other", "receives t attempt 1", false],
        ["other", "schedules retry 1: handler_error", false],
        ["w", "receives t attempt 2", true],
        ["w", "completed", false]
      ]
    )
  })
})
