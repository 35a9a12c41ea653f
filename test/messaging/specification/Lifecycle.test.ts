import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import type { Field } from "../../../src/services/Broker.ts"
import { letters } from "../Letters.ts"
import { onBothBrokers, ready } from "./OnBothBrokers.ts"
import { bytes, working } from "./ResizeWorker.ts"

const noSuchPage = Effect.fail(new RangeError("no such page"))

/** Each header on a first retry, and on the dead letter behind it. */
const headers: ReadonlyArray<readonly [header: string, retried: (queue: string) => Field]> = [
  ["x-svc-retry-attempt", () => 1],
  ["x-svc-max-retries", () => 1],
  ["x-svc-source-queue", (queue) => queue],
  ["x-svc-failure-reason", () => "handler_error"],
  ["x-svc-exception-type", () => "RangeError"]
]

onBothBrokers("delivery and retry lifecycle", (provided) => {
  it.live.each([
    ["malformed JSON", Buffer.from("{"), "malformed_json", null],
    ["malformed JSON, which is no UTF-8", Buffer.of(0xff), "malformed_json", null],
    ["invalid envelope", Buffer.from('{"payload":{}}'), "invalid_envelope", "EnvelopeError"]
  ] as const)("original delivery, %s: dead-lettered", ([, body, reason, exceptionType]) =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const handler = Handler.make((task) => Effect.sync(() => seen.push(task)))
      const { client, deadLetters, queue } = yield* working(handler, { retries: 3 })
      yield* ready(deadLetters, 0)
      yield* client.publishRawToQueue(queue, body)
      yield* ready(deadLetters, 1)
      const [dead] = yield* bytes(deadLetters)
      assert.deepInclude(dead?.headers, {
        "x-svc-retry-attempt": 0,
        "x-svc-max-retries": 3,
        "x-svc-source-queue": queue,
        "x-svc-failure-reason": reason,
        "x-svc-exception-type": exceptionType
      })
      assert.strictEqual(dead?.body.equals(body), true)
      assert.deepStrictEqual(seen, [])
    }).pipe(provided)
  )

  it.live("a message of another program keeps its properties, retried and dead-lettered", () =>
    Effect.gen(function* () {
      const properties = {
        contentType: "application/json",
        contentEncoding: "identity",
        correlationId: "c1",
        replyTo: "answers",
        messageId: "m1",
        timestamp: new Date("2026-04-06T10:00:00Z"),
        type: "page.resize",
        appId: "publisher"
      }
      const { client, deadLetters, queue } = yield* working(
        Handler.make(() => noSuchPage),
        { retries: 1 }
      )
      yield* ready(deadLetters, 0)
      const content = Buffer.from('{"task_id":"t1","task_type":"resize"}')
      yield* client.publish({ purpose: "tasks", exchange: "", routingKey: queue, content, properties })
      yield* ready(deadLetters, 1)
      const [dead] = yield* letters(deadLetters)
      assert.deepInclude(dead?.properties, properties)
      assert.strictEqual(dead?.properties.headers?.["x-svc-retry-attempt"], 1)
    }).pipe(provided)
  )

  it.live("any attempt n, handler raises: attempt n+1 up to max_retries, then dead-lettered", () =>
    Effect.gen(function* () {
      const attempts: Array<readonly [number, Field | undefined]> = []
      const handler = Handler.make((_, { headers, retryAttempt }) => {
        attempts.push([retryAttempt, headers["x-svc-retry-attempt"]])
        return noSuchPage
      })
      const { client, deadLetters, queue } = yield* working(handler, { retries: 2 })
      yield* ready(deadLetters, 0)
      yield* client.publishTask({ task_id: "t1", task_type: "resize" })
      yield* ready(deadLetters, 1)
      const [dead] = yield* bytes(deadLetters)
      assert.deepInclude(dead?.headers, { "x-svc-failure-reason": "handler_error", "x-svc-source-queue": queue })
      assert.deepStrictEqual(attempts, [
        [0, undefined],
        [1, 1],
        [2, 2]
      ])
      yield* ready(queue, 0)
    }).pipe(provided)
  )

  it.live("batch envelope delivery: fanned out, and only a failed item is retried", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const handler = Handler.make(({ task_id }, { batchId, batchIndex, batchSize, retryAttempt }) => {
        seen.push(`${task_id} ${batchId} ${batchIndex}/${batchSize} attempt ${retryAttempt}`)
        return task_id === "b" ? noSuchPage : Effect.void
      })
      const { client, deadLetters } = yield* working(handler, { retries: 1 })
      yield* ready(deadLetters, 0)
      const tasks = ["a", "b", "c"].map((task_id) => ({ task_id, task_type: "resize" }))
      yield* client.publishTasks(tasks, { mode: "batch_envelope", batchId: "batch" })
      yield* ready(deadLetters, 1)
      const [dead] = yield* letters(deadLetters)
      assert.deepInclude(dead?.body, { task_id: "b", spec_version: "1.0" })
      assert.deepStrictEqual(seen, [
        "a batch 0/3 attempt 0",
        "b batch 1/3 attempt 0",
        "c batch 2/3 attempt 0",
        "b batch 1/3 attempt 1"
      ])
    }).pipe(provided)
  )

  it.live("manual_retry, target routed queue exists: republished under the same task_id", () =>
    Effect.gen(function* () {
      const { client, other, queue, statuses } = yield* working(
        Handler.make((_, context) => context.manualRetry({ taskType: "rotate", reason: "too wide" }))
      )
      yield* client.publishTask({ task_id: "t1", task_type: "resize" })
      yield* ready(other, 1)
      const [handed] = yield* letters(other)
      assert.deepInclude(handed?.body, { task_id: "t1", task_type: "rotate" })
      assert.deepStrictEqual(handed?.properties.headers, {
        task_id: "t1",
        "x-svc-manual-retry-count": 1,
        "x-svc-manual-retry-source-consumer": "svc-task-consumer",
        "x-svc-manual-retry-from-task-type": "resize",
        "x-svc-manual-retry-reason": "too wide"
      })
      const [status] = yield* letters(statuses)
      assert.deepInclude(status?.body, { task_id: "t1", status: "manual_retrying" })
      assert.deepInclude(Object(status?.body).meta.manual_retry, { count: 1, target_task_type: "rotate" })
      yield* ready(queue, 0)
    }).pipe(provided)
  )
})

onBothBrokers("retry headers", (provided) => {
  it.live.each(headers)("%s: not on the original delivery, but on a retry and a dead letter", ([header, expected]) =>
    Effect.gen(function* () {
      const seen: Array<Field | undefined> = []
      const handler = Handler.make((_, { headers }) => {
        seen.push(headers[header])
        return noSuchPage
      })
      const { client, deadLetters, queue } = yield* working(handler, { retries: 1 })
      yield* ready(deadLetters, 0)
      yield* client.publishTask({ task_id: "t1", task_type: "resize", payload: { pages: 3 } })
      yield* ready(deadLetters, 1)
      assert.deepStrictEqual(seen, [undefined, expected(queue)])
      const [dead] = yield* letters(deadLetters)
      assert.strictEqual(dead?.properties.headers?.[header], expected(queue))
      // the body is never rewritten
      assert.deepInclude(dead?.body, { task_id: "t1", task_type: "resize", payload: { pages: 3 } })
    }).pipe(provided)
  )
})
