import assert from "node:assert/strict"
import { Effect, Exit, Option, Queue, Result, Scope } from "effect"
import { Broker, type Delivery } from "../../../../src/services/Broker.ts"
import { includes } from "../law/Assert.ts"
import { eventually } from "../law/Eventually.ts"
import { type BrokerLaw, brokerLaw } from "./BrokerLaw.ts"
import {
  confirmed,
  declared,
  drained,
  kinds,
  ofKind,
  reader,
  ready,
  send,
  sendAll,
  settleAll,
  text,
  texts
} from "./Messages.ts"

/** Laws of consumers and settlements. */
export const laws: ReadonlyArray<BrokerLaw> = [
  brokerLaw(
    "delivers at most `prefetch` messages, and one more for each that is settled",
    Effect.gen(function* () {
      const queue = yield* declared("prefetch")
      yield* sendAll(queue, ["1", "2", "3", "4", "5"])
      const { arrived, take, takeN } = yield* reader(queue, 2)
      const [first, second] = yield* takeN(2)
      assert.ok(first !== undefined && second !== undefined)
      yield* ready(queue, 3)
      assert.strictEqual(yield* arrived, 0)
      assert.deepStrictEqual(
        [first?.settle("ack"), first?.settle("ack"), first?.settle("requeue")],
        ["requested", "settled", "settled"]
      )
      assert.deepStrictEqual(texts([yield* take]), ["3"])
      second?.settle("reject")
      assert.deepStrictEqual(texts([yield* take]), ["4"])
      yield* ready(queue, 1)
      const found = Option.getOrThrow(yield* (yield* Broker).inspect(queue))
      assert.strictEqual(found.consumers, 1)
    })
  ),

  brokerLaw(
    "requeues to the old place in a classic queue, and to the end of a quorum queue, or to its front with a delivery limit",
    Effect.gen(function* () {
      const fields = [ofKind("classic"), ofKind("quorum"), ofKind("quorum", { "x-delivery-limit": 5 })]
      const orders = yield* Effect.forEach(fields, (fields, index) =>
        Effect.gen(function* () {
          const queue = yield* declared(`requeued-${index}`, fields)
          yield* sendAll(queue, ["1", "2", "3", "4"])
          const { get } = yield* (yield* Broker).channel({ prefetch: 1 })
          const held = yield* Effect.all([get(queue), get(queue), get(queue)])
          const [first, second, third] = held.map(Option.getOrThrow)
          assert.ok(first !== undefined && second !== undefined && third !== undefined)
          yield* settleAll(
            [third, first, second].flatMap((delivery) => delivery ?? []),
            "requeue"
          )
          yield* ready(queue, 4)
          return texts(yield* drained(queue)).join(" ")
        }).pipe(Effect.scoped)
      )
      assert.deepStrictEqual(orders, ["1* 2* 3* 4", "4 3* 1* 2*", "3* 1* 2* 4"])
    })
  ),

  ...kinds.flatMap((kind) => [
    brokerLaw(
      `redelivers the unsettled messages of a closed scope first: ${kind}`,
      Effect.gen(function* () {
        const queue = yield* declared(`left-${kind}`, ofKind(kind))
        yield* sendAll(queue, ["1", "2", "3", "4"])
        const left = yield* Effect.scoped(
          Effect.gen(function* () {
            const { takeN } = yield* reader(queue, 4)
            const deliveries = yield* takeN(4)
            deliveries[1]?.settle("ack")
            return deliveries
          })
        )
        yield* ready(queue, 3)
        assert.strictEqual(left[0]?.settle("ack"), "stale")
        assert.strictEqual(left[1]?.settle("ack"), "settled")
        const again = yield* drained(queue)
        assert.deepStrictEqual(texts(again), ["1*", "3*", "4*"])
      })
    ),

    brokerLaw(
      `delivers to consumers in turn, and first to those of a higher priority: ${kind}`,
      Effect.gen(function* () {
        const queue = yield* declared(`turns-${kind}`, ofKind(kind))
        const first = yield* reader(queue, 2)
        const second = yield* reader(queue, 2)
        const above = yield* reader(queue, 2, { arguments: { "x-priority": 5 } })
        yield* sendAll(queue, ["1", "2", "3", "4", "5", "6", "7", "8"])
        const taken = yield* Effect.all([first.takeN(2), second.takeN(2), above.takeN(2)])
        assert.deepStrictEqual(taken.map(texts), [
          ["3", "5"],
          ["4", "6"],
          ["1", "2"]
        ])
        yield* ready(queue, 2)
        taken[2][0]?.settle("ack")
        assert.deepStrictEqual(texts([yield* above.take]), ["7"])
        taken[1][0]?.settle("ack")
        assert.deepStrictEqual(texts([yield* second.take]), ["8"])
      })
    ),

    brokerLaw(
      `has a single active consumer, which the next one replaces: ${kind}`,
      Effect.gen(function* () {
        const queue = yield* declared(`single-${kind}`, ofKind(kind, { "x-single-active-consumer": true }))
        const leaving = yield* Scope.make()
        const active = yield* Scope.provide(reader(queue, 2), leaving)
        const waiting = yield* reader(queue, 9)
        yield* sendAll(queue, ["1", "2", "3", "4"])
        assert.deepStrictEqual(texts(yield* active.takeN(2)), ["1", "2"])
        yield* ready(queue, 2)
        assert.strictEqual(yield* waiting.arrived, 0)
        const got = yield* Effect.result((yield* (yield* Broker).channel({ prefetch: 1 })).get(queue))
        const said = Result.match(got, { onFailure: ({ reason }) => reason, onSuccess: () => "" })
        assert.strictEqual(said, kind === "quorum" ? "locked" : "")
        yield* Scope.close(leaving, Exit.void)
        // Another channel has got the third message of a classic queue.
        const rest = kind === "quorum" ? ["1*", "2*", "3", "4"] : ["1*", "2*", "4"]
        assert.deepStrictEqual(texts(yield* waiting.takeN(rest.length)), rest)
      })
    )
  ]),

  brokerLaw(
    "delivers the highest priority first, requeues into it, and drops from it first when the queue is full",
    Effect.gen(function* () {
      const queue = yield* declared("priorities", { "x-max-priority": 5 })
      for (const [content, priority] of [
        ["a", 1],
        ["b", 9],
        ["c"],
        ["d", 5],
        ["e", 3],
        ["f", 5],
        ["g", 255]
      ] as const) {
        confirmed(yield* send(queue, content, priority === undefined ? {} : { priority }))
      }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { get } = yield* (yield* Broker).channel({ prefetch: 1 })
          for (let count = 0; count < 3; count++) yield* get(queue)
        })
      )
      yield* ready(queue, 7)
      assert.deepStrictEqual(texts(yield* drained(queue)), ["b*", "d*", "f*", "g", "e", "a", "c"])
      const bounded = yield* declared("priorities-bounded", { "x-max-priority": 5, "x-max-length": 2 })
      for (const [content, priority] of [
        ["a", 1],
        ["b", 5],
        ["c", 3]
      ] as const) {
        confirmed(yield* send(bounded, content, { priority }))
      }
      assert.deepStrictEqual(texts(yield* drained(bounded)), ["c", "a"])
    })
  ),

  brokerLaw(
    "delivers nothing after `cancel`, and settles earlier deliveries",
    Effect.gen(function* () {
      const queue = yield* declared("cancelled")
      yield* sendAll(queue, ["1", "2"])
      const { arrived, cancel, take } = yield* reader(queue, 1)
      const first = yield* take
      yield* cancel
      yield* cancel
      assert.strictEqual(first.settle("ack"), "requested")
      const found = yield* eventually((yield* Broker).inspect(queue), (found) =>
        Option.exists(found, ({ consumers }) => consumers === 0)
      )
      assert.deepStrictEqual(found, Option.some({ messages: 1, consumers: 0 }))
      assert.strictEqual(yield* arrived, 0)
      assert.deepStrictEqual(texts(yield* drained(queue)), ["2"])
    })
  ),

  brokerLaw(
    "requeues a delivery if `onDelivery` throws",
    Effect.gen(function* () {
      const broker = yield* Broker
      const queue = yield* declared("throws")
      const seen = yield* Queue.unbounded<Delivery>()
      yield* broker.consume({
        queue,
        prefetch: 5,
        onDelivery: (delivery) => {
          Queue.offerUnsafe(seen, delivery)
          if (text(delivery.content) === "bad" && !delivery.redelivered) throw new Error("on purpose")
        }
      })
      yield* sendAll(queue, ["bad", "good"])
      assert.deepStrictEqual(texts(yield* Queue.takeN(seen, 3)), ["bad", "good", "bad*"])
    })
  ),

  brokerLaw(
    "refuses a prefetch that AMQP does not allow",
    Effect.gen(function* () {
      const broker = yield* Broker
      const queue = yield* declared("prefetches")
      for (const prefetch of [0, -1, 1.5, 65_536]) {
        const error = yield* Effect.flip(Effect.scoped(broker.consume({ queue, prefetch, onDelivery: () => {} })))
        includes(error, { operation: "consume", reason: "refused" })
      }
    })
  )
]
