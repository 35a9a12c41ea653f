import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import type { InvalidPublish } from "../../src/messaging/envelope/Errors.ts"
import * as StatusEvent from "../../src/messaging/envelope/StatusEvent.ts"
import * as TaskEnvelope from "../../src/messaging/envelope/TaskEnvelope.ts"
import * as RoutingKey from "../../src/messaging/publish/RoutingKey.ts"
import * as Shards from "../../src/messaging/topology/Shards.ts"
import {
  RoutedTasksSharedStatusTopology,
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "../../src/messaging/topology/TaskTopology.ts"
import * as TopicPattern from "../../src/messaging/topology/TopicPattern.ts"
import { SharedStatusWorkflowTopology } from "../../src/messaging/topology/WorkflowTopology.ts"

const now = "2026-04-06T10:00:00Z"
const tasks = { status_exchange: "s", status_queue: "sq", tasks_exchange: "t", tasks_queue: "tq" }
const shared = new SharedTasksSharedStatusTopology({ ...tasks, tasks_routing_key: " tasks " })
const routed = new RoutedTasksSharedStatusTopology({ ...tasks, task_types: ["generate"] })
const sharded = new SharedTasksSharedStatusShardedAggregationTopology({
  ...tasks,
  tasks_routing_key: "k",
  shard_count: 4
})
const workflow = new SharedStatusWorkflowTopology({
  status_exchange: "s",
  status_queue: "sq",
  workflow_exchange: "w",
  stages: [
    { name: "any", queue: "a", binding_keys: ["*.any.#", "exact.in"], publish_routing_key: "x.any" },
    { name: "writer", queue: "b", binding_keys: ["writer.*.in", "x.any.writer"], publish_routing_key: "writer.main.in" }
  ],
  entry_routes: [{ name: "start", routing_key: "writer.start.in", target_stage: "writer" }]
})

describe("the shard of a parent", () => {
  it.each([
    ["parent-1", [0, 1, 2, 1, 5, 13]],
    ["parent-123", [0, 1, 2, 1, 1, 1]],
    ["root-task-123", [0, 0, 2, 2, 2, 10]],
    ["task-123", [0, 1, 2, 1, 1, 9]],
    ["a", [0, 1, 1, 3, 3, 11]],
    ["สวัสดี", [0, 0, 2, 2, 2, 10]],
    ["0b5c9d2e-3c1a-4b57-9a55-0d8f0c2f2b11", [0, 1, 2, 3, 3, 11]]
  ])("of %s is golden", (parent, shards) => {
    assert.deepStrictEqual(
      [1, 2, 3, 4, 8, 16].map((count) => Shards.shardOf(parent, count)),
      shards
    )
  })

  it("of p0 to p9 is golden", () => {
    assert.deepStrictEqual(
      Array.from({ length: 10 }, (_, index) => Shards.shardOf(`p${index}`, 4)),
      [0, 2, 3, 1, 0, 3, 3, 2, 2, 2]
    )
  })

  it("is one of them, always the same, and follows from the shard of a multiple", () => {
    const count = fc.integer({ min: 1, max: 256 })
    fc.assert(
      fc.property(fc.string(), count, count, (parent, count, factor) => {
        const shard = Shards.shardOf(parent, count)
        assert.isTrue(Number.isInteger(shard) && shard >= 0 && shard < count)
        assert.strictEqual(Shards.shardOf(parent, count * factor) % count, shard)
      })
    )
  })

  it("spreads parents: none of 16 shards gets twice its share of 16,000", () => {
    const sizes = new Array<number>(16).fill(0)
    for (let index = 0; index < 16_000; index++) {
      const shard = Shards.shardOf(`task-${index}`, 16)
      sizes[shard] = (sizes[shard] ?? 0) + 1
    }
    assert.isBelow(Math.max(...sizes), 2000)
    assert.isAbove(Math.min(...sizes), 500)
  })
})

describe("groups of shards", () => {
  it("must not overlap, nor name what does not exist", () => {
    assert.isUndefined(Shards.groupsProblem([[0, 1], [2]], 4))
    assert.include(Shards.groupsProblem([[0], [0, 1]], 4), "groups 0 and 1 both contain shard 0")
    assert.include(Shards.groupsProblem([[0], [4]], 4), "group 1 contains shard 4")
    assert.include(Shards.groupsProblem([[0], []], 4), "group 1 contains no shard")
    assert.include(Shards.groupsProblem([], 4), "contains no group")
  })
})

describe("a topic pattern", () => {
  it.each([
    ["#", "", true],
    ["#", "a.b.c", true],
    ["*", "", false],
    ["*", "a", true],
    ["*", "a.b", false],
    ["a.#", "a", true],
    ["a.#.b", "a.b", true],
    ["a.#.b", "a.x.y.b", true],
    ["a.*.b", "a.b", false],
    ["planner.*.in", "planner.main.in", true],
    ["a", "A", false],
    ["a.", "a", false],
    ["*.*", ".", true]
  ])("%s and %s: %s", (pattern, key, expected) => {
    assert.strictEqual(TopicPattern.matches(pattern, key), expected)
  })

  it("agrees with a matcher that tries everything", () => {
    const word = fc.constantFrom("a", "b", "")
    const key = fc.array(word, { maxLength: 6 }).map((words) => words.join("."))
    const pattern = fc
      .array(fc.oneof(word, fc.constantFrom("*", "#")), { maxLength: 6 })
      .map((words) => words.join("."))
    fc.assert(
      fc.property(pattern, key, (pattern, key) => {
        assert.strictEqual(TopicPattern.matches(pattern, key), naively(split(pattern), split(key)))
      }),
      { numRuns: 2000 }
    )
  })

  it("is read in time that does not explode", () => {
    assert.isFalse(TopicPattern.matches(`${"#.".repeat(100)}end`, "a.".repeat(100)))
  })
})

describe("the routing key of a task", () => {
  it("is the one key of a shared topology, and the trimmed task_type of a routed one", () => {
    assert.deepStrictEqual(RoutingKey.ofTask(shared, task({})), Result.succeed("tasks"))
    assert.deepStrictEqual(RoutingKey.ofTask(routed, task({ task_type: " generate " })), Result.succeed("generate"))
  })

  it.each([[undefined], [null], [""], ["  "]])(
    "is refused without a task_type on a routed topology: %j",
    (task_type) => {
      assert.strictEqual(reason(RoutingKey.ofTask(routed, task({ task_type }))), "task_type_required")
    }
  )

  it("is refused on a workflow topology, with the operations that there are instead", () => {
    const refused = RoutingKey.ofTask(workflow, task({}))
    assert.strictEqual(reason(refused), "only_workflow")
    assert.include(Result.isFailure(refused) ? refused.failure.message : "", "publishToStage")
  })

  it("may be somebody's own on a shared topology, if AMQP can carry it", () => {
    const strategy = (key: string) =>
      new SharedTasksSharedStatusTopology({
        ...tasks,
        tasks_routing_key: "unused",
        routing_strategy: { taskRoutingKey: () => key, statusRoutingKey: () => `${key}.status` }
      })
    assert.deepStrictEqual(RoutingKey.ofTask(strategy("own"), task({})), Result.succeed("own"))
    assert.deepStrictEqual(RoutingKey.ofStatus(strategy("own"), status({})), Result.succeed("own.status"))
    assert.strictEqual(reason(RoutingKey.ofTask(strategy("k".repeat(256)), task({}))), "routing_key")
    assert.strictEqual(reason(RoutingKey.ofTask(strategy("\ud800"), task({}))), "routing_key")
    const broken = new SharedTasksSharedStatusTopology({
      ...tasks,
      tasks_routing_key: "k",
      routing_strategy: {
        taskRoutingKey: ({ meta }) => String(Object(meta)["tenant"].id),
        statusRoutingKey: ({ meta }) => Object(meta)["tenant"]
      }
    })
    assert.strictEqual(reason(RoutingKey.ofTask(broken, task({}))), "routing_key")
    assert.strictEqual(reason(RoutingKey.ofStatus(broken, status({}))), "routing_key")
  })
})

describe("the routing key of a status", () => {
  it("is its task id", () => {
    assert.deepStrictEqual(RoutingKey.ofStatus(shared, status({})), Result.succeed("t"))
  })

  it("is refused where it would lead into a shard, for the task as for its statuses", () => {
    assert.strictEqual(reason(RoutingKey.ofStatus(sharded, status({ task_id: "agg.0" }))), "task_id")
    assert.strictEqual(reason(RoutingKey.ofTask(sharded, task({ task_id: "agg.17" }))), "task_id")
    assert.isTrue(Result.isSuccess(RoutingKey.ofStatus(sharded, status({ task_id: "agg.0x" }))))
    assert.isTrue(Result.isSuccess(RoutingKey.ofStatus(shared, status({ task_id: "agg.0" }))))
  })

  it("for aggregation is the shard of its parent, which it must name", () => {
    assert.deepStrictEqual(
      RoutingKey.ofAggregation(sharded, status({ meta: { parent_task_id: "parent-1" } })),
      Result.succeed({ shard: 1, routingKey: "agg.1" })
    )
    assert.strictEqual(reason(RoutingKey.ofAggregation(sharded, status({}))), "parent_task_id_required")
    assert.strictEqual(reason(RoutingKey.ofAggregation(shared, status({}))), "no_aggregation")
  })
})

describe("a stage", () => {
  it.each([
    ["writer.main.in", "writer"],
    ["exact.in", "any"],
    ["x.any.writer", "writer"],
    ["writer.start.in", "writer"],
    ["y.any.z", "any"]
  ])("is found by the key %s: publish key, exact binding, entry route, pattern", (key, name) => {
    assert.deepStrictEqual(
      Result.map(RoutingKey.stageOfKey(workflow, key), ({ name }) => name),
      Result.succeed(name)
    )
  })

  it("is not found by what nothing is bound to, by an unknown name, queue or entry", () => {
    assert.strictEqual(reason(RoutingKey.stageOfKey(workflow, "nowhere")), "unroutable_key")
    assert.strictEqual(reason(RoutingKey.findStage(workflow, "nobody")), "unknown_stage")
    assert.strictEqual(reason(RoutingKey.stageOfQueue(workflow, "nobody")), "unknown_stage")
    assert.strictEqual(reason(RoutingKey.findEntryRoute(workflow, "nobody")), "unknown_entry")
    assert.strictEqual(reason(RoutingKey.findStage(shared, "any")), "not_a_workflow")
  })
})

function naively(pattern: ReadonlyArray<string>, words: ReadonlyArray<string>): boolean {
  const [first, ...rest] = pattern
  if (first === undefined) return words.length === 0
  if (first === "#") return words.some((_, at) => naively(rest, words.slice(at))) || naively(rest, [])
  return words.length > 0 && (first === "*" || first === words[0]) && naively(rest, words.slice(1))
}

function split(text: string) {
  return text === "" ? [] : text.split(".")
}

function task(given: object) {
  return Result.getOrThrow(TaskEnvelope.read({ task_id: "t", ...given }, now))
}

function status(given: object) {
  return Result.getOrThrow(StatusEvent.read({ task_id: "t", status: "s", ...given }, now))
}

function reason(result: Result.Result<unknown, InvalidPublish>) {
  return Result.isFailure(result) ? result.failure.reason : "taken"
}
