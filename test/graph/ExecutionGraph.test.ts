import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { buildExecutionGraph, ExecutionGraph, isKnown } from "../../src/graph/ExecutionGraph.ts"
import { type Observed, of } from "../../src/messaging/observe/Observation.ts"
import type { DeadLetterSummary } from "../../src/status/dead-letters/DeadLetterStore.ts"
import { workflow } from "../messaging/SampleTopologies.ts"
import {
  at,
  deadLettered,
  edgesOf,
  evidence,
  handedOver,
  nodesOf,
  observations,
  received,
  record,
  retried,
  staged,
  statuses
} from "./Evidence.ts"

const T = "task-123"

const graphOf = (...given: Parameters<typeof evidence>) => buildExecutionGraph(evidence(...given))

const nodeOf = ({ nodes }: ExecutionGraph, id: string) => nodes.find((node) => node.id === id)

describe("buildExecutionGraph: the reference's graphs", () => {
  it("a shared task that is retried, then dead-lettered", () => {
    const graph = graphOf({
      statuses: new Map([[T, statuses(T, ["processing", 1], ["failed", 3])]]),
      observations: new Map([
        [T, observations(received(0), retried(2), received(2.5, { retry_attempt: 1 }), deadLettered(3))]
      ])
    })
    assert.deepStrictEqual(nodesOf(graph), [
      [`task:${T}`, null],
      [`task-attempt:${T}:1`, 0],
      [`status:${T}:1`, 1],
      [`retry:${T}:1`, 2],
      [`task-attempt:${T}:2`, 2.5],
      [`dlq:${T}:1`, 3],
      [`status:${T}:2`, 3]
    ])
    assert.deepStrictEqual(edgesOf(graph), [
      [`task:${T} received_by task-attempt:${T}:1`, 0],
      [`task-attempt:${T}:1 published_status status:${T}:1`, 1],
      [`task-attempt:${T}:1 retried_as retry:${T}:1`, 2],
      [`retry:${T}:1 received_by task-attempt:${T}:2`, 2.5],
      [`task:${T} received_by task-attempt:${T}:2`, 2.5],
      [`task-attempt:${T}:2 dead_lettered_to dlq:${T}:1`, 3],
      [`task-attempt:${T}:2 published_status status:${T}:2`, 3]
    ])
    assert.deepStrictEqual(graph.summary, {
      status: "failed",
      started_at: "2026-04-06T10:00:00+00:00",
      ended_at: "2026-04-06T10:00:03Z",
      duration_ms: 3000,
      graph_completeness: "full",
      completeness_reasons: []
    })
    assert.deepStrictEqual(graph.annotations, {})
    assert.deepStrictEqual(graph.related_task_ids, [])
    assert.strictEqual(graph.topology_kind, "shared_tasks_shared_status")
  })

  it("a workflow", () => {
    const graph = graphOf({
      topology: { kind: "shared_status_workflow" },
      statuses: new Map([[T, statuses(T, ["planning", 1], ["completed", 3])]]),
      observations: new Map([
        [
          T,
          observations(
            staged(0, "planner", "msg-1"),
            handedOver(2, "planner", "writer", "msg-2"),
            staged(2.1, "writer", "msg-2", { origin_stage: "planner" })
          )
        ]
      ])
    })
    assert.deepStrictEqual(nodesOf(graph), [
      [`task:${T}`, null],
      [`stage-attempt:${T}:planner:1`, 0],
      ["workflow-message:msg-1", 0],
      [`status:${T}:1`, 1],
      ["workflow-message:msg-2", 2],
      [`stage-attempt:${T}:writer:1`, 2.1],
      [`status:${T}:2`, 3]
    ])
    assert.deepStrictEqual(edgesOf(graph), [
      [`workflow-message:msg-1 entered_stage stage-attempt:${T}:planner:1`, 0],
      [`task:${T} received_by workflow-message:msg-1`, 0],
      [`stage-attempt:${T}:planner:1 published_status status:${T}:1`, 1],
      [`stage-attempt:${T}:planner:1 stage_transitioned_to workflow-message:msg-2`, 2],
      [`workflow-message:msg-2 entered_stage stage-attempt:${T}:writer:1`, 2.1],
      [`stage-attempt:${T}:writer:1 published_status status:${T}:2`, 3]
    ])
    const { duration_ms, graph_completeness, status } = graph.summary
    assert.deepStrictEqual([status, duration_ms, graph_completeness], ["completed", 3000, "full"])
  })

  it("a task that is handed over by hand", () => {
    const graph = graphOf({
      topology: { kind: "routed_tasks_shared_status" },
      statuses: new Map([[T, statuses(T, ["queued", 0], ["manual_retrying", 2], ["completed", 4])]]),
      observations: new Map([
        [T, observations(received(1, { task_type: "task.generate" }), received(3, { task_type: "task.review" }))]
      ])
    })
    assert.deepStrictEqual(edgesOf(graph), [
      [`task-attempt:${T}:1 published_status status:${T}:1`, 0],
      [`task:${T} received_by task-attempt:${T}:1`, 1],
      [`task-attempt:${T}:1 manual_retry_to task-attempt:${T}:2`, 2],
      [`task-attempt:${T}:1 published_status status:${T}:2`, 2],
      [`task:${T} received_by task-attempt:${T}:2`, 3],
      [`task-attempt:${T}:2 published_status status:${T}:3`, 4]
    ])
    assert.deepStrictEqual(graph.annotations, { task_types: ["task.generate", "task.review"] })
    assert.strictEqual(graph.summary.duration_ms, 4000)
    assert.deepInclude(nodeOf(graph, `task-attempt:${T}:2`)?.annotations, { task_type: "task.review" })
  })

  it("a parent with children", () => {
    const graph = graphOf({
      topology: { kind: "shared_tasks_shared_status_sharded_aggregation" },
      taskId: "p",
      relatedTaskIds: ["c2", "c1", "", "p", "c1"],
      statuses: new Map([
        ["p", statuses("p", ["completed", 9])],
        ["c1", statuses("c1", ["aggregating", 1])]
      ]),
      observations: new Map([["c1", observations(received(2, { task_id: "c1" }))]]),
      deadLetters: [record(5, { task_id: "c1" })]
    })
    assert.deepStrictEqual(nodesOf(graph), [
      ["aggregation_child:c1", null],
      ["aggregation_child:c2", null],
      ["task:p", null],
      ["status:c1:1", 1],
      ["task-attempt:c1:1", 2],
      ["dlq:c1:record:1", 5],
      ["status:p:1", 9]
    ])
    assert.deepStrictEqual(edgesOf(graph), [
      ["aggregation_child:c1 aggregated_into task:p", null],
      ["aggregation_child:c2 aggregated_into task:p", null],
      ["task-attempt:c1:1 published_status status:c1:1", 1],
      ["aggregation_child:c1 received_by task-attempt:c1:1", 2],
      ["task-attempt:c1:1 dead_lettered_to dlq:c1:record:1", 5],
      ["task:p published_status status:p:1", 9]
    ])
    assert.deepInclude(graph.summary, {
      status: "completed",
      started_at: "2026-04-06T10:00:01Z",
      ended_at: "2026-04-06T10:00:09Z",
      duration_ms: 8000
    })
    assert.deepStrictEqual(graph.related_task_ids, ["c1", "c2"])
  })
})

