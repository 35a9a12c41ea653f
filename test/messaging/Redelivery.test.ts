import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Result } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import { BrokerClient } from "../../src/messaging/BrokerClient.ts"
import * as Redelivery from "../../src/messaging/Redelivery.ts"
import { RetryPolicy } from "../../src/messaging/RetryPolicy.ts"
import { Broker, type Properties } from "../../src/services/Broker.ts"
import { letters } from "./Letters.ts"
import { shared } from "./SampleTopologies.ts"

const desk = Layer.provideMerge(
  BrokerClient.layer({ topology: shared({ task_max_priority: 9 }) }),
  BrokerMemory.layer()
)

const redelivery = (policy = new RetryPolicy()) =>
  Effect.gen(function* () {
    const client = yield* BrokerClient
    yield* client.initialize
    return yield* Effect.fromResult(Redelivery.make(yield* Broker, client, "tasks.queue", policy))
  })

/** A message on its way through the queue, as a consumer gets it. */
const delivered = (properties: Properties = {}) =>
  Effect.gen(function* () {
    const { acquireChannel, publish } = yield* BrokerClient
    yield* publish({
      purpose: "tasks",
      exchange: "",
      routingKey: "tasks.queue",
      content: Buffer.from('{"task_id":"t1"}'),
      properties
    })
    return Option.getOrThrow(yield* (yield* acquireChannel()).get("tasks.queue"))
  })

const failed: Redelivery.Failure = { reason: "handler_error", exceptionType: "Boom", retryable: true }

describe("Redelivery", () => {
  it.effect(
    "brings a failed message back after the delay, byte for byte, with its properties and the retry headers",
    () =>
      Effect.gen(function* () {
        const { prepare, redeliver } = yield* redelivery()
        yield* prepare
        const properties: Properties = {
          contentType: "application/x-mine",
          correlationId: "c1",
          priority: 7,
          headers: { task_id: "t1", nothing: null }
        }
        const delivery = yield* delivered(properties)
        assert.deepInclude(yield* redeliver(delivery, failed, { batch_id: "b1" }), {
          _tag: "Retry",
          attempt: 1,
          queue: "tasks.queue.retry.30000ms"
        })
        delivery.settle("ack")
        yield* TestClock.adjust("29 seconds")
        assert.deepStrictEqual(yield* letters("tasks.queue"), [])
        yield* TestClock.adjust("1 second")
        const [letter, ...others] = yield* letters("tasks.queue")
        assert.deepStrictEqual(others, [])
        assert.deepStrictEqual(letter?.body, { task_id: "t1" })
        assert.deepInclude(letter?.properties, { contentType: "application/x-mine", correlationId: "c1", priority: 7 })
        assert.deepInclude(letter?.properties.headers, {
          task_id: "t1",
          nothing: null,
          batch_id: "b1",
          "x-svc-retry-attempt": 1,
          "x-svc-max-retries": 3,
          "x-svc-source-queue": "tasks.queue",
          "x-svc-failure-reason": "handler_error",
          "x-svc-exception-type": "Boom"
        })
      }).pipe(Effect.scoped, Effect.provide(desk))
  )

  it.effect("dead-letters at once what failed for the last time, and what trying again would not mend", () =>
    Effect.gen(function* () {
      const { prepare, redeliver } = yield* redelivery()
      yield* prepare
      const last = yield* delivered({ headers: { "x-svc-retry-attempt": 3 } })
      const fresh = yield* delivered()
      const sent = [
        yield* redeliver(last, failed),
        yield* redeliver(fresh, { ...failed, retryable: false }),
        yield* redeliver(fresh, { reason: "malformed_json", exceptionType: null, retryable: true })
      ]
      for (const { _tag, queue } of sent) assert.deepStrictEqual([_tag, queue], ["DeadLetter", "tasks.queue.dlq"])
      assert.deepStrictEqual(
        (yield* letters("tasks.queue.dlq")).map(({ properties: { headers = {} } }) => [
          headers["x-svc-retry-attempt"],
          headers["x-svc-failure-reason"],
          headers["x-svc-exception-type"]
        ]),
        [
          [3, "handler_error", "Boom"],
          [0, "handler_error", "Boom"],
          [0, "malformed_json", null]
        ]
      )
    }).pipe(Effect.scoped, Effect.provide(desk))
  )

  it.effect("declares the queues again when somebody has deleted one", () =>
    Effect.gen(function* () {
      const { prepare, redeliver } = yield* redelivery()
      yield* prepare
      const delivery = yield* delivered()
      yield* (yield* Broker).remove({ queues: ["tasks.queue.retry.30000ms"] })
      assert.deepInclude(yield* redeliver(delivery, failed), { _tag: "Retry", attempt: 1 })
    }).pipe(Effect.scoped, Effect.provide(desk))
  )

  it.effect("keeps a retry queue for as long as it publishes into it, whatever the broker makes of its use", () =>
    Effect.gen(function* () {
      const { prepare, redeliver } = yield* redelivery(new RetryPolicy({ delay_ms: 3_600_000, max_retries: 100 }))
      yield* prepare
      const delivery = yield* delivered()
      // so that a message is waiting at every full hour
      yield* TestClock.adjust("30 minutes")
      for (let hour = 0; hour < 48; hour++) {
        yield* redeliver(delivery, failed)
        yield* TestClock.adjust("1 hour")
      }
      assert.strictEqual((yield* letters("tasks.queue")).length, 48)
    }).pipe(Effect.scoped, Effect.provide(desk))
  )

  it.effect("refuses a queue whose retry queues could have no name", () =>
    Effect.gen(function* () {
      const made = Redelivery.make(yield* Broker, yield* BrokerClient, "q".repeat(250), new RetryPolicy())
      assert.match(Result.isFailure(made) ? made.failure.message : "", /more than 255 bytes/)
    }).pipe(Effect.provide(desk))
  )
})
