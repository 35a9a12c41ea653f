import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Result } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import * as Redelivery from "../../../src/messaging/failure/Redelivery.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import type { DeliveryFailure } from "../../../src/messaging/retry/HandlerFailure.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import { Broker, type Outcome, type Properties } from "../../../src/services/Broker.ts"
import { letters } from "../Letters.ts"
import { shared } from "../SampleTopologies.ts"

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

/** A client whose first retries have those outcomes; then the broker's own. */
const refusing = (broker: Broker["Service"], outcomes: ReadonlyArray<Outcome>, publishes: Array<string>) =>
  Layer.provideMerge(
    BrokerClient.layer({ topology: shared({ task_max_priority: 9 }) }),
    Layer.succeed(
      Broker,
      Broker.of({
        ...broker,
        publish: (publication) => {
          if (publication.purpose !== "retries") return broker.publish(publication)
          const outcome = outcomes[publishes.length]
          return Effect.tap(outcome === undefined ? broker.publish(publication) : Effect.succeed(outcome), ({ _tag }) =>
            Effect.sync(() => publishes.push(_tag))
          )
        }
      })
    )
  )

const tooLong: Outcome = { _tag: "Refused", reason: "invalid", detail: "too long" }

/** Properties that the library neither writes nor reads. */
const described = {
  contentEncoding: "gzip",
  replyTo: "answers",
  messageId: "m1",
  timestamp: new Date("2026-04-06T10:00:00Z"),
  type: "book.page",
  appId: "reader"
}

