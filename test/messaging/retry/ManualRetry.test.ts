import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as TaskEnvelope from "../../../src/messaging/envelope/TaskEnvelope.ts"
import * as HandOverHeaders from "../../../src/messaging/retry/HandOverHeaders.ts"
import * as ManualRetry from "../../../src/messaging/retry/ManualRetry.ts"

const created = "2026-04-01T00:00:00Z"
const task = Result.getOrThrow(
  TaskEnvelope.read(
    { task_id: "t", task_type: "generate", payload: { a: 1, b: { c: 2 } }, priority: 4, created_at: created, own: 1 },
    created
  )
)
const handling = {
  consumerName: "worker-1",
  correlationId: "c",
  headers: {
    task_id: "t",
    batch_id: "b",
    "x-svc-retry-attempt": 2,
    "x-svc-max-retries": 3,
    "x-svc-source-queue": "q",
    "x-svc-failure-reason": "handler_error",
    "x-svc-exception-type": null,
    "x-svc-manual-retry-count": 1,
    "x-svc-manual-retry-from-task-type": "older",
    "x-svc-manual-retry-reason": "old",
    "x-death": []
  }
}

describe("a manual retry", () => {
  it("is the same task with what was asked for, and lineage in its headers", () => {
    const prepared = prepare({ taskType: "review", payloadMerge: { b: 3, d: 4 }, reason: "needs review" })
    assert.deepStrictEqual(prepared.task, {
      ...task,
      task_type: "review",
      correlation_id: "c",
      payload: { a: 1, b: 3, d: 4 }
    })
    assert.deepStrictEqual(prepared.headers, {
      task_id: "t",
      batch_id: "b",
      "x-svc-manual-retry-count": 2,
      "x-svc-manual-retry-source-consumer": "worker-1",
      "x-svc-manual-retry-from-task-type": "generate",
      "x-svc-manual-retry-reason": "needs review"
    })
  })

  it("announces itself as manual_retrying, with the lineage under meta.manual_retry", () => {
    const { status } = prepare({ taskType: "review", reason: "needs review", meta: { own: 1 } })
    assert.deepStrictEqual(status, {
      task_id: "t",
      status: "manual_retrying",
      message: "needs review",
      meta: {
        own: 1,
        manual_retry: {
          count: 2,
          source_consumer: "worker-1",
          previous_task_type: "generate",
          reason: "needs review",
          target_task_type: "review"
        }
      },
      correlation_id: "c"
    })
    assert.strictEqual(prepare({ reason: "r", message: "m" }).status.message, "m")
    assert.strictEqual(prepare({}).status.message, "The task was handed over for another attempt.")
  })

  it("replaces the payload, the priority, the service and the correlation id where they are given", () => {
    const { task: next } = prepare({ payload: { z: 1 }, priority: 9, service: "s", correlationId: "d", headers: {} })
    assert.deepStrictEqual(
      [next.payload, next.priority, next.service, next.correlation_id, next.created_at],
      [{ z: 1 }, 9, "s", "d", created]
    )
  })

  it("keeps the payload, the priority, the creation and what nobody declared where they are not", () => {
    const { task: next } = prepare({ extraFields: { more: 2 } })
    assert.deepStrictEqual(next, { ...task, correlation_id: "c", more: 2 })
  })

  it("lets the caller's headers win", () => {
    assert.strictEqual(prepare({ headers: { batch_id: "mine" } }).headers["batch_id"], "mine")
  })

  it.each([
    [{ payload: {}, payloadMerge: {} }, "payloadMerge"],
    [{ taskType: " " }, "taskType"],
    [{ extraFields: { task_id: "x", created_at: "y", own: 1 } }, "extraFields"]
  ])("is refused with %j", (request, field) => {
    const refused = ManualRetry.prepare(task, handling, request)
    const failure = Result.isFailure(refused) ? refused.failure : undefined
    assert.strictEqual(failure?._tag === "InvalidManualRetry" ? failure.field : undefined, field)
    if (field === "extraFields") assert.include(failure?.message, "created_at, task_id")
  })

  it("is refused with a reason that leaves no room for other headers", () => {
    const refused = ManualRetry.prepare(task, handling, { reason: `${"r".repeat(16_383)}é` })
    assert.match(Result.isFailure(refused) ? refused.failure.message : "", /^reason has 16385 bytes.* At most 16384/)
    assert.strictEqual(prepare({ reason: "r".repeat(16_384) }).status.message?.length, 16_384)
  })

  it("is refused with a priority that no task may have", () => {
    const refused = ManualRetry.prepare(task, handling, { priority: 256 })
    assert.strictEqual(Result.isFailure(refused) && refused.failure._tag, "EnvelopeError")
  })
})

describe("lineage", () => {
  it("is read from headers, and from meta where there are none", () => {
    const { headers, status } = prepare({ reason: "r" })
    const expected = { count: 2, previousTaskType: "generate", sourceConsumer: "worker-1", reason: "r" }
    assert.deepStrictEqual(HandOverHeaders.ofHeaders(headers), expected)
    assert.deepStrictEqual(HandOverHeaders.ofMeta(status.meta ?? {}), expected)
    assert.isTrue(HandOverHeaders.isEmpty(HandOverHeaders.ofMeta({ manual_retry: { count: "many" } })))
  })

  it("goes into the meta of statuses, where the caller's members win and the count is a count", () => {
    const lineage = { count: 2, previousTaskType: "a", sourceConsumer: undefined, reason: undefined }
    assert.deepStrictEqual(HandOverHeaders.intoMeta({ manual_retry: { count: "7", reason: "mine" } }, lineage), {
      manual_retry: { count: 7, previous_task_type: "a", reason: "mine" }
    })
  })

  it("adds nothing to a task that was never handed over", () => {
    const meta = { own: 1 }
    assert.strictEqual(HandOverHeaders.intoMeta(meta, HandOverHeaders.ofHeaders({})), meta)
  })
})

function prepare(request: ManualRetry.ManualRetryRequest) {
  return Result.getOrThrow(ManualRetry.prepare(task, handling, request))
}
