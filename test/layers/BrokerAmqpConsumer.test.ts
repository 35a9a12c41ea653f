import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Option } from "effect"
import { Broker, type ConsumeOptions, type Delivery, type Publication } from "../../src/services/Broker.ts"
import { eventually } from "../Eventually.ts"
import * as RunningBroker from "../RunningBroker.ts"

describe.skipIf(RunningBroker.server === null)("BrokerAmqp: consumers", () => {
  const broker = RunningBroker.layer({ publishWithin: "3 seconds" })

  it.live("acknowledges what is finished behind what is not, and nothing that is not", () =>
    Effect.gen(function* () {
      const queue = yield* filled(200)
      const left = yield* Effect.scoped(
        Effect.gen(function* () {
          const received = yield* consuming({ queue, prefetch: 50 })
          // Number 3 is slow: with a window of 50, the rest can only come if what is behind it is acknowledged.
          let from = 0
          yield* eventually(
            Effect.sync(() => {
              for (; from < received.length; from++)
                if (from !== 3) assert.strictEqual(received[from]!.settle("ack"), "requested")
              return received.length
            }),
            (count) => count === 200
          )
          return textOf(received[3]!)
        })
      )
      yield* holding(queue, 1)
      const { channel } = yield* Broker
      const [delivery] = yield* Effect.map((yield* channel({ prefetch: 1 })).get(queue), Option.toArray)
      assert.strictEqual(textOf(delivery!), left)
      assert.isTrue(delivery!.redelivered)
    }).pipe(Effect.scoped, Effect.provide(broker))
  )

  it.live("says of a delivery that it was settled, and of one whose channel is gone that it is stale", () =>
    Effect.gen(function* () {
      const queue = yield* filled(3)
      const received = yield* Effect.scoped(
        Effect.gen(function* () {
          const received = yield* consuming({ queue, prefetch: 10 })
          yield* eventually(
            Effect.sync(() => received.length),
            (count) => count === 3
          )
          assert.strictEqual(received[0]!.settle("ack"), "requested")
          assert.strictEqual(received[0]!.settle("reject"), "settled")
          assert.strictEqual(received[1]!.settle("reject"), "requested")
          assert.strictEqual(received[1]!.settle("ack"), "settled")
          return received
        })
      )
      assert.strictEqual(received[0]!.settle("ack"), "settled")
      assert.strictEqual(received[2]!.settle("ack"), "stale")
      yield* holding(queue, 1)
    }).pipe(Effect.scoped, Effect.provide(broker))
  )

  it.live("has random settlements in any order leave exactly what was not settled", () =>
    Effect.gen(function* () {
      const queue = yield* filled(400)
      let seed = 7
      const random = () => {
        seed = (seed * 48_271) % 2_147_483_647
        return seed / 2_147_483_647
      }
      let kept = 0
      yield* Effect.scoped(
        Effect.gen(function* () {
          const open: Array<Delivery> = []
          yield* consuming({ queue, prefetch: 400, onDelivery: (delivery) => open.push(delivery) })
          yield* eventually(
            Effect.sync(() => open.length),
            (count) => count === 400
          )
          while (open.length > 0) {
            const [delivery] = open.splice(Math.floor(random() * open.length), 1)
            const chance = random()
            if (chance < 0.1) kept += 1
            else delivery!.settle(chance < 0.2 ? "reject" : "ack")
            if (chance > 0.9) yield* Effect.sleep("1 millis")
          }
        })
      )
      yield* holding(queue, kept)
    }).pipe(Effect.scoped, Effect.provide(broker))
  )

  it.live("gives back what its scope leaves unsettled, and delivers nothing after a cancel", () =>
    Effect.gen(function* () {
      const queue = yield* filled(10)
      const { consume, publish } = yield* Broker
      yield* Effect.scoped(
        Effect.gen(function* () {
          const received: Array<Delivery> = []
          const { cancel } = yield* consume({ queue, prefetch: 100, onDelivery: (delivery) => received.push(delivery) })
          yield* eventually(
            Effect.sync(() => received.length),
            (count) => count === 10
          )
          yield* cancel
          yield* cancel
          yield* publish(to(queue, "late"))
          yield* holding(queue, 1)
          assert.strictEqual(received.length, 10)
          for (const delivery of received.slice(5)) assert.strictEqual(delivery.settle("ack"), "requested")
        })
      )
      yield* holding(queue, 6)
    }).pipe(Effect.scoped, Effect.provide(broker))
  )

  it.live("keeps consuming from a queue that was deleted under it: declares it again, in a new epoch", () =>
    Effect.gen(function* () {
      const queue = yield* filled(1)
      const told: Array<string> = []
      const received = yield* consuming({
        queue,
        prefetch: 10,
        onLost: (epoch, reason) => told.push(`lost ${epoch}: ${reason}`),
        onResumed: (epoch) => told.push(`resumed ${epoch}`)
      })
      yield* eventually(
        Effect.sync(() => received.length),
        (count) => count === 1
      )
      yield* Effect.flatMap(Broker, ({ remove }) => remove({ queues: [queue] })).pipe(
        Effect.provide(RunningBroker.layer())
      )
      yield* eventually(
        Effect.sync(() => told.length),
        (count) => count === 2
      )
      assert.deepStrictEqual(told, ["lost 1: The broker cancelled the consumer", "resumed 2"])
      assert.strictEqual(received[0]!.settle("ack"), "stale")
      yield* Effect.flatMap(Broker, ({ publish }) => publish(to(queue, "again")))
      yield* eventually(
        Effect.sync(() => received.map(textOf)),
        (texts) => texts.includes("again")
      )
      assert.strictEqual(received[1]!.epoch, 2)
    }).pipe(Effect.scoped, Effect.provide(broker))
  )

  it.live("hurts nobody by an exception in a callback, and loses no message by it", () =>
    Effect.gen(function* () {
      const queue = yield* filled(5)
      const other = yield* filled(5)
      const well = yield* consuming({ queue: other, prefetch: 10 })
      let thrown = 0
      const received: Array<Delivery> = []
      yield* consuming({
        queue,
        prefetch: 10,
        onDelivery: (delivery) => {
          if (textOf(delivery) === "2" && thrown++ === 0) throw new Error("a defect")
          received.push(delivery)
          delivery.settle("ack")
        }
      })
      yield* eventually(
        Effect.sync(() => received.map(textOf).toSorted()),
        (texts) => texts.length === 5
      )
      assert.strictEqual(received.at(-1)!.epoch, 1)
      assert.isTrue(received.at(-1)!.redelivered)
      assert.strictEqual(well.length, 5)
      assert.isTrue(well.every((delivery) => delivery.settle("ack") === "requested"))
    }).pipe(Effect.scoped, Effect.provide(broker))
  )

  it.live("refuses a prefetch and a stream offset that the broker would hang up on", () =>
    Effect.gen(function* () {
      const queue = yield* filled(0)
      const { consume, ping } = yield* Broker
      const refused = (options: Partial<ConsumeOptions>) =>
        Effect.map(
          Effect.flip(consume({ queue, prefetch: 1, onDelivery: () => {}, ...options })),
          ({ message, reason }) => `${reason}: ${message}`
        )
      for (const prefetch of [0, 65_536, 1.5]) assert.match(yield* refused({ prefetch }), /^refused: prefetch is /)
      for (const offset of ["bogus", "", "1x", -1, 1.5, true, null, new Date(-1)])
        assert.match(yield* refused({ arguments: { "x-stream-offset": offset } }), /^refused: x-stream-offset is /)
      yield* ping
    }).pipe(Effect.scoped, Effect.provide(broker))
  )

  it.live("says of a queue that is not there that it was not found", () =>
    Effect.gen(function* () {
      const { consume } = yield* Broker
      const error = yield* Effect.flip(
        consume({ queue: RunningBroker.name("none"), prefetch: 1, onDelivery: () => {} })
      )
      assert.deepInclude(error, { operation: "consume", reason: "not_found" })
      assert.match(error.message, /^NOT_FOUND - no queue/)
    }).pipe(Effect.scoped, Effect.provide(broker))
  )

  describe("streams", () => {
    it.live("acknowledges a stream's delivery whatever is said, also where nobody said that it is a stream", () =>
      Effect.gen(function* () {
        const queue = yield* RunningBroker.queue({
          arguments: { "x-queue-type": "stream", "x-max-length-bytes": 1_000_000, "x-max-age": "1h" }
        })
        yield* publishAll(queue, 30)
        const read = Effect.gen(function* () {
          let lost = 0
          const received = yield* consuming({
            queue,
            prefetch: 10,
            arguments: { "x-stream-offset": "first" },
            onLost: () => lost++
          })
          let settled = 0
          yield* eventually(
            Effect.sync(() => {
              for (; settled < received.length; settled++) received[settled]!.settle(settled % 2 ? "requeue" : "reject")
              return settled
            }),
            (count) => count === 30
          )
          assert.strictEqual(lost, 0)
        }).pipe(Effect.scoped)
        yield* read
        yield* Effect.provide(read, RunningBroker.layer())
      }).pipe(Effect.scoped, Effect.provide(broker))
    )

    it.live("gets nothing from a stream, and keeps the connection", () =>
      Effect.gen(function* () {
        const queue = yield* RunningBroker.queue({
          arguments: { "x-queue-type": "stream", "x-max-length-bytes": 1_000_000 }
        })
        yield* Effect.gen(function* () {
          const { channel } = yield* Broker
          const own = yield* channel({ prefetch: 1 })
          const error = yield* Effect.flip(own.get(queue))
          assert.deepInclude(error, { operation: "channel", reason: "refused" })
          assert.deepStrictEqual(yield* own.publish(to(queue, "x")), { _tag: "Confirmed" })
        }).pipe(Effect.scoped, Effect.provide(RunningBroker.layer()))
      }).pipe(Effect.scoped, Effect.provide(broker))
    )
  })

  describe("a channel of one's own", () => {
    it.live("gets, consumes and publishes, and ends for good with the reason", () =>
      Effect.gen(function* () {
        const { channel } = yield* Broker
        const queue = yield* filled(2)
        const own = yield* channel({ prefetch: 10 })
        const first = Option.getOrThrow(yield* own.get(queue))
        const received = yield* Deferred.make<Delivery>()
        const { cancel } = yield* own.consume({
          queue,
          onDelivery: (delivery) => Deferred.doneUnsafe(received, Effect.succeed(delivery))
        })
        const second = yield* Deferred.await(received)
        assert.deepStrictEqual([textOf(first), textOf(second)], ["0", "1"])
        assert.deepStrictEqual([first.deliveryTag, second.deliveryTag], [1, 2])
        yield* cancel
        assert.strictEqual(second.settle("ack"), "requested")
        assert.deepStrictEqual(yield* own.publish(to(queue, "2")), { _tag: "Confirmed" })
        assert.isTrue(Option.isSome(yield* own.get(queue)))
        assert.isTrue(Option.isNone(yield* own.get(queue)))
        assert.deepInclude(yield* Effect.flip(own.get(RunningBroker.name("none"))), { reason: "not_found" })
        assert.deepInclude(yield* Effect.flip(own.ended), { operation: "channel", reason: "not_found" })
        assert.strictEqual(first.settle("ack"), "stale")
        assert.deepInclude(yield* own.publish(to(queue, "3")), { _tag: "Refused", reason: "closed" })
      }).pipe(Effect.scoped, Effect.provide(broker))
    )
  })
})

