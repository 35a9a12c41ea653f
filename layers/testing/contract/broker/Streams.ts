import assert from "node:assert/strict"
import { Deferred, Effect, Exit, Option } from "effect"
import { Broker, type Fields } from "../../../../src/services/Broker.ts"
import { includes } from "../law/Assert.ts"
import { eventually } from "../law/Eventually.ts"
import { type BrokerLaw, brokerLaw } from "./BrokerLaw.ts"
import { faults } from "./ConnectionFaults.ts"
import { confirmed, declared, ofKind, only, reader, send, sendAll, settleAll, text } from "./Messages.ts"

/** Laws of streams. */
export const laws: ReadonlyArray<BrokerLaw> = [
  brokerLaw(
    "lets each consumer of a stream read from any offset",
    Effect.gen(function* () {
      const broker = yield* Broker
      const queue = yield* declared("stream", ofKind("stream"))
      const start = new Date()
      yield* sendAll(queue, ["0", "1", "2", "3", "4"])
      const read = (offset: Fields[string] | undefined, count: number) =>
        Effect.gen(function* () {
          const { take } = yield* reader(
            queue,
            2,
            offset === undefined ? {} : { arguments: { "x-stream-offset": offset } }
          )
          const seen: Array<unknown> = []
          for (let n = 0; n < count; n++) {
            const { content, properties, redelivered, settle } = yield* take
            seen.push([text(content), properties.headers?.["x-stream-offset"], redelivered])
            // RabbitMQ closes the connection when a stream delivery is rejected, so every settlement must act as `ack`.
            assert.strictEqual(settle(n === 0 ? "reject" : n === 1 ? "requeue" : "ack"), "requested")
          }
          return seen
        }).pipe(Effect.scoped)
      const all = Array.from({ length: 5 }, (_, n) => [`${n}`, n, false])
      assert.deepStrictEqual(yield* read("first", 5), all)
      assert.deepStrictEqual(yield* read("first", 5), all)
      assert.deepStrictEqual(yield* read(2, 3), all.slice(2))
      assert.deepStrictEqual(yield* read("1h", 2), all.slice(0, 2))
      assert.deepStrictEqual(yield* read(new Date(start.getTime() - 60_000), 1), all.slice(0, 1))
      const { arrived, take } = yield* reader(queue, 2)
      confirmed(yield* send(queue, "5"))
      assert.deepStrictEqual(text((yield* take).content), "5")
      assert.strictEqual(yield* arrived, 0)
      const bogus = yield* Effect.flip(
        broker.consume({ queue, prefetch: 1, arguments: { "x-stream-offset": "bogus" }, onDelivery: () => {} })
      )
      includes(bogus, { operation: "consume", reason: "refused" })
      const own = yield* broker.channel({ prefetch: 1 })
      assert.strictEqual((yield* Effect.flip(own.get(queue))).reason, "refused")
      assert.deepStrictEqual(yield* own.get(yield* declared("no-stream")), Option.none())
    })
  ),

  brokerLaw(
    "resumes a stream after its settled offset, also if the stream was declared again, and calls `onResumed` first",
    Effect.gen(function* () {
      const broker = yield* Broker
      const { cutHere, restore } = yield* faults
      const queue = yield* declared("stream-again", ofKind("stream"))
      const happened: Array<string> = []
      yield* broker.consume({
        queue,
        prefetch: 10,
        arguments: { "x-stream-offset": "first" },
        onDelivery: ({ content, settle }) => {
          happened.push(text(content))
          if (text(content) !== "1") settle("ack")
        },
        onLost: () => happened.push("lost"),
        onResumed: () => happened.push("resumed")
      })
      const until = (count: number) =>
        eventually(
          Effect.sync(() => happened.length),
          (length) => length === count
        )
      yield* sendAll(queue, ["0", "1"])
      yield* until(2)
      yield* cutHere
      yield* until(3)
      yield* restore
      yield* until(5)
      yield* broker.remove({ queues: [queue] })
      yield* broker.declare(only({ name: queue, arguments: ofKind("stream") }))
      yield* until(7)
      yield* sendAll(queue, ["new 0", "new 1", "new 2"])
      yield* until(9)
      assert.deepStrictEqual(happened, ["0", "1", "lost", "resumed", "1", "lost", "resumed", "new 1", "new 2"])
    })
  ),

  brokerLaw(
    "resumes a stream after the last settled offset when the connection was lost",
    Effect.gen(function* () {
      const { cutHere, restore } = yield* faults
      const queue = yield* declared("stream-cut", ofKind("stream"))
      yield* sendAll(queue, ["0", "1", "2", "3"])
      const lost = yield* Deferred.make<void>()
      const { takeN } = yield* reader(queue, 10, {
        arguments: { "x-stream-offset": "first" },
        onLost: () => Deferred.doneUnsafe(lost, Exit.void)
      })
      const before = yield* takeN(4)
      yield* settleAll(before.slice(0, 2))
      yield* cutHere
      yield* Deferred.await(lost)
      assert.strictEqual(before[3]?.settle("ack"), "stale")
      yield* restore
      assert.deepStrictEqual(
        (yield* takeN(2)).map(({ content, epoch }) => [text(content), epoch]),
        [
          ["2", 2],
          ["3", 2]
        ]
      )
    })
  )
]
