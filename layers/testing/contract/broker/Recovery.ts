import assert from "node:assert/strict"
import { Deferred, Effect, Exit, Fiber, Result, Stream } from "effect"
import { Broker, type Connection } from "../../../../src/services/Broker.ts"
import { eventually } from "../law/Eventually.ts"
import { type BrokerLaw, brokerLaw } from "./BrokerLaw.ts"
import { faults } from "./ConnectionFaults.ts"
import {
  confirmed,
  declared,
  drained,
  kinds,
  ofKind,
  only,
  reader,
  ready,
  send,
  sendAll,
  settleAll,
  texts
} from "./Messages.ts"

/** Laws of lost connections and deleted queues. */
export const laws: ReadonlyArray<BrokerLaw> = [
  ...kinds.flatMap((kind) => [
    brokerLaw(
      `calls onLost when the queue of a consumer is deleted, and resumes when it exists again: ${kind}`,
      Effect.gen(function* () {
        const broker = yield* Broker
        const queue = yield* declared(`deleted-${kind}`, ofKind(kind))
        const lost = yield* Deferred.make<number>()
        const resumed = yield* Deferred.make<number>()
        const { take } = yield* reader(queue, 5, {
          onLost: (epoch) => Deferred.doneUnsafe(lost, Exit.succeed(epoch)),
          onResumed: (epoch) => Deferred.doneUnsafe(resumed, Exit.succeed(epoch))
        })
        confirmed(yield* send(queue, "before"))
        const before = yield* take
        yield* broker.remove({ queues: [queue] })
        assert.strictEqual(yield* Deferred.await(lost), 1)
        assert.strictEqual(before.settle("ack"), "stale")
        yield* broker.declare(only({ name: queue, arguments: ofKind(kind) }))
        assert.ok((yield* Deferred.await(resumed)) > 1)
        confirmed(yield* send(queue, "after"))
        const after = yield* take
        assert.deepStrictEqual([...texts([after]), after.deliveryTag], ["after", 1])
        assert.ok(after.epoch > 1)
      })
    ),

    brokerLaw(
      `redelivers unsettled messages with a new epoch after a lost connection: ${kind}`,
      Effect.gen(function* () {
        const { cutHere, restore } = yield* faults
        const queue = yield* declared(`cut-${kind}`, ofKind(kind))
        const lost: Array<number> = []
        const resumed = yield* Deferred.make<number>()
        const { take, takeN } = yield* reader(queue, 10, {
          onLost: (epoch) => lost.push(epoch),
          onResumed: (epoch) => Deferred.doneUnsafe(resumed, Exit.succeed(epoch))
        })
        yield* sendAll(queue, ["1", "2", "3"])
        const [first, second, third] = yield* takeN(3)
        assert.ok(first !== undefined && second !== undefined && third !== undefined)
        if (first === undefined || second === undefined || third === undefined) return
        yield* settleAll([second])
        yield* ready(queue, 0)
        // The driver sends acknowledgements in batches. The response to a later ping shows that the server has read them.
        yield* Effect.sleep(30)
        yield* Effect.flatMap(Broker, ({ ping }) => ping)
        yield* cutHere
        yield* eventually(
          Effect.sync(() => lost),
          (epochs) => epochs.length > 0
        )
        assert.strictEqual(third.settle("ack"), "stale")
        yield* restore
        assert.strictEqual(yield* Deferred.await(resumed), 2)
        assert.deepStrictEqual(lost, [1])
        const again = yield* takeN(2)
        assert.deepStrictEqual(texts(again), ["1*", "3*"])
        assert.deepStrictEqual(
          again.map(({ epoch }) => epoch),
          [2, 2]
        )
        assert.strictEqual(first.settle("ack"), "stale")
        confirmed(yield* send(queue, "4"))
        assert.deepStrictEqual(texts([yield* take]), ["4"])
        yield* settleAll(again)
      })
    )
  ]),

  brokerLaw(
    "reports the connection, holds publishes back while it is lost, and declares again",
    Effect.gen(function* () {
      const broker = yield* Broker
      const { cutHere, restore } = yield* faults
      const queue = yield* declared("transient", {}, { exclusive: true, durable: false })
      const states: Array<Connection["_tag"]> = []
      yield* broker.connection.pipe(
        Stream.runForEach(({ _tag }) => Effect.sync(() => states.push(_tag))),
        Effect.forkScoped
      )
      yield* eventually(
        Effect.sync(() => states.at(-1)),
        (state) => state === "Connected"
      )
      const channel = yield* broker.channel({ prefetch: 1 })
      yield* cutHere
      yield* eventually(
        Effect.sync(() => states.at(-1)),
        (state) => state === "Connecting"
      )
      assert.strictEqual((yield* Effect.flip(channel.ended)).reason, "lost")
      const waiting = yield* Effect.forkChild(send(queue, "kept"), { startImmediately: true })
      const asking = yield* Effect.forkChild(Effect.result(broker.inspect(queue)), { startImmediately: true })
      yield* restore
      yield* eventually(
        Effect.sync(() => states.at(-1)),
        (state) => state === "Connected"
      )
      confirmed(yield* Fiber.join(waiting))
      assert.ok(Result.isSuccess(yield* Fiber.join(asking)))
      assert.deepStrictEqual(texts(yield* drained(queue)), ["kept"])
      assert.strictEqual(states[0], "Connected")
    })
  )
]
