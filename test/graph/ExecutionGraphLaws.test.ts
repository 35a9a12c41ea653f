import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { buildExecutionGraph, type ExecutionGraph, type GraphEvidence } from "../../src/graph/ExecutionGraph.ts"
import { toMicros } from "../../src/messaging/envelope/Timestamp.ts"
import type { Observed } from "../../src/messaging/observe/Observation.ts"
import {
  at,
  deadLettered,
  evidence,
  handedOver,
  observations,
  received,
  record,
  retried,
  staged,
  statuses
} from "./Evidence.ts"

const runs = { numRuns: 300 }

describe("buildExecutionGraph: its laws, for any evidence", () => {
  it("gives every node an id of its own, and every edge two nodes that are there", () => {
    fc.assert(
      fc.property(anyEvidence, (evidence) => {
        const { edges, nodes } = buildExecutionGraph(evidence)
        const ids = new Set(nodes.map(({ id }) => id))
        assert.strictEqual(ids.size, nodes.length)
        for (const { source, target } of edges) assert.isTrue(ids.has(source) && ids.has(target))
      }),
      runs
    )
  })

  it("leaves no node alone but the task", () => {
    fc.assert(
      fc.property(anyEvidence, (evidence) => {
        const { edges, nodes } = buildExecutionGraph(evidence)
        const reached = new Set(edges.flatMap(({ source, target }) => [source, target]))
        for (const { id } of nodes.slice(1)) assert.isTrue(reached.has(id) || id === `task:${evidence.taskId}`, id)
      }),
      runs
    )
  })

  it("is ordered by time", () => {
    fc.assert(
      fc.property(anyEvidence, (evidence) => {
        const { edges, nodes } = buildExecutionGraph(evidence)
        for (const list of [nodes, edges]) {
          const times = list.map(({ timestamp }) =>
            timestamp === null ? Number.NEGATIVE_INFINITY : toMicros(timestamp)
          )
          assert.deepStrictEqual(
            times,
            times.toSorted((one, other) => (one < other ? -1 : one > other ? 1 : 0))
          )
        }
      }),
      runs
    )
  })

  it("does not depend on the order of what it is given, nor on repetitions", () => {
    fc.assert(
      fc.property(anyEvidence, fc.integer(), (evidence, seed) => {
        assert.deepStrictEqual(buildExecutionGraph(shuffled(evidence, seed)), buildExecutionGraph(evidence))
      }),
      runs
    )
  })

  it("is partial without observations, and then shows tasks, statuses and recorded dead letters alone", () => {
    fc.assert(
      fc.property(anyEvidence, (evidence) => {
        const graph = buildExecutionGraph({ ...evidence, observations: new Map() })
        assert.strictEqual(graph.summary.graph_completeness, "partial")
        const kinds = new Set(["task", "aggregation_child", "status_event", "dlq_record"])
        assert.isTrue(graph.nodes.every(({ kind }) => kinds.has(kind)))
        assert.strictEqual(count(graph, "status_event"), statusesIn(evidence))
        assert.strictEqual(count(graph, "dlq_record"), new Set(evidence.deadLetters.map(({ dlq_id }) => dlq_id)).size)
      }),
      runs
    )
  })

  it("shows every receipt, retry and status once, and gives each retry and each replay at most one attempt that it became", () => {
    fc.assert(
      fc.property(anyEvidence, (evidence) => {
        const graph = buildExecutionGraph(evidence)
        const told = [...evidence.observations.values()].flatMap(({ events }) => [
          ...new Set(events.map(({ json }) => json))
        ])
        const many = (type: string) => told.filter((json) => json.includes(`"event_type":"${type}"`)).length
        assert.strictEqual(count(graph, "task_attempt"), many("TaskMessageReceived"))
        assert.strictEqual(count(graph, "stage_attempt"), many("WorkflowMessageReceived"))
        assert.strictEqual(count(graph, "retry"), many("ConsumerRetryScheduled"))
        assert.strictEqual(count(graph, "status_event"), statusesIn(evidence))
        assert.strictEqual(graph.summary.graph_completeness, told.length > 0 ? "full" : "partial")
        for (const from of ["retry:", "dlq:"]) {
          const became = graph.edges.filter(({ source }) => source.startsWith(from))
          assert.strictEqual(new Set(became.map(({ source }) => source)).size, became.length)
          assert.strictEqual(new Set(became.map(({ target }) => target)).size, became.length)
        }
      }),
      runs
    )
  })

  it("never ends before it starts", () => {
    fc.assert(
      fc.property(anyEvidence, (evidence) => {
        assert.isAtLeast(buildExecutionGraph(evidence).summary.duration_ms ?? 0, 0)
      }),
      runs
    )
  })
})

const count = ({ nodes }: ExecutionGraph, wanted: string) => nodes.filter(({ kind }) => kind === wanted).length

