import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as BatchFanOut from "../../../src/messaging/consume/BatchFanOut.ts"
import * as BatchEnvelope from "../../../src/messaging/envelope/BatchEnvelope.ts"
import * as StatusEvent from "../../../src/messaging/envelope/StatusEvent.ts"
import * as TaskEnvelope from "../../../src/messaging/envelope/TaskEnvelope.ts"
import * as WorkflowEnvelope from "../../../src/messaging/envelope/WorkflowEnvelope.ts"
import * as Publications from "../../../src/messaging/publish/Publications.ts"
import * as BrokerCapabilities from "../../../src/messaging/topology/BrokerCapabilities.ts"
import {
  RoutedTasksSharedStatusTopology,
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "../../../src/messaging/topology/TaskTopology.ts"
import { SharedStatusWorkflowTopology } from "../../../src/messaging/topology/WorkflowTopology.ts"
import * as SampleTopologies from "../SampleTopologies.ts"

const now = "2026-04-06T10:00:00Z"
const tasks = { status_exchange: "status", status_queue: "sq", tasks_exchange: "tasks", tasks_queue: "tq" }
const shared = new SharedTasksSharedStatusTopology({ ...tasks, tasks_routing_key: "key", task_max_priority: 10 })
const unlimited = new SharedTasksSharedStatusTopology({ ...tasks, tasks_routing_key: "key" })
const routed = new RoutedTasksSharedStatusTopology({ ...tasks, task_types: ["a", "b"] })
const sharded = new SharedTasksSharedStatusShardedAggregationTopology({
  ...tasks,
  tasks_routing_key: "key",
  shard_count: 16
})
const stage = (name: string, more: object = {}) => ({
  name,
  queue: `${name}.queue`,
  binding_keys: [`${name}.#`],
  publish_routing_key: `${name}.main.in`,
  ...more
})
const workflow = new SharedStatusWorkflowTopology({
  status_exchange: "status",
  status_queue: "sq",
  workflow_exchange: "workflow",
  workflow_max_priority: 5,
  stages: [stage("planner", { allowed_next_stages: ["writer"] }), stage("writer", { terminal: true })],
  entry_routes: [{ name: "start", routing_key: "planner.start.in", target_stage: "planner" }]
})

describe("a task", () => {
  it("travels persistent, as JSON, with its id in a header and its correlation id", () => {
    const given = task({ correlation_id: "c", priority: 7 })
    assert.deepStrictEqual(
      Publications.task(shared, given, { headers: { own: 1 } }),
      Result.succeed({
        purpose: "tasks" as const,
        exchange: "tasks",
        routingKey: "key",
        content: Result.getOrThrow(TaskEnvelope.encode(given)),
        properties: {
          contentType: "application/json",
          persistent: true,
          headers: { task_id: "t", own: 1 },
          correlationId: "c",
          priority: 7
        }
      })
    )
  })

  it("has no priority property without a priority, and its id for a correlation id", () => {
    const { properties } = Result.getOrThrow(Publications.task(shared, task({})))
    assert.notProperty(properties, "priority")
    assert.strictEqual(properties.correlationId, "t")
  })

  it("lets the caller's headers win", () => {
    const { properties } = Result.getOrThrow(Publications.task(shared, task({}), { headers: { task_id: "other" } }))
    assert.deepStrictEqual(properties.headers, { task_id: "other" })
  })

  it("is refused with a priority above the queue's maximum, which is named; without a maximum none is", () => {
    const refused = Publications.task(shared, task({ priority: 11 }))
    assert.strictEqual(reason(refused), "priority_above_maximum")
    assert.include(Result.isFailure(refused) ? refused.failure.message : "", "at most 10 (task_max_priority)")
    assert.strictEqual(reason(Publications.task(shared, task({ priority: 10 }))), "taken")
    assert.strictEqual(reason(Publications.task(unlimited, task({ priority: 255 }))), "taken")
  })

  it("knows the maximum that came through an escape hatch", () => {
    const raw = { ...tasks, tasks_routing_key: "key", task_queue_kwargs: { "x-max-priority": 3 } }
    const refused = Publications.task(new SharedTasksSharedStatusTopology(raw), task({ priority: 4 }))
    assert.strictEqual(reason(refused), "priority_above_maximum")
  })

  it.each([
    ["3.13.0", undefined, undefined],
    ["4.1.0", 0, 5],
    ["4.3.0", 3, 31]
  ])("on a quorum queue of RabbitMQ %s has the priorities that there are", (version, low, high) => {
    const topology = new SharedTasksSharedStatusTopology({
      ...tasks,
      tasks_routing_key: "key",
      task_queue_type: "quorum",
      task_max_priority: 100
    })
    const capabilities = BrokerCapabilities.of(version)
    const sent = [10, 100].map(
      (priority) =>
        Result.getOrThrow(Publications.task(topology, task({ priority }), { ...(capabilities && { capabilities }) }))
          .properties.priority
    )
    assert.deepStrictEqual(sent, [low, high])
  })
})

describe("a batch", () => {
  it("travels as one message with the id and the size of the batch", () => {
    const given = batch([{ priority: 2 }, { priority: 2 }])
    const { properties, routingKey } = Result.getOrThrow(Publications.batch(shared, given))
    assert.strictEqual(routingKey, "key")
    assert.deepStrictEqual(properties, {
      contentType: "application/json",
      persistent: true,
      headers: { batch_id: "b", batch_size: 2 },
      correlationId: "b",
      priority: 2
    })
  })

  it.each([
    [[{ priority: 1 }, { priority: 2 }], "mixed_priorities"],
    [[{ priority: 1 }, {}], "mixed_priorities"],
    [[{ priority: 11 }], "priority_above_maximum"]
  ])("is refused with %j: %s", (items, expected) => {
    assert.strictEqual(reason(Publications.batch(shared, batch(items))), expected)
  })

  it("is refused with several task types, or none, on a routed topology", () => {
    assert.strictEqual(
      reason(Publications.batch(routed, batch([{ task_type: "a" }, { task_type: "b" }]))),
      "mixed_task_types"
    )
    assert.strictEqual(reason(Publications.batch(routed, batch([{ task_type: "a" }, {}]))), "task_type_required")
  })

  it("becomes one message for each task, straight to the queue, with exactly four headers", () => {
    const given = batch([{ priority: 1 }, { correlation_id: "c" }])
    const sent = Result.getOrThrow(
      BatchFanOut.publications(given, { queue: "tq", contentType: undefined, priority: 9 })
    )
    assert.deepStrictEqual(
      sent.map(({ exchange, properties, routingKey }) => ({ exchange, routingKey, ...properties })),
      ["t0", "c"].map((correlationId, index) => ({
        exchange: "",
        routingKey: "tq",
        contentType: "application/json",
        persistent: true,
        correlationId,
        priority: 9,
        headers: { task_id: `t${index}`, batch_id: "b", batch_index: index, batch_size: 2 }
      }))
    )
    const alone = BatchFanOut.publications(given, { queue: "tq", contentType: "text/json", priority: undefined })
    assert.deepStrictEqual(
      Result.getOrThrow(alone).map(({ properties }) => [properties.contentType, properties.priority]),
      [
        ["text/json", 1],
        ["text/json", undefined]
      ]
    )
    const body: unknown = JSON.parse(new TextDecoder().decode(sent[0]?.content))
    assert.deepStrictEqual(body, { task_id: "t0", payload: {}, created_at: now, priority: 1, spec_version: "1.0" })
  })

  it("says where an item stood, and of a task that came alone nothing", () => {
    assert.deepStrictEqual(BatchFanOut.positionOf({ batch_id: "b", batch_index: 1, batch_size: 3n }), {
      batchId: "b",
      batchIndex: 1,
      batchSize: 3
    })
    assert.isUndefined(BatchFanOut.positionOf({ task_id: "t" }))
  })

  it("mixes task types where more than one is named", () => {
    assert.isFalse(BatchFanOut.hasMixedTaskTypes(batch([{ task_type: "a" }, { task_type: " a" }, {}])))
    assert.isTrue(BatchFanOut.hasMixedTaskTypes(batch([{ task_type: "a" }, { task_type: "b" }])))
  })
})

describe("a status", () => {
  it("goes by its task id, with the task and the status in headers, and priority 0", () => {
    const sent = Result.getOrThrow(Publications.status(shared, { task_id: "t", status: "s" }, { now, unique: "u" }))
    assert.strictEqual(sent.purpose, "statuses")
    assert.strictEqual(sent.exchange, "status")
    assert.strictEqual(sent.routingKey, "t")
    assert.deepStrictEqual(sent.properties, {
      contentType: "application/json",
      persistent: true,
      headers: { task_id: "t", status: "s" },
      correlationId: "t",
      priority: 0
    })
    const body = Result.getOrThrow(StatusEvent.fromBytes(sent.content, now))
    assert.deepStrictEqual([body.event_id, body.correlation_id], ["u", "t"])
  })

  it("for aggregation goes to the shard of its parent, overwrites shard and role, and is identified as it is stored", () => {
    const meta = { parent_task_id: "parent-1", aggregation_shard: 99, aggregation_role: "other", own: 1 }
    const event = { task_id: "t", status: "s", timestamp: now, meta }
    const sent = Result.getOrThrow(Publications.aggregationStatus(sharded, event, { now, unique: "u" }))
    assert.strictEqual(sent.routingKey, "agg.13")
    const body = Result.getOrThrow(StatusEvent.fromBytes(sent.content, now))
    assert.deepStrictEqual(body.meta, {
      parent_task_id: "parent-1",
      aggregation_shard: 13,
      aggregation_role: "aggregation",
      own: 1
    })
    assert.deepStrictEqual(StatusEvent.eventId(body), Result.succeed(body.event_id ?? ""))
  })

  it("is refused above the limit of its topology, which the error names with the way out", () => {
    const small = SampleTopologies.sharded({ status_max_event_bytes: 1_024 })
    const event = {
      task_id: "t",
      status: "completed",
      meta: { parent_task_id: "p" },
      result: { text: "x".repeat(1_024) }
    }
    for (const publication of [Publications.status, Publications.aggregationStatus]) {
      const refused = publication(small, event, { now, unique: "u" })
      assert.strictEqual(reason(refused), "status_too_large")
      const { message } = Result.getOrThrow(Result.flip(refused))
      assert.match(message, /completed of task t has \d+ bytes.*at most 1024.*raise status_max_event_bytes/)
    }
  })

  it("for aggregation is refused without a parent", () => {
    const refused = Publications.aggregationStatus(sharded, { task_id: "t", status: "s" }, { now, unique: "u" })
    assert.strictEqual(reason(refused), "parent_task_id_required")
  })
})

describe("workflow work", () => {
  it("goes to a stage by its publish key, with the hand-over in headers", () => {
    const given = handOver({ stage: "ignored", origin_stage: "planner", priority: 5 })
    const sent = Result.getOrThrow(Publications.workflow(workflow, given, { _tag: "Stage", stage: "writer" }))
    assert.strictEqual(sent.exchange, "workflow")
    assert.strictEqual(sent.routingKey, "writer.main.in")
    assert.deepStrictEqual(sent.properties.headers, {
      task_id: "t",
      message_id: "m",
      stage: "writer",
      origin_stage: "planner"
    })
    assert.strictEqual(Result.getOrThrow(WorkflowEnvelope.fromBytes(sent.content, "x")).stage, "writer")
  })

  it("has a correlation id in its body: its own, else its task id, behind everything else", () => {
    const bodyOf = (given: object): unknown =>
      JSON.parse(
        Buffer.from(
          Result.getOrThrow(Publications.workflow(workflow, handOver(given), { _tag: "Entry", route: "start" })).content
        ).toString()
      )
    assert.deepInclude(bodyOf({ correlation_id: "c" }), { correlation_id: "c" })
    assert.deepInclude(bodyOf({ correlation_id: "" }), { correlation_id: "t" })
    const body = Object(bodyOf({ own: 1 }))
    assert.deepStrictEqual(Object.entries(body).at(-1), ["correlation_id", "t"])
  })

  it("goes to an entry by its key, and becomes work of the target", () => {
    const sent = Result.getOrThrow(Publications.workflow(workflow, handOver({}), { _tag: "Entry", route: "start" }))
    assert.strictEqual(sent.routingKey, "planner.start.in")
    assert.strictEqual(sent.properties.headers?.["stage"], "planner")
  })

  it("goes by a raw key to the stage that it means", () => {
    const target = { _tag: "Key", routingKey: "writer.other.in" } as const
    const sent = Result.getOrThrow(Publications.workflow(workflow, handOver({}), target))
    assert.strictEqual(sent.routingKey, "writer.other.in")
    assert.strictEqual(sent.properties.headers?.["stage"], "writer")
  })

  it("is refused above workflow_max_priority, to nobody, and against a contract", () => {
    const to = (stage: string, given: object) =>
      reason(Publications.workflow(workflow, handOver(given), { _tag: "Stage", stage }))
    assert.strictEqual(to("writer", { priority: 6 }), "priority_above_maximum")
    assert.strictEqual(to("nobody", {}), "unknown_stage")
    const stray = Publications.workflow(workflow, handOver({ origin_stage: "nobody" }), {
      _tag: "Stage",
      stage: "writer"
    })
    assert.deepInclude(Result.isFailure(stray) ? stray.failure : {}, {
      reason: "unknown_stage",
      field: "origin_stage"
    })
    assert.strictEqual(to("planner", { origin_stage: "planner" }), "forbidden_transition")
    assert.strictEqual(to("planner", { origin_stage: "writer" }), "terminal_stage_handoff")
  })
})

describe("raw bytes", () => {
  it("go straight to a queue as they are, with the priority that they had", () => {
    const content = new Uint8Array([1, 2])
    assert.deepStrictEqual(Publications.raw("q", content, { headers: { a: 1 }, correlationId: "c", priority: 3 }), {
      purpose: "retries",
      exchange: "",
      routingKey: "q",
      content,
      properties: {
        contentType: "application/json",
        persistent: true,
        headers: { a: 1 },
        correlationId: "c",
        priority: 3
      }
    })
  })
})

function task(given: object) {
  return Result.getOrThrow(TaskEnvelope.read({ task_id: "t", ...given }, now))
}

function batch(items: ReadonlyArray<object>) {
  const tasks = items.map((item, index) => ({ task_id: `t${index}`, ...item }))
  return Result.getOrThrow(BatchEnvelope.read({ batch_id: "b", tasks }, now))
}

function handOver(given: object) {
  return Result.getOrThrow(WorkflowEnvelope.read({ task_id: "t", stage: "planner", message_id: "m", ...given }, "x"))
}

function reason(result: Result.Result<unknown, { readonly reason: string }>) {
  return Result.isFailure(result) ? result.failure.reason : "taken"
}