const failed: DeliveryFailure = {
  reason: "handler_error",
  exceptionType: "Boom",
  text: "out of ink",
  stack: "",
  retryable: true
}

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
          headers: { task_id: "t1", nothing: null },
          ...described
        }
        const delivery = yield* delivered({ ...properties, expiration: 60_000, userId: "guest" })
        assert.deepInclude(yield* redeliver(delivery, failed), {
          _tag: "Retry",
          attempt: 1,
          queue: "tasks.queue.retry.30000ms.quorum"
        })
        delivery.settle("ack")
        yield* TestClock.adjust("29 seconds")
        assert.deepStrictEqual(yield* letters("tasks.queue"), [])
        yield* TestClock.adjust("1 second")
        const [letter, ...others] = yield* letters("tasks.queue")
        assert.deepStrictEqual(others, [])
        assert.deepStrictEqual(letter?.body, { task_id: "t1" })
        assert.deepInclude(letter?.properties, {
          contentType: "application/x-mine",
          correlationId: "c1",
          priority: 7,
          ...described
        })
        assert.doesNotHaveAnyKeys(letter?.properties, ["expiration", "userId"])
        assert.deepInclude(letter?.properties.headers, {
          task_id: "t1",
          nothing: null,
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
      const last = yield* delivered({ ...described, headers: { "x-svc-retry-attempt": 3 } })
      const fresh = yield* delivered()
      const sent = [
        yield* redeliver(last, failed),
        yield* redeliver(fresh, { ...failed, retryable: false }),
        yield* redeliver(fresh, { ...failed, reason: "malformed_json", exceptionType: null })
      ]
      for (const { _tag, queue } of sent) assert.deepStrictEqual([_tag, queue], ["DeadLetter", "tasks.queue.dlq"])
      const dead = yield* letters("tasks.queue.dlq")
      assert.deepInclude(dead[0]?.properties, described)
      assert.deepStrictEqual(
        dead.map(({ properties: { headers = {} } }) => [
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
      yield* (yield* Broker).remove({ queues: ["tasks.queue.retry.30000ms.quorum"] })
      assert.deepInclude(yield* redeliver(delivery, failed), { _tag: "Retry", attempt: 1 })
    }).pipe(Effect.scoped, Effect.provide(desk))
  )

  it.effect("holds what the broker does not store at present, and publishes it once", () =>
    Effect.gen(function* () {
      const publishes: Array<string> = []
      const broker = yield* Broker
      const passing: ReadonlyArray<Outcome> = [
        { _tag: "Refused", reason: "nacked", detail: "no leader" },
        { _tag: "Refused", reason: "blocked", detail: "low on memory" },
        { _tag: "Refused", reason: "unreachable", detail: "no connection" }
      ]
      const { delivery, redelivering } = yield* Effect.gen(function* () {
        const { prepare, redeliver } = yield* redelivery()
        yield* prepare
        const delivery = yield* delivered()
        return { delivery, redelivering: yield* Effect.forkChild(redeliver(delivery, failed)) }
      }).pipe(Effect.provide(refusing(broker, passing, publishes)))
      yield* TestClock.adjust("5 seconds")
      assert.deepInclude(yield* Fiber.join(redelivering), { _tag: "Retry", attempt: 1 })
      delivery.settle("ack")
      assert.deepStrictEqual(publishes, [...passing.map(({ _tag }) => _tag), "Confirmed"])
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual((yield* letters("tasks.queue")).length, 1)
    }).pipe(Effect.scoped, Effect.provide(desk))
  )

  it.effect.each<readonly [string, ReadonlyArray<Outcome>]>([
    ["may be stored", [{ _tag: "Unknown", reason: "deadline", detail: "no answer" }]],
    ["never will be, with few headers either", [tooLong, tooLong]]
  ])("gives up at once what %s", ([, outcomes]) =>
    Effect.gen(function* () {
      const publishes: Array<string> = []
      yield* Effect.gen(function* () {
        const { prepare, redeliver } = yield* redelivery()
        yield* prepare
        yield* Effect.flip(redeliver(yield* delivered(), failed))
      }).pipe(Effect.provide(refusing(yield* Broker, outcomes, publishes)))
      assert.deepStrictEqual(
        publishes,
        outcomes.map(({ _tag }) => _tag)
      )
    }).pipe(Effect.scoped, Effect.provide(desk))
  )

  it.effect.each<DeliveryFailure>([failed, { ...failed, reason: "malformed_json" }])(
    "leaves the long headers of a message behind rather than the message: $reason",
    (failure) =>
      Effect.gen(function* () {
        const many = Object.fromEntries(Array.from({ length: 70 }, (_, n) => [`n${n}`, n]))
        const headers = { ...many, list: [1], pad: "p".repeat(300), "x-svc-manual-retry-count": 2, task_id: "t1" }
        const publishes: Array<string> = []
        const went = yield* Effect.gen(function* () {
          const { prepare, redeliver } = yield* redelivery()
          yield* prepare
          return yield* redeliver(yield* delivered({ correlationId: "c1", headers, ...described }), failure)
        }).pipe(Effect.provide(refusing(yield* Broker, [tooLong], publishes)))
        assert.deepStrictEqual(publishes, ["Refused", "Confirmed"])
        const [letter] = yield* letters(went.queue)
        assert.deepStrictEqual(letter?.body, { task_id: "t1" })
        assert.deepInclude(letter?.properties, { correlationId: "c1", ...described })
        assert.deepInclude(letter?.properties.headers, went.headers)
        assert.deepInclude(went.headers, {
          task_id: "t1",
          n61: 61,
          "x-svc-manual-retry-count": 2,
          "x-svc-failure-reason": failure.reason,
          "x-svc-headers-left-out": 10
        })
        assert.doesNotHaveAnyKeys(went.headers, ["pad", "list", "n62"])
      }).pipe(Effect.scoped, Effect.provide(desk))
  )

  it.effect("holds nothing for ever", () =>
    Effect.gen(function* () {
      const full: Outcome = { _tag: "Refused", reason: "nacked", detail: "full" }
      const ended = yield* Effect.gen(function* () {
        const { prepare, redeliver } = yield* redelivery()
        yield* prepare
        return yield* Effect.forkChild(Effect.flip(redeliver(yield* delivered(), failed)))
      }).pipe(
        Effect.provide(
          refusing(
            yield* Broker,
            Array.from({ length: 100 }, () => full),
            []
          )
        )
      )
      yield* TestClock.adjust("70 seconds")
      assert.deepInclude(yield* Fiber.join(ended), { _tag: "PublishRefused", reason: "nacked" })
    }).pipe(Effect.scoped, Effect.provide(desk))
  )

  it.effect("refuses a queue whose retry queues could have no name", () =>
    Effect.gen(function* () {
      const made = Redelivery.make(yield* Broker, yield* BrokerClient, "q".repeat(250), new RetryPolicy())
      assert.match(Result.isFailure(made) ? made.failure.message : "", /more than 255 bytes/)
    }).pipe(Effect.provide(desk))
  )
})
