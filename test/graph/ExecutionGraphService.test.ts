import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { ExecutionGraphService, layer } from "../../src/graph/ExecutionGraphService.ts"
import { SharedTasksSharedStatusTopology } from "../../src/messaging/topology/TaskTopology.ts"
import { StatusStore, type StoredStatus } from "../../src/status/store/StatusStore.ts"

const topology = new SharedTasksSharedStatusTopology({
  tasks_exchange: "heavy.tasks",
  tasks_queue: "heavy",
  tasks_routing_key: "heavy.key",
  status_exchange: "heavy.status",
  status_queue: "heavy.status"
})

/** A parent whose children have so many events of so many bytes each. Counts what is read. */
const heavy = (children: number, each: number, bytes: number) => {
  const text = "x".repeat(bytes)
  const read = { bytes: 0, running: 0, most: 0 }
  const store = StatusStore.of({
    store: () => Effect.die("nothing is stored"),
    latest: () => Effect.undefined,
    live: () => Effect.die("nobody follows"),
    childTaskIds: () => Effect.succeed(Array.from({ length: children }, (_, at) => `child-${at}`)),
    history: (taskId, { atMost = { events: each, bytes: Number.POSITIVE_INFINITY } } = {}) =>
      Effect.gen(function* () {
        if (taskId === "parent") read.most = Math.max(read.most, ++read.running)
        yield* Effect.sleep("1 second")
        if (taskId === "parent") read.running--
        const kept = Math.min(each, taskId === "parent" ? 1 : Math.ceil(atMost.bytes / bytes))
        const events = Array.from(
          { length: kept },
          (_, at): StoredStatus => ({
            sequence: at + 1,
            eventId: `${taskId}.${at}`,
            status: "working",
            json: JSON.stringify({ task_id: taskId, status: "working", message: text })
          })
        )
        read.bytes += kept * bytes
        return { events, newest: taskId === "parent" ? 1 : each, oldest: 1 }
      })
  })
  const graphs = layer({ topology }).pipe(Layer.provide(Layer.succeed(StatusStore, store)))
  return { read, graphs }
}

const shown = (graph: Effect.Success<ReturnType<typeof graphOf>>) =>
  graph.nodes.filter(({ kind }) => kind === "status_event").length

const graphOf = (taskId: string) =>
  Effect.flatMap(ExecutionGraphService, ({ graph }) => Effect.map(graph(taskId), Option.getOrThrow))

it.effect.each([
  // what all of them have together is too much
  { children: 500, each: 2, bytes: 1_000_000 },
  // what each of them has is too much
  { children: 500, each: 20, bytes: 1_000_000 }
])(
  "a graph is made of a bounded number of bytes, and says which children it leaves out: %j",
  ({ bytes, children, each }) =>
    Effect.gen(function* () {
      const { graphs, read } = heavy(children, each, bytes)
      const asked = yield* Effect.forkChild(Effect.provide(graphOf("parent"), graphs))
      yield* TestClock.adjust("2 minutes")
      const graph = yield* Fiber.join(asked)
      const left = graph.summary.completeness_reasons.find(({ reason }) => reason === "evidence_limit_reached")
      assert.isAtLeast(left?.task_ids.length ?? 0, 450)
      assert.isAtMost(shown(graph) * bytes, 40_000_000)
      assert.isAtMost(read.bytes, 100_000_000)
    })
)

it.effect("a process makes four graphs at once", () =>
  Effect.gen(function* () {
    const { graphs, read } = heavy(1, 1, 1)
    const asked = yield* Effect.forkChild(
      Effect.provide(
        Effect.forEach(Array.from({ length: 20 }), () => graphOf("parent"), { concurrency: 20 }),
        graphs
      )
    )
    yield* TestClock.adjust("2 minutes")
    assert.lengthOf(yield* Fiber.join(asked), 20)
    assert.strictEqual(read.most, 4)
  })
)
