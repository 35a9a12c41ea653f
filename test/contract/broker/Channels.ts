import { assert } from "@effect/vitest"
import { Effect, Option, Queue } from "effect"
import { Broker, type Delivery } from "../../../src/services/Broker.ts"
import * as Temporary from "../../TemporaryNames.ts"
import type { Laws } from "./Laws.ts"
import { confirmed, declared, drained, ready, sendAll, settleAll, texts } from "./Messages.ts"

/** What the owner of a channel has. */
export const laws: Laws = (it) => {
  it.effect("gives a channel of one's own, that ends with the first thing that is refused", () =>
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
      assert.deepInclude(error, { operation: "channel", reason: "not_found" })
      assert.strictEqual((yield* Effect.flip(channel.ended)).reason, "not_found")
      assert.strictEqual(held.settle("ack"), "stale")
      assert.strictEqual((yield* Effect.flip(channel.get(queue))).reason, "not_found")
      assert.deepInclude(
        yield* channel.publish({ exchange: "", routingKey: queue, content: Buffer.from("x"), properties: {} }),
        { _tag: "Refused", reason: "closed" }
      )
      yield* ready(queue, 1)
      assert.deepStrictEqual(texts(yield* drained(queue)), ["x*"])
    }).pipe(Effect.scoped)
  )

  it.effect("consumes on a channel of one's own, within its prefetch", () =>
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
    }).pipe(Effect.scoped)
  )
}