const to = (queue: string, text: string): Publication => ({
  purpose: "tasks",
  exchange: "",
  routingKey: queue,
  content: new TextEncoder().encode(text),
  properties: {}
})

const textOf = ({ content }: Pick<Delivery, "content">) => new TextDecoder().decode(content)

const publishAll = Effect.fnUntraced(function* (queue: string, count: number) {
  const { publish } = yield* Broker
  const outcomes = yield* Effect.forEach(
    Array.from({ length: count }, (_, n) => n),
    (n) => publish(to(queue, String(n))),
    { concurrency: "unbounded" }
  )
  assert.isTrue(outcomes.every(({ _tag }) => _tag === "Confirmed"))
})

/** A queue with so many messages: `0`, `1`, … */
const filled = Effect.fnUntraced(function* (count: number) {
  const queue = yield* RunningBroker.queue()
  yield* publishAll(queue, count)
  return queue
})

/** A queue counts what comes back to it a moment after the channel has closed. */
const holding = (queue: string, messages: number) =>
  eventually(
    Effect.flatMap(Broker, ({ inspect }) => Effect.map(Effect.orDie(inspect(queue)), Option.getOrThrow)),
    (found) => found.messages === messages
  )

/** What has been delivered so far, by a consumer that lives as long as the scope. */
const consuming = Effect.fnUntraced(function* (options: Omit<ConsumeOptions, "onDelivery"> & Partial<ConsumeOptions>) {
  const { consume } = yield* Broker
  const received: Array<Delivery> = []
  yield* consume({ onDelivery: (delivery) => received.push(delivery), ...options })
  return received
})