describe("buildExecutionGraph", () => {
  it("meets its schema, with nothing known as well", () => {
    const decode = Schema.decodeUnknownSync(ExecutionGraph)
    const graph = graphOf({ deadLetters: [record(1)], statuses: new Map([[T, statuses(T, ["failed", 1])]]) })
    assert.deepStrictEqual(decode(JSON.parse(JSON.stringify(graph))), graph)
    assert.isFalse(isKnown(evidence()))
    assert.deepStrictEqual(graphOf(), {
      task_id: T,
      topology_kind: "shared_tasks_shared_status",
      summary: {
        status: null,
        started_at: null,
        ended_at: null,
        duration_ms: null,
        graph_completeness: "partial",
        completeness_reasons: []
      },
      nodes: [{ id: `task:${T}`, kind: "task", task_id: T, label: T, timestamp: null, annotations: {} }],
      edges: [],
      annotations: {},
      related_task_ids: []
    })
  })

  it("without observations shows the task, its statuses and its dead letters, and says why that is all", () => {
    const graph = graphOf({
      statuses: new Map([[T, statuses(T, ["processing", 1], ["failed", 3])]]),
      deadLetters: [record(3)]
    })
    assert.deepStrictEqual(nodesOf(graph), [
      [`task:${T}`, null],
      [`status:${T}:1`, 1],
      [`dlq:${T}:record:1`, 3],
      [`status:${T}:2`, 3]
    ])
    assert.deepInclude(graph.summary, {
      graph_completeness: "partial",
      completeness_reasons: [{ reason: "observations_missing", task_ids: [T] }]
    })
  })

  it("shows a dead letter once, that was observed and recorded", () => {
    const observed = observations(received(0), deadLettered(1, { retry_attempt: 0 }), received(8), received(9))
    const graph = graphOf({
      observations: new Map([[T, observed]]),
      deadLetters: [
        record(1.004, { retry_attempt: 0 }),
        record(1.004, { retry_attempt: 0 }),
        record(8.5, { retry_attempt: 0 }),
        record(1, { retry_attempt: 0, dlq_id: "of another queue", queue_name: "other.dlq" }),
        record(1, { retry_attempt: 0, dlq_id: "of another task", task_id: "other" })
      ]
    })
    assert.deepStrictEqual(
      graph.nodes.filter(({ kind }) => kind === "dlq_record").map(({ annotations, id }) => [id, annotations["dlq_id"]]),
      [
        [`dlq:${T}:1`, "dlq-1.004"],
        [`dlq:${T}:record:1`, "of another queue"],
        [`dlq:${T}:record:2`, "dlq-8.5"]
      ]
    )
    assert.deepInclude(nodeOf(graph, `dlq:${T}:1`), { timestamp: "2026-04-06T10:00:01+00:00", label: "handler_error" })
    assert.deepInclude(edgesOf(graph), [`task-attempt:${T}:2 dead_lettered_to dlq:${T}:record:2`, 8.5])
  })

  it("connects a dead letter with the attempt that its replay became", () => {
    const observed = [received(0), deadLettered(1, { retry_attempt: 0 })]
    const became = (seen: ReadonlyArray<Observed>, replayed: number, state: DeadLetterSummary["state"] = "replayed") =>
      edgesOf(
        graphOf({
          observations: new Map([[T, observations(...observed, ...seen)]]),
          deadLetters: [
            record(1, {
              state,
              replayed_at: at(replayed),
              replay_target_queue_name: "tasks.queue",
              retry_attempt: 0
            })
          ]
        })
      ).filter(([edge]) => String(edge).startsWith("dlq:"))
    const after = [
      received(2, { queue_name: "other" }),
      received(7),
      received(30, { retry_attempt: 1 }),
      received(40.9)
    ]
    assert.deepStrictEqual(became(after, 41), [[`dlq:${T}:1 received_by task-attempt:${T}:5`, 40.9]])
    assert.deepStrictEqual(became(after, 50), [])
    assert.deepStrictEqual(became([received(7)], 6, "replay_unknown"), [])
  })

  it("connects the replays of a workflow, message by message", () => {
    const letter = { source_queue_name: "write.queue", queue_name: "write.queue.dlq", retry_attempt: 0 }
    const replay = { state: "replayed" as const, replayed_at: at(9), replay_target_queue_name: "write.queue" }
    const graph = graphOf({
      topology: workflow(),
      observations: new Map([
        [
          T,
          observations(
            staged(1, "write", "m1"),
            deadLettered(1.1, letter),
            staged(3, "write", "m2"),
            deadLettered(3.1, letter),
            staged(10, "write", "m2"),
            staged(11, "write", "m1")
          )
        ]
      ]),
      deadLetters: [record(1.1, { ...letter, ...replay }), record(3.1, { ...letter, ...replay })]
    })
    assert.deepStrictEqual(
      edgesOf(graph).filter(([edge]) => String(edge).startsWith("dlq:")),
      [
        [`dlq:${T}:2 received_by stage-attempt:${T}:write:3`, 10],
        [`dlq:${T}:1 received_by stage-attempt:${T}:write:4`, 11]
      ]
    )
  })

  it("gives each of several dead letters the record that is nearest", () => {
    const letter = { retry_attempt: 0 }
    const graph = graphOf({
      observations: new Map([[T, observations(received(0), deadLettered(2, letter), deadLettered(4, letter))]]),
      deadLetters: [record(0.5, letter), record(2.01, letter), record(4.02, letter)]
    })
    assert.deepStrictEqual(
      graph.nodes.filter(({ kind }) => kind === "dlq_record").map(({ annotations, id }) => [id, annotations["dlq_id"]]),
      [
        [`dlq:${T}:record:1`, "dlq-0.5"],
        [`dlq:${T}:1`, "dlq-2.01"],
        [`dlq:${T}:2`, "dlq-4.02"]
      ]
    )
  })

  it("connects the retries of a workflow, stage by stage", () => {
    const ofWriter = {
      source_queue_name: "writer.queue",
      queue_name: "writer.queue.retry.500ms.quorum",
      max_retries: 2
    }
    const graph = graphOf({
      topology: { kind: "shared_status_workflow" },
      observations: new Map([
        [
          T,
          observations(
            staged(0, "writer", "m1"),
            staged(0.1, "checker", "m2"),
            retried(1, ofWriter),
            staged(1.5, "writer", "m1", { retry_attempt: 1 }),
            retried(2, { ...ofWriter, retry_attempt: 2 }),
            staged(2.5, "writer", "m1", { retry_attempt: 2 }),
            deadLettered(3, { source_queue_name: "writer.queue", queue_name: "writer.queue.dlq", retry_attempt: 2 })
          )
        ]
      ])
    })
    assert.deepStrictEqual(
      edgesOf(graph).filter(([edge]) => /retr|dead/.test(String(edge))),
      [
        [`stage-attempt:${T}:writer:1 retried_as retry:${T}:1`, 1],
        [`retry:${T}:1 received_by stage-attempt:${T}:writer:2`, 1.5],
        [`stage-attempt:${T}:writer:2 retried_as retry:${T}:2`, 2],
        [`retry:${T}:2 received_by stage-attempt:${T}:writer:3`, 2.5],
        [`stage-attempt:${T}:writer:3 dead_lettered_to dlq:${T}:1`, 3]
      ]
    )
    assert.deepStrictEqual(
      [1, 2, 3].map((n) => nodeOf(graph, `stage-attempt:${T}:writer:${n}`)?.annotations["retry_attempt"]),
      [0, 1, 2]
    )
  })

  it("connects the retries of workers that do not number their attempts, by time", () => {
    const unnumbered = (seconds: number, stage: string) =>
      JSON.stringify({ ...staged(seconds, stage, "m1"), retry_attempt: undefined })
    const ofWriter = { source_queue_name: "writer.queue", queue_name: "writer.queue.retry" }
    const graph = graphOf({
      topology: workflow(),
      observations: new Map([
        [
          T,
          {
            events: [unnumbered(0, "writer"), JSON.stringify(retried(1, ofWriter)), unnumbered(2, "writer")].map(
              (json, index) => ({ sequence: index + 1, json })
            ),
            oldest: 1
          }
        ]
      ])
    })
    assert.includeDeepMembers(edgesOf(graph), [
      [`stage-attempt:${T}:writer:1 retried_as retry:${T}:1`, 1],
      [`retry:${T}:1 received_by stage-attempt:${T}:writer:2`, 2]
    ])
    assert.strictEqual(nodeOf(graph, `stage-attempt:${T}:writer:2`)?.annotations["retry_attempt"], 0)
  })

  it("knows a retry again by its number and queue, where the other worker's clock is late", () => {
    const graph = graphOf({
      observations: new Map([
        [
          T,
          observations(
            received(0),
            received(0.2, { queue_name: "aggregation.queue.0" }),
            retried(2),
            received(1.9, { retry_attempt: 1 }),
            retried(3, { retry_attempt: 2 }),
            received(2.8, { retry_attempt: 2, redelivered: false }),
            received(9, { retry_attempt: 2, redelivered: true })
          )
        ]
      ])
    })
    assert.deepStrictEqual(
      edgesOf(graph).filter(([edge]) => String(edge).includes("retry:")),
      [
        [`retry:${T}:1 received_by task-attempt:${T}:3`, 1.9],
        [`task-attempt:${T}:1 retried_as retry:${T}:1`, 2],
        [`retry:${T}:2 received_by task-attempt:${T}:4`, 2.8],
        [`task-attempt:${T}:3 retried_as retry:${T}:2`, 3]
      ]
    )
  })

  it("leaves a retry open that nobody has received yet, whatever else the task does", () => {
    const graph = graphOf({
      observations: new Map([[T, observations(received(0), retried(1), received(5, { queue_name: "other.queue" }))]])
    })
    assert.deepStrictEqual(
      edgesOf(graph).filter(([edge]) => String(edge).startsWith("retry:")),
      []
    )
  })

  it("compares instants: `Z` and `+00:00` are the same, and a fraction is later than none", () => {
    const fraction = { ...received(0), timestamp: "2026-04-06T10:00:01.5+00:00" }
    const graph = graphOf({
      statuses: new Map([[T, statuses(T, ["processing", 1])]]),
      observations: new Map([[T, observations(received(1), fraction)]])
    })
    assert.includeDeepMembers(edgesOf(graph), [[`task-attempt:${T}:1 published_status status:${T}:1`, 1]])
    assert.deepStrictEqual(
      graph.nodes.map(({ id }) => id),
      [`task:${T}`, `status:${T}:1`, `task-attempt:${T}:1`, `task-attempt:${T}:2`]
    )
  })

  it("finds who handed a task over, and to whom, also where both were at work in one moment", () => {
    const lineage = { count: 1, source_consumer: "w", previous_task_type: "a", target_task_type: "b" }
    const graph = graphOf({
      statuses: new Map([[T, statuses(T, ["manual_retrying", 2, { manual_retry: lineage }])]]),
      observations: new Map([
        [
          T,
          observations(
            received(2, { consumer_name: "w", task_type: "a" }),
            received(2, { consumer_name: "w", task_type: "b" })
          )
        ]
      ])
    })
    assert.includeDeepMembers(edgesOf(graph), [[`task-attempt:${T}:1 manual_retry_to task-attempt:${T}:2`, 2]])
  })

  it("hangs a message on the task where the attempt that published it is not known", () => {
    const graph = graphOf({
      topology: { kind: "shared_status_workflow" },
      statuses: new Map([[T, statuses(T, ["queued", 0])]]),
      observations: new Map([[T, observations(handedOver(1, "planner", "writer", "m2"), staged(2, "writer", null))]])
    })
    assert.deepStrictEqual(edgesOf(graph), [
      [`task:${T} published_status status:${T}:1`, 0],
      [`task:${T} received_by workflow-message:m2`, 1],
      [`task:${T} received_by stage-attempt:${T}:writer:1`, 2]
    ])
  })

  it("hangs what was said before a stage on the task, also where the topology is of tasks", () => {
    const graph = graphOf({
      statuses: new Map([[T, statuses(T, ["aggregation-complete", 0], ["completed", 2])]]),
      observations: new Map([[T, observations(staged(1, "outline", null))]])
    })
    assert.deepStrictEqual(edgesOf(graph), [
      [`task:${T} published_status status:${T}:1`, 0],
      [`task:${T} received_by stage-attempt:${T}:outline:1`, 1],
      [`stage-attempt:${T}:outline:1 published_status status:${T}:2`, 2]
    ])
  })

  it("numbers the attempts of a stage task by task, and hangs no status on the attempt of another task", () => {
    const child = (id: string, seconds: number) => observations(staged(seconds, "write", `m-${id}`, { task_id: id }))
    const graph = graphOf({
      topology: { kind: "shared_status_workflow" },
      taskId: "p",
      relatedTaskIds: ["c1", "c2"],
      statuses: new Map([
        ["p", statuses("p", ["completed", 9])],
        ["c1", statuses("c1", ["written", 3])],
        ["c2", statuses("c2", ["written", 4])]
      ]),
      observations: new Map([
        ["c1", child("c1", 1)],
        ["c2", child("c2", 2)]
      ])
    })
    assert.deepStrictEqual(
      graph.nodes.filter(({ kind }) => kind === "stage_attempt").map(({ id, label }) => [id, label]),
      [
        ["stage-attempt:c1:write:1", "write attempt 1"],
        ["stage-attempt:c2:write:1", "write attempt 1"]
      ]
    )
    assert.deepStrictEqual(
      edgesOf(graph).filter(([edge]) => String(edge).includes("published_status")),
      [
        ["stage-attempt:c1:write:1 published_status status:c1:1", 3],
        ["stage-attempt:c2:write:1 published_status status:c2:1", 4],
        ["task:p published_status status:p:1", 9]
      ]
    )
  })

  it("shows the parent of a task that is a child itself", () => {
    const aggregated = of("AggregationMessageReceived", at(2), {
      consumer_name: "a",
      queue_name: "aggregation.queue.0",
      task_id: T,
      parent_task_id: "p",
      correlation_id: null,
      retry_attempt: 0,
      delivery_tag: 1,
      redelivered: false
    })
    const graph = graphOf({
      statuses: new Map([[T, statuses(T, ["aggregating", 1, { parent_task_id: "p" }])]]),
      observations: new Map([[T, observations(aggregated)]])
    })
    assert.includeDeepMembers(edgesOf(graph), [[`task:${T} aggregated_into task:p`, null]])
    assert.deepStrictEqual(graph.annotations, { parent_task_ids: ["p"] })
    assert.deepStrictEqual(
      graph.nodes.filter(({ kind }) => kind === "task").map(({ annotations, id }) => [id, annotations]),
      [
        ["task:p", { relation: "parent" }],
        [`task:${T}`, {}]
      ]
    )
    assert.deepStrictEqual(graph.related_task_ids, [])
    assert.strictEqual(nodeOf(graph, `task-attempt:${T}:1`)?.annotations["parent_task_id"], "p")
  })

  it("leaves out what cannot be read, and says so", () => {
    const good = statuses(T, ["processing", 1], ["completed", 2])
    const broken = (json: string, index: number) => ({ sequence: index + 3, eventId: json, status: "?", json })
    const graph = graphOf({
      statuses: new Map([
        [
          T,
          {
            newest: 9,
            oldest: 4,
            events: [
              ...good.events,
              ...good.events,
              ...["{", "[]", "null", '{"status":7}', '{"status":"odd","timestamp":"soon","meta":[]}'].map(broken)
            ]
          }
        ]
      ]),
      observations: new Map([
        [
          T,
          {
            oldest: 2,
            events: [
              { sequence: 2, json: "{" },
              { sequence: 3, json: '{"event_type":5}' },
              { sequence: 4, json: '{"event_type":"TaskMessageReceived","retry_attempt":"x"}' },
              { sequence: 5, json: '{"event_type":"FromTheFuture"}' }
            ]
          }
        ]
      ]),
      leftOut: [["dead_letter_limit_reached", T]]
    })
    assert.deepStrictEqual(nodesOf(graph), [
      [`status:${T}:1`, null],
      [`task-attempt:${T}:1`, null],
      [`task:${T}`, null],
      [`status:${T}:2`, 1],
      [`status:${T}:3`, 2]
    ])
    assert.deepInclude(graph.summary, { status: "completed", duration_ms: 1000, graph_completeness: "full" })
    assert.deepStrictEqual(
      graph.summary.completeness_reasons.map(({ reason }) => reason),
      ["observation_history_trimmed", "status_history_trimmed", "entries_unreadable", "dead_letter_limit_reached"]
    )
  })
})
