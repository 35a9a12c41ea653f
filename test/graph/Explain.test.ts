import { assert, describe, it, vi } from "@effect/vitest"
import { Result } from "effect"
import * as Evidence from "../../src/graph/draw/Evidence.ts"
import {
  delayMsOf,
  type ExaminedChildren,
  explain,
  type Inspection,
  noChildren,
  openChildren,
  queueToInspect
} from "../../src/graph/Explain.ts"
import { TaskQueues } from "../../src/graph/TaskQueues.ts"
import { taskState } from "../../src/graph/TaskState.ts"
import { toMillis } from "../../src/messaging/envelope/Timestamp.ts"
import type { Observed } from "../../src/messaging/observe/Observation.ts"
import { of } from "../../src/messaging/observe/Observation.ts"
import * as RetryQueues from "../../src/messaging/retry/RetryQueues.ts"
import { RetryPolicy } from "../../src/messaging/topology/RetryPolicy.ts"
import type { Topology } from "../../src/messaging/topology/Topology.ts"
import type { DeadLetterSummary } from "../../src/status/dead-letters/DeadLetterStore.ts"
import { by, routed, shared, workflow } from "../messaging/SampleTopologies.ts"
import {
  acked,
  at,
  deadLettered,
  handedOver,
  observations,
  received,
  record,
  retried,
  staged,
  statuses
} from "./Evidence.ts"

interface Given {
  readonly observed?: ReadonlyArray<Observed>
  readonly said?: Parameters<typeof statuses> extends [string, ...infer Events] ? Events : never
  readonly letters?: ReadonlyArray<DeadLetterSummary>
  readonly topologies?: ReadonlyArray<Topology>
  readonly inspection?: Inspection
  readonly children?: ExaminedChildren
  /** Seconds after ten o'clock. */
  readonly now?: number
}

const T = "task-123"

const whereIs = ({ letters = [], observed = [], said = [], topologies = [shared()] }: Given, isRelated = false) =>
  taskState({
    taskQueues: new TaskQueues(topologies),
    observations: Evidence.readObservations(observations(...observed)).entries,
    statuses: Evidence.readStatuses(statuses(T, ...said)).entries,
    deadLetters: letters,
    isRelated,
    isTerminal: (status) => ["completed", "failed"].includes(status)
  })

const explained = (given: Given) => {
  const { children = noChildren, inspection = "unavailable", now = 100 } = given
  const where = whereIs(given, children.examined > 0)
  const millis = toMillis(at(now))
  const status = Evidence.readStatuses(statuses(T, ...(given.said ?? []))).entries.at(-1)
  return { asked: queueToInspect(where, millis), ...explain(T, where, { inspection, children, status }, millis) }
}

const stageAcked = (seconds: number, stage: string, message_id: string) =>
  of("WorkflowStageAcked", at(seconds), {
    consumer_name: "w",
    queue_name: `${stage}.queue`,
    stage,
    routing_key: null,
    task_id: T,
    message_id,
    origin_stage: null,
    correlation_id: null
  })

/** By a worker of aggregation: what the task gives to its parent, its result or its progress. */
const aggregated = (seconds: number) => {
  const message = {
    consumer_name: "a",
    queue_name: "aggregation.queue.0",
    task_id: T,
    parent_task_id: "p",
    correlation_id: null,
    retry_attempt: 0
  }
  const receipt = { ...message, delivery_tag: 1, redelivered: false }
  return [
    of("AggregationMessageReceived", at(seconds - 0.1), receipt),
    of("AggregationMessageAcked", at(seconds), message)
  ] as const
}

const empty: Inspection = { messages: 0, consumers: 1 }

