import assert from "node:assert/strict"
import { Effect, Option, Queue } from "effect"
import { Broker, type Delivery } from "../../../../src/services/Broker.ts"
import { includes } from "../law/Assert.ts"
import { type BrokerLaw, brokerLaw } from "./BrokerLaw.ts"
import { confirmed, declared, drained, ready, sendAll, settleAll, texts } from "./Messages.ts"
import * as Temporary from "./TemporaryNames.ts"

/** Laws of channels for one caller. */
export const laws: ReadonlyArray<BrokerLaw> = [
  brokerLaw(
    "opens a channel that ends with the first refused operation",
    Effect.gen(function* () {
      const broker = yield* Broker
      const names = yield* Temporary.TemporaryNames
      const queue = yield* declared("own")
      const channel = yield* broker.channel({ prefetch: 2 })
      assert.deepStrictEqual(yield* channel.get(queue), Option.none())
      confirmed(yield* channel.publish({ exchange: "", routingKey: queue, content: Buffer.from("x"), properties: {} }))
      const held = Option.getOrThrow(yield* channel.get(queue))
      assert.deepStrictEqual([...texts([held]), held.epoch, held.deliveryTag], ["x", 1, 1])
      const error = yield* Effect.flip(channel.get(names.queue("nowhere")))
      includes(error, { operation: "channel", reason: "not_found" })
      assert.strictEqual((yield* Effect.flip(channel.ended)).reason, "not_found")
      assert.strictEqual(held.settle("ack"), "stale")
      assert.strictEqual((yield* Effect.flip(channel.get(queue))).reason, "not_found")
      includes(yield* channel.publish({ exchange: "", routingKey: queue, content: Buffer.from("x"), properties: {} }), {
        _tag: "Refused",
        reason: "closed"
      })
      yield* ready(queue, 1)
      assert.deepStrictEqual(texts(yield* drained(queue)), ["x*"])
    })
  ),

  brokerLaw(
    "consumes on such a channel within its prefetch",
    Effect.gen(function* () {
      const broker = yield* Broker
      const queue = yield* declared("own-consumer")
      yield* sendAll(queue, ["1", "2", "3"])
      const seen = yield* Queue.unbounded<Delivery>()
      const { consume } = yield* broker.channel({ prefetch: 2 })
      const { cancel } = yield* consume({
        queue,
        onDelivery: (delivery) => {
          Queue.offerUnsafe(seen, delivery)
        }
      })
      const held = yield* Queue.takeN(seen, 2)
      assert.deepStrictEqual(texts(held), ["1", "2"])
      yield* ready(queue, 1)
      yield* cancel
      yield* settleAll(held)
      assert.deepStrictEqual(texts(yield* drained(queue)), ["3"])
    })
  )
]
