import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { SharedTasksSharedStatusTopology } from "../../../src/messaging/topology/TaskTopology.ts"
import { SharedStatusWorkflowTopology } from "../../../src/messaging/topology/WorkflowTopology.ts"
import { letters } from "../Letters.ts"
import { clientOf, named, onBothBrokers, ready } from "./OnBothBrokers.ts"

const task = {
  task_id: "t1",
  correlation_id: "c1",
  service: "press",
  task_type: "resize",
  payload: { page: { number: 3, note: null } },
  meta: { tenant: "a" },
  priority: 3,
  spec_version: "1.0"
}

const batch = { batch_id: "b1", tasks: [{ ...task, created_at: "2026-04-06T10:00:00Z" }], meta: { from: "import" } }

const status = {
  task_id: "t1",
  status: "searching",
  message: "On page 3.",
  event_id: "e1",
  meta: { page: 3 },
  result: { words: 7 },
  correlation_id: "c1",
  service: "press",
  task_type: "resize"
}

const statuses = [
  "processing",
  "completed",
  "failed",
  "manual_retrying",
  "aggregating",
  "aggregation-processed",
  "aggregation-complete",
  "searching"
]

const work = {
  task_id: "t1",
  stage: "write",
  action: "draft",
  priority: 3,
  payload: { page: 3 },
  meta: { tenant: "a" }
}

onBothBrokers("envelopes", (provided) => {
  it.live.each(Object.entries(task))("task envelope: %s travels as it was given", ([field, value]) =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const { publishTask } = yield* clientOf(new SharedTasksSharedStatusTopology(shared))
      yield* publishTask({ task_id: "t1", [field]: value })
      const [sent] = yield* letters(shared.tasks_queue)
      assert.deepStrictEqual(Object(sent?.body)[field], value)
    }).pipe(provided)
  )

  it.live.each(Object.entries(batch))("batch envelope: %s travels as it was given", ([field, value]) =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const { publishTasks } = yield* clientOf(new SharedTasksSharedStatusTopology(shared))
      yield* publishTasks(batch.tasks, { mode: "batch_envelope", batchId: batch.batch_id, meta: batch.meta })
      const [sent] = yield* letters(shared.tasks_queue)
      assert.deepStrictEqual(Object(sent?.body)[field], value)
    }).pipe(provided)
  )

  it.live.each(Object.entries(status))("status event envelope: %s travels as it was given", ([field, value]) =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const { publishStatus } = yield* clientOf(new SharedTasksSharedStatusTopology(shared))
      yield* publishStatus({ task_id: "t1", status: "searching", [field]: value })
      const [sent] = yield* letters(shared.status_queue)
      assert.deepStrictEqual(Object(sent?.body)[field], value)
    }).pipe(provided)
  )

  it.live("status event envelope: event_id is unique per event, where none is given", () =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const { publishStatus } = yield* clientOf(new SharedTasksSharedStatusTopology(shared))
      yield* Effect.all([1, 2].map(() => publishStatus({ task_id: "t1", status: "searching" })))
      yield* ready(shared.status_queue, 2)
      const [one, other] = yield* letters(shared.status_queue)
      assert.match(Object(one?.body).event_id, /^[0-9a-f]{32}$/)
      assert.notStrictEqual(Object(one?.body).event_id, Object(other?.body).event_id)
    }).pipe(provided)
  )

  it.live.each(statuses)("status value %s is one that anybody may publish", (value) =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const { publishStatus } = yield* clientOf(new SharedTasksSharedStatusTopology(shared))
      yield* publishStatus({ task_id: "t1", status: value })
      const [sent] = yield* letters(shared.status_queue)
      assert.strictEqual(Object(sent?.body).status, value)
      assert.strictEqual(sent?.properties.headers?.["status"], value)
    }).pipe(provided)
  )

  it.live.each(Object.entries(work))("workflow envelope: %s travels as it was given", ([field, value]) =>
    Effect.gen(function* () {
      const { workflow } = yield* named
      const { publishToStage } = yield* clientOf(new SharedStatusWorkflowTopology(workflow))
      yield* publishToStage({ task_id: "t1", [field]: value }, "write")
      const [sent] = yield* letters(workflow.stages[1]?.queue ?? "")
      assert.deepStrictEqual(Object(sent?.body)[field], value)
    }).pipe(provided)
  )
})