const statusesIn = (evidence: GraphEvidence) =>
  [...evidence.statuses.values()].reduce((sum, { events }) => sum + events.length, 0)

/** Ids that are each other's beginnings, and hold what ids of nodes are made of. */
const taskIds = ["t", "t:record", "t:1", "<b>", "🚀"] as const

const second = fc.nat(6).map((half) => half / 2)
const attempt = fc.nat(2)
const queue = fc.constantFrom("q", "plan.queue")
const stage = fc.constantFrom("plan", "write", "t:1")
const messageId = fc.constantFrom("m1", "m2", "m3")

const observation = (task_id: string): fc.Arbitrary<Observed> =>
  fc.oneof(
    fc
      .tuple(second, attempt, queue, fc.constantFrom(null, "a", "b"))
      .map(([at, retry_attempt, queue_name, task_type]) =>
        received(at, { task_id, retry_attempt, queue_name, task_type })
      ),
    fc
      .tuple(second, attempt, queue)
      .map(([at, retry_attempt, source_queue_name]) => retried(at, { task_id, retry_attempt, source_queue_name })),
    fc
      .tuple(second, attempt, queue)
      .map(([at, retry_attempt, source_queue_name]) => deadLettered(at, { task_id, retry_attempt, source_queue_name })),
    fc
      .tuple(second, stage, fc.option(messageId), attempt)
      .map(([at, stage, id, retry_attempt]) => staged(at, stage, id, { task_id, retry_attempt })),
    fc
      .tuple(second, fc.option(stage), stage, messageId)
      .map(([at, origin, stage, id]) => ({ ...handedOver(at, origin, stage, id), task_id }))
  )

const lineage = fc.record(
  {
    source_consumer: fc.constantFrom("svc-task-consumer", "other"),
    previous_task_type: fc.constantFrom("a", "b"),
    target_task_type: fc.constantFrom("a", "b")
  },
  { requiredKeys: [] }
)

const status = fc.tuple(
  fc.constantFrom("processing", "failed", "MANUAL_retrying"),
  second,
  fc.option(lineage, { nil: undefined }).map((lineage) => (lineage === undefined ? {} : { manual_retry: lineage }))
)

const ofTask = (id: string) =>
  fc.record({
    id: fc.constant(id),
    observed: fc.array(observation(id), { maxLength: 12 }),
    said: fc.array(status, { maxLength: 6 }),
    records: fc.uniqueArray(
      fc.tuple(second, attempt, fc.option(fc.tuple(second, queue))).map(([seconds, retry_attempt, replay]) =>
        record(seconds, {
          task_id: id,
          retry_attempt,
          dlq_id: `${id} ${seconds} ${retry_attempt}`,
          ...(replay && { state: "replayed", replayed_at: at(replay[0]), replay_target_queue_name: replay[1] })
        })
      ),
      { maxLength: 4, selector: ({ dlq_id }) => dlq_id }
    )
  })

const anyEvidence: fc.Arbitrary<GraphEvidence> = fc
  .tuple(fc.shuffledSubarray([...taskIds], { minLength: 1 }), fc.boolean())
  .chain(([ids, workflow]) =>
    fc.tuple(...ids.map(ofTask)).map((tasks) =>
      evidence({
        topology: { kind: workflow ? "shared_status_workflow" : "routed_tasks_shared_status" },
        taskId: tasks[0]?.id ?? "",
        relatedTaskIds: tasks.slice(1).map(({ id }) => id),
        statuses: new Map(tasks.map(({ id, said }) => [id, statuses(id, ...said)])),
        observations: new Map(tasks.map(({ id, observed }) => [id, observations(...unique(observed))])),
        deadLetters: tasks.flatMap(({ records }) => records)
      })
    )
  )

const unique = (observed: ReadonlyArray<Observed>) => [
  ...new Map(observed.map((one) => [JSON.stringify(one), one])).values()
]

const shuffled = (evidence: GraphEvidence, seed: number): GraphEvidence => {
  let state = seed
  const random = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) | 0
    return state
  }
  const shuffle = <A>(list: ReadonlyArray<A>): ReadonlyArray<A> =>
    [...list, ...list.slice(0, 2)]
      .map((item) => [random(), item] as const)
      .sort(([one], [other]) => one - other)
      .map(([, item]) => item)
  const histories = <H extends { readonly events: ReadonlyArray<unknown> }>(map: ReadonlyMap<string, H>) =>
    new Map([...map].map(([id, history]) => [id, { ...history, events: shuffle(history.events) }] as const))
  return {
    ...evidence,
    statuses: histories(evidence.statuses),
    observations: histories(evidence.observations),
    deadLetters: shuffle(evidence.deadLetters),
    relatedTaskIds: shuffle(evidence.relatedTaskIds)
  }
}