describe("explain: why a task is not done", () => {
  it("because somebody is at work on it", () => {
    const { sentence, ...told } = explained({ observed: [received(1)], said: [["processing", 1]] })
    assert.deepInclude(told, {
      verdict: "being_handled",
      consumer_name: "svc-task-consumer",
      queue_name: "tasks.queue"
    })
    assert.strictEqual(
      sentence,
      "svc-task-consumer has been processing it since 2026-04-06T10:00:01+00:00, from tasks.queue."
    )
  })

  it("in parts that tell times, ids and foreign texts from its own words", () => {
    const given: Given = { observed: [received(1), deadLettered(3)], said: [["failed", 3]], letters: [record(3)] }
    const { dlq_id, sentence, sentence_parts } = explained(given)
    assert.strictEqual(sentence_parts.map(({ text }) => text).join(""), sentence)
    const { since } = explained(given)
    assert.deepInclude(sentence_parts, { kind: "at", text: `at ${since}`, time: String(since) })
    assert.deepInclude(sentence_parts, { kind: "dead_letter", text: String(dlq_id) })
    assert.deepInclude(sentence_parts, { kind: "quoted", text: "handler_error" })
    const open = Array.from({ length: 7 }, (_, n) => ({ task_id: `c${n}`, verdict: "queued" as const }))
    const children: ExaminedChildren = { examined: 7, hasMore: false, open }
    const parent = explained({ observed: [received(1), acked(2)], said: [["aggregating", 2]], children })
    assert.deepStrictEqual(
      parent.sentence_parts.flatMap(({ kind, text }) => (kind === "task" ? [text] : [])),
      ["c0", "c1", "c2", "c3", "c4"]
    )
    assert.include(parent.sentence, "7 of 7: c0 (queued), c1 (queued)")
  })

  it("because it waits for its retry, until when", () => {
    const told = explained({ observed: [received(1), retried(2)], now: 2.4 })
    assert.deepInclude(told, {
      verdict: "waiting_for_retry",
      queue_name: "tasks.queue.retry.500ms.quorum",
      until: "2026-04-06T10:00:02.500Z",
      asked: undefined
    })
    assert.strictEqual(
      told.sentence,
      "Retry 1 of 1 waits in tasks.queue.retry.500ms.quorum until 2026-04-06T10:00:02.500Z, because of handler_error."
    )
  })

  it("because it is behind others, once the delay of its retry is over", () => {
    const told = explained({ observed: [received(1), retried(2)], now: 3, inspection: { messages: 8, consumers: 2 } })
    assert.deepInclude(told, { asked: "tasks.queue", verdict: "queued", ready: 8, consumers: 2, retry_attempt: 1 })
    assert.strictEqual(told.sentence, "It waits in tasks.queue, after at most 7 others, for one of 2 consumers.")
  })

  it("because it waits in a retry queue that does not say for how long", () => {
    const old = retried(2, { queue_name: "tasks.queue.retry" })
    assert.deepInclude(explained({ observed: [received(1), old] }), { verdict: "waiting_for_retry", until: null })
  })

  it("because nobody consumes its queue, or there is none", () => {
    const letters = [record(3, { state: "replayed", replayed_at: at(9), replay_target_queue_name: "tasks.queue" })]
    const given: Given = { observed: [received(1), deadLettered(3)], said: [["failed", 3]], letters }
    const nobody = explained({ ...given, inspection: { messages: 1, consumers: 0 } })
    assert.deepInclude(nobody, { asked: "tasks.queue", verdict: "no_consumer" })
    assert.strictEqual(
      nobody.sentence,
      "tasks.queue has no consumer, and 1 message is waiting in it: start its worker."
    )
    assert.deepInclude(explained({ ...given, inspection: "missing" }), { verdict: "no_queue" })
    assert.deepInclude(explained(given), { verdict: "queued", missing_evidence: ["broker"] })
  })

  it("it is: a replayed task that came to its end, or was acknowledged, however soon", () => {
    const letters = [record(3, { state: "replayed", replayed_at: at(9), replay_target_queue_name: "tasks.queue" })]
    const before = [received(1), deadLettered(3), acked(3)]
    const since = [received(9.01), acked(9.02)]
    const said: Given["said"] = [
      ["failed", 3],
      ["completed", 9.02]
    ]
    assert.deepInclude(explained({ observed: [...before, ...since], said, letters }), {
      verdict: "finished",
      status: "completed"
    })
    assert.strictEqual(explained({ said, letters }).verdict, "finished")
    assert.strictEqual(explained({ observed: [...before, ...since], letters }).verdict, "finished")
    assert.strictEqual(explained({ observed: before, letters, inspection: empty }).verdict, "unknown")
  })

  it("because it was dead-lettered, with the id to replay it by", () => {
    const given: Given = { observed: [received(1), deadLettered(3)], said: [["failed", 3.1]] }
    assert.deepInclude(explained({ ...given, letters: [record(3.002)] }), {
      verdict: "dead_lettered",
      dlq_id: "dlq-3.002",
      queue_name: "tasks.queue.dlq",
      reason: "handler_error"
    })
    assert.deepInclude(explained(given), { verdict: "dead_lettered", dlq_id: null })
    const told = explained({ ...given, letters: [record(3.002, { exception_message: "no such mailbox" })] })
    assert.deepInclude(told, { exception_type: "Error", exception_message: "no such mailbox" })
    assert.include(told.sentence, "for handler_error (Error: no such mailbox). Replay it")
    assert.deepInclude(explained({ letters: [record(3)], said: [["failed", 3]] }), { dlq_id: "dlq-3" })
  })

  it("because a worker without retries rejected it", () => {
    const failed = of("WorkflowStageFailed", at(2), {
      consumer_name: "w",
      queue_name: "write.queue",
      stage: "write",
      routing_key: null,
      task_id: T,
      message_id: "m1",
      origin_stage: null,
      correlation_id: null,
      exception_type: "NoInk",
      exception_message: "The well is dry.",
      requeue: false
    })
    const topologies = [workflow()]
    const told = explained({ topologies, observed: [staged(1, "write", "m1"), failed] })
    assert.deepInclude(told, {
      verdict: "rejected",
      reason: "NoInk",
      exception_type: "NoInk",
      exception_message: "The well is dry."
    })
    assert.include(told.sentence, "for NoInk: The well is dry. The worker has no retry policy.")
    const requeued = { ...failed, requeue: true }
    assert.deepInclude(explained({ topologies, observed: [staged(1, "write", "m1"), requeued] }), {
      asked: "write.queue",
      verdict: "queued"
    })
  })

  it("because the next stage of its workflow has not begun", () => {
    const observed = [
      staged(1, "outline", "m1"),
      handedOver(2, "outline", "write", "m2"),
      stageAcked(3, "outline", "m1")
    ]
    for (const topologies of [[workflow()], [routed(), shared({ tasks_queue: "others.queue" }), workflow()]]) {
      assert.deepInclude(explained({ topologies, observed, inspection: { messages: 3, consumers: 1 } }), {
        asked: "write.queue",
        verdict: "queued",
        since: "2026-04-06T10:00:02+00:00"
      })
    }
  })

  it("because the next stage of its workflow has not begun, in a queue that is not known", () => {
    const observed = [
      staged(1, "outline", "m1"),
      handedOver(2, "outline", "write", "m2"),
      stageAcked(3, "outline", "m1")
    ]
    for (const topology of [routed(), shared()]) {
      const told = explained({ topologies: [topology], observed })
      assert.deepInclude(told, {
        asked: undefined,
        verdict: "queued",
        queue_name: null,
        since: "2026-04-06T10:00:02+00:00",
        missing_evidence: ["queue_of_the_task"]
      })
      assert.strictEqual(
        told.sentence,
        "It was published to the stage write at 2026-04-06T10:00:02+00:00. No worker has reported it, and the queue of the stage is unknown here."
      )
      const since = [staged(4, "write", "m2"), stageAcked(5, "write", "m2")]
      assert.deepInclude(explained({ topologies: [topology], observed: [...observed, ...since] }), {
        verdict: "finished"
      })
    }
  })

  it("because the next stage has not begun, of the workflow that its publisher is in", () => {
    const stage = (queue: string, name: string) => ({ name, queue, ...by(`planner.${name}.in`) })
    const other = workflow({ stages: [stage("a.queue", "outline"), stage("b.queue", "write")], entry_routes: [] })
    const topologies = [workflow(), other]
    const asked = (origin: string) => explained({ topologies, observed: [handedOver(2, origin, "write", "m2")] }).asked
    assert.deepStrictEqual([asked("outline"), asked("a"), asked("foreign")], ["write.queue", "b.queue", undefined])
  })

  it("it is: the next stage was faster than the word of the broker that its message is there", () => {
    const observed = [
      staged(1, "outline", "m1"),
      staged(2, "write", "m2"),
      stageAcked(2.1, "write", "m2"),
      handedOver(2.2, "outline", "write", "m2"),
      stageAcked(2.3, "outline", "m1")
    ]
    assert.deepInclude(explained({ topologies: [workflow()], observed }), { verdict: "finished" })
  })

  it("because the worker that it was handed over to has not begun", () => {
    const said: Given["said"] = [["manual_retrying", 2, { manual_retry: { count: 1, target_task_type: "rotate" } }]]
    const observed = [received(1, { task_type: "resize" }), acked(2.1, { task_type: "resize" })]
    const told = explained({ topologies: [routed()], observed, said, inspection: { messages: 1, consumers: 1 } })
    assert.deepInclude(told, { asked: "tasks.queue", verdict: "queued" })
    const elsewhere = explained({ topologies: [routed({ task_types: ["resize"] })], observed, said })
    assert.deepInclude(elsewhere, { verdict: "unknown", missing_evidence: ["queue_of_the_task"] })
  })

  it("it is no longer handed over, once the next worker had it, however soon", () => {
    const said: Given["said"] = [["manual_retrying", 2, { manual_retry: { count: 1, target_task_type: "rotate" } }]]
    const first = [received(1, { task_type: "resize" }), acked(2.1, { task_type: "resize" })]
    const next = { queue_name: "rotate.queue", task_type: "rotate" }
    const observed = [...first, received(2.05, next), acked(2.08, next)]
    assert.deepInclude(explained({ topologies: [routed()], observed, said }), {
      asked: undefined,
      verdict: "acknowledged",
      status: "manual_retrying"
    })
  })

  it("it is still handed over, when a worker of aggregation took what the former one gave", () => {
    const said: Given["said"] = [["manual_retrying", 2, { manual_retry: { count: 1, target_task_type: "rotate" } }]]
    const observed = [received(1), acked(2.05), ...aggregated(2.3)]
    const inspection = { messages: 1, consumers: 1 }
    assert.deepInclude(explained({ topologies: [routed()], observed, said, inspection }), {
      asked: "tasks.queue",
      verdict: "queued"
    })
  })

  it("nobody knows, when all that was seen of it is what a worker of aggregation took", () => {
    const observed = aggregated(3)
    assert.deepInclude(explained({ observed, said: [["processing", 1]] }), {
      verdict: "unknown",
      missing_evidence: ["observations"]
    })
    assert.deepInclude(explained({ observed, inspection: empty }), { asked: undefined, verdict: "unknown" })
    assert.deepStrictEqual(openChildren([["c", whereIs({ observed }, true)]], toMillis(at(100))), [
      { task_id: "c", verdict: "unknown" }
    ])
  })

  it("it is: by its status, or by its acknowledgement alone", () => {
    assert.deepInclude(explained({ observed: [received(1)], said: [["completed", 2]] }), {
      verdict: "finished",
      status: "completed"
    })
    assert.deepInclude(explained({ observed: [received(1), acked(2)] }), { verdict: "finished", status: null })
    assert.deepInclude(explained({ said: [["completed", 2]] }), { verdict: "finished" })
  })

  it("it is: what aggregation says of a finished child takes nothing back", () => {
    const aggregation = { aggregation_role: "aggregation" }
    const said = [
      ["completed", 2],
      ["retrying", 3, aggregation]
    ] as const
    assert.deepInclude(explained({ said: [["aggregating", 1, aggregation], ...said] }), {
      verdict: "finished",
      status: "completed"
    })
  })

  it("it is, or is not: acknowledged, and its last status is not terminal", () => {
    const told = explained({ observed: [received(1), acked(2)], said: [["aggregating", 1.5]] })
    assert.deepInclude(told, {
      verdict: "acknowledged",
      status: "aggregating",
      since: "2026-04-06T10:00:01.500000Z",
      children: null,
      open_children: []
    })
    assert.strictEqual(
      told.sentence,
      "Its worker acknowledged it at 2026-04-06T10:00:02+00:00, but its last status, aggregating at 2026-04-06T10:00:01.500000Z, is not terminal. Its final status is still to come, or its workers publish no terminal status."
    )
  })

  it("because its children are not done", () => {
    const child = {
      open: { task_id: "c2", verdict: "dead_lettered" },
      waits: { task_id: "c3", verdict: "queued" }
    } as const
    const children: ExaminedChildren = { examined: 3, hasMore: false, open: [child.open, child.waits] }
    const observed = [received(1), acked(2)]
    const told = explained({ observed, said: [["aggregating", 1.5]], children })
    assert.deepInclude(told, { verdict: "waiting_for_children", status: "aggregating", children: 3 })
    assert.deepStrictEqual(told.open_children, children.open)
    assert.strictEqual(
      told.sentence,
      "Its worker acknowledged it at 2026-04-06T10:00:02+00:00, but its last status, aggregating at 2026-04-06T10:00:01.500000Z, is not terminal. Children that are not known to be done, 2 of 3: c2 (dead lettered), c3 (queued)."
    )
    assert.deepInclude(explained({ observed, children }), { verdict: "waiting_for_children", status: null })
    const done = { ...children, open: [] }
    assert.deepInclude(explained({ observed, children: done }), { verdict: "finished" })
    const silent = explained({ observed, said: [["aggregating", 1.5]], children: { ...done, hasMore: true } })
    assert.deepInclude(silent, { verdict: "acknowledged", children: 3 })
    assert.include(silent.sentence, "Its children are done (the first 3).")
    assert.strictEqual(explained({ observed, said: [["completed", 1.5]], children }).verdict, "finished")
  })

  it("knows which children are not done", () => {
    const [, handed] = aggregated(3)
    const said: Given["said"] = [["aggregating", 1.5, { parent_task_id: "p" }]]
    const children = [
      ["done", whereIs({ said: [["completed", 1]] })],
      ["silent", whereIs({ observed: [received(1), acked(2)] })],
      ["gave", whereIs({ observed: [received(1), acked(2), handed], said })],
      ["gives", whereIs({ observed: [received(1), acked(2)], said })],
      ["works", whereIs({ observed: [received(1)], said })],
      ["dead", whereIs({ observed: [received(1), deadLettered(2)], said: [["failed", 2]] })],
      ["gone", whereIs({}, true)]
    ] as const
    assert.deepStrictEqual(openChildren(children, toMillis(at(100))), [
      { task_id: "gives", verdict: "acknowledged" },
      { task_id: "works", verdict: "being_handled" },
      { task_id: "dead", verdict: "dead_lettered" },
      { task_id: "gone", verdict: "unknown" }
    ])
  })

  it("it is again: a task that was replayed is not finished by its former end", () => {
    const observed = [received(1), deadLettered(2), received(9)]
    assert.deepInclude(explained({ observed, said: [["failed", 2]], letters: [record(2)] }), {
      verdict: "being_handled",
      since: "2026-04-06T10:00:09+00:00"
    })
  })

  it("nobody knows, and what is missing", () => {
    assert.deepInclude(explained({ said: [["processing", 1]] }), {
      verdict: "unknown",
      sentence:
        "Its state is unknown. To determine it, the service needs the observations. Its last status is processing at 2026-04-06T10:00:01Z.",
      status: "processing",
      missing_evidence: ["observations"]
    })
    assert.deepInclude(explained({ topologies: [workflow()] }), { missing_evidence: ["status", "observations"] })
  })

  it("takes a failure for that of the message that its queue had last and is not done with", () => {
    const done = (seconds: number, message_id: string) =>
      of("WorkflowStageAcked", at(seconds), {
        consumer_name: "svc-workflow-consumer",
        queue_name: "write.queue",
        stage: "write",
        routing_key: null,
        task_id: T,
        message_id,
        correlation_id: T,
        origin_stage: null
      })
    const both = [staged(1, "write", "m1"), staged(2, "write", "m2")]
    const failed = retried(4, { source_queue_name: "write.queue" })
    const ofSecond = [...both, failed, staged(5, "write", "m2", { retry_attempt: 1 }), done(6, "m2")]
    assert.deepInclude(whereIs({ observed: ofSecond }), { _tag: "BeingHandled", attempt: 0 })
    const ofFirst = [...both, done(3, "m2"), failed]
    assert.deepInclude(whereIs({ observed: ofFirst }), { _tag: "WaitingForRetry" })
    assert.deepInclude(whereIs({ observed: [...ofFirst, done(5, "m1")] }), { _tag: "Acknowledged" })
  })

  it("is told of a thousand open messages without a look at all of them for each", () => {
    const observed = Array.from({ length: 1_000 }, (_, n) => [
      staged(n, "write", `m${n}`),
      retried(n + 0.5, { source_queue_name: "write.queue" })
    ]).flat()
    const walks = vi.spyOn(Map.prototype, Symbol.iterator)
    try {
      assert.strictEqual(whereIs({ observed })._tag, "WaitingForRetry")
      assert.isBelow(walks.mock.calls.length, 100)
    } finally {
      walks.mockRestore()
    }
  })

  it("reads the delay that retry queues bear in their names", () => {
    const queues = Result.getOrThrow(RetryQueues.of("tasks.queue", new RetryPolicy()))
    assert.strictEqual(delayMsOf(queues.retryQueueOf(30_000)), 30_000)
    assert.isUndefined(delayMsOf("tasks.queue.retry"))
  })
})
