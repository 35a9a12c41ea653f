import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Option } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import * as DeliveryLoop from "../../../src/messaging/consume/DeliveryLoop.ts"
import type { DeliveryVerdict } from "../../../src/messaging/consume/DeliveryVerdict.ts"
import { Broker, type Delivery } from "../../../src/services/Broker.ts"
import { logged } from "../Logged.ts"

const queue = "work"

const declarations = { exchanges: [], queues: [{ name: queue }], bindings: [] }

const send = Effect.fnUntraced(function* (...contents: ReadonlyArray<string>) {
  const { publish } = yield* Broker
  for (const content of contents) {
    const outcome = yield* publish({
      purpose: "tasks",
      exchange: "",
      routingKey: queue,
      content: Buffer.from(content),
      properties: { headers: { task_id: content } }
    })
    assert.strictEqual(outcome._tag, "Confirmed")
  }
})

const ack: DeliveryVerdict = { settle: "ack" }

const textOf = ({ content, redelivered }: Delivery): string =>
  Buffer.from(content).toString() + (redelivered ? "*" : "")

/** A loop that runs beside the test. */
const running = Effect.fnUntraced(function* <R>(
  work: DeliveryLoop.Options<R>["work"],
  options: Partial<DeliveryLoop.Options<R>> = {}
) {
  const broker = yield* Broker
  yield* broker.declare(declarations)
  const loop = DeliveryLoop.make<R>(broker, {
    name: "loop",
    queue,
    concurrency: 1,
    prepare: broker.declare(declarations),
    work,
    ...options
  })
  const fiber = yield* Effect.forkScoped(loop.run)
  // what hangs on purpose must not hold up the end of the test, where no time passes
  yield* Effect.addFinalizer(() => Effect.andThen(Effect.forkChild(loop.stop), TestClock.adjust("1 minute")))
  return { ...loop, fiber }
})

const ready = Effect.flatMap(Broker, ({ inspect }) => Effect.map(inspect(queue), Option.getOrThrow))

/** Lets everything happen that waits for no time to pass. */
const settleDown = Effect.repeat(TestClock.adjust(0), { times: 5 })

const onMemory = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  test.pipe(Effect.scoped, Effect.provide(BrokerMemory.layerConnection()), Effect.provide(BrokerMemory.layerServer()))

describe("DeliveryLoop", () => {
  it.effect("works on as many deliveries at once as its concurrency says, and settles each by its verdict", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const gate = yield* Latch.make()
      yield* running(
        (delivery) => {
          seen.push(textOf(delivery))
          return Latch.await(gate).pipe(Effect.as(ack))
        },
        { concurrency: 2 }
      )
      yield* send("a", "b", "c")
      yield* settleDown
      assert.deepStrictEqual(seen, ["a", "b"])
      yield* Latch.open(gate)
      yield* settleDown
      assert.deepStrictEqual(seen, ["a", "b", "c"])
      assert.deepStrictEqual(yield* ready, { messages: 0, consumers: 1 })
    }).pipe(onMemory)
  )

  it.effect("tells what follows a settlement after it, and not when the settlement came too late", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const server = yield* BrokerMemory.BrokerServer
      const gate = yield* Latch.make()
      yield* running((delivery) => {
        const text = textOf(delivery)
        const verdict: DeliveryVerdict = { settle: "ack", settled: () => told.push(text) }
        return text === "a" ? Effect.as(Effect.uninterruptible(Latch.await(gate)), verdict) : Effect.succeed(verdict)
      })
      yield* send("a")
      yield* settleDown
      yield* server.drop()
      yield* Latch.open(gate)
      yield* settleDown
      assert.deepStrictEqual(told, ["a*"])
    }).pipe(onMemory)
  )

  it.effect("interrupts the work whose channel is lost, and does not wait for it before it goes on", () =>
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const log: Array<string> = []
      const gate = yield* Latch.make()
      yield* running(
        (delivery) => {
          const text = textOf(delivery)
          log.push(text)
          const stubborn = Effect.uninterruptible(Latch.await(gate))
          const gentle = Effect.onInterrupt(Effect.never, () => Effect.sync(() => log.push(`${text} interrupted`)))
          return delivery.redelivered ? Effect.succeed(ack) : text === "a" ? Effect.as(stubborn, ack) : gentle
        },
        { concurrency: 2 }
      )
      yield* send("a", "b")
      yield* settleDown
      yield* server.drop()
      yield* settleDown
      assert.deepStrictEqual(log, ["a", "b", "b interrupted", "a*", "b*"])
      assert.deepStrictEqual(yield* ready, { messages: 0, consumers: 1 })
      yield* Latch.open(gate)
    }).pipe(onMemory)
  )

  it.effect("does not heap up handlers that cannot be interrupted while its channel comes and goes", () =>
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const gate = yield* Latch.make()
      let begun = 0
      yield* running(() => {
        begun++
        return Effect.as(Effect.uninterruptible(Latch.await(gate)), ack)
      })
      yield* send("a")
      yield* settleDown
      for (let round = 0; round < 8; round++) {
        yield* server.drop()
        yield* TestClock.adjust("1 second")
        yield* settleDown
      }
      assert.strictEqual(begun, 4)
      yield* Latch.open(gate)
      yield* settleDown
      assert.strictEqual(begun, 5)
      assert.deepStrictEqual(yield* ready, { messages: 0, consumers: 1 })
    }).pipe(onMemory)
  )

  it.effect("gives a delivery back after a pause when its work fails or dies, and harms no other", () =>
    Effect.gen(function* () {
      const errors: Array<readonly [string, number]> = []
      const seen: Array<string> = []
      yield* running(
        (delivery) => {
          const text = textOf(delivery)
          seen.push(text)
          if (text === "fails") return Effect.fail(new RangeError("no"))
          if (text === "dies") return Effect.die(new TypeError("never"))
          if (text === "throws") throw new SyntaxError("at once")
          return Effect.succeed(ack)
        },
        { concurrency: 4, onError: ({ exceptionType }, seconds) => errors.push([exceptionType, seconds]) }
      )
      yield* send("fails", "dies", "throws", "good")
      yield* settleDown
      assert.deepStrictEqual(seen, ["fails", "dies", "throws", "good"])
      assert.deepStrictEqual(errors, [
        ["RangeError", 2],
        ["TypeError", 2],
        ["SyntaxError", 2]
      ])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(seen.slice(4).sort(), ["dies*", "fails*", "throws*"])
      assert.deepStrictEqual(yield* ready, { messages: 0, consumers: 1 })
    }).pipe(onMemory)
  )

  it.effect("is not harmed by work that settles its delivery itself, as often as it likes", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      yield* running((delivery) => {
        const text = textOf(delivery)
        if (text === "a")
          assert.deepStrictEqual([delivery.settle("ack"), delivery.settle("reject")], ["requested", "settled"])
        return Effect.succeed({ settle: "requeue", settled: () => told.push(text) })
      })
      yield* send("a")
      yield* settleDown
      assert.deepStrictEqual(told, [])
      assert.deepStrictEqual(yield* ready, { messages: 0, consumers: 1 })
    }).pipe(onMemory)
  )

  it.effect("leaves the other places alone when one work hangs", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      yield* running(
        (delivery) => {
          seen.push(textOf(delivery))
          return textOf(delivery) === "hangs" ? Effect.never : Effect.succeed(ack)
        },
        { concurrency: 2 }
      )
      yield* send("hangs", ..."abcdef")
      yield* settleDown
      assert.deepStrictEqual(seen, ["hangs", ..."abcdef"])
    }).pipe(onMemory)
  )

  it.effect("lets work in progress end when it stops, and takes nothing more", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const { fiber, stop } = yield* running((delivery) => {
        seen.push(textOf(delivery))
        return Effect.as(Effect.sleep("3 seconds"), ack)
      })
      yield* send("a", "b")
      yield* settleDown
      const stopping = yield* Effect.forkChild(stop)
      yield* TestClock.adjust("2 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(stopping)
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(fiber)))
      assert.deepStrictEqual(seen, ["a"])
      assert.deepStrictEqual(yield* ready, { messages: 1, consumers: 0 })
    }).pipe(onMemory)
  )

  it.effect("interrupts what does not end before the deadline of stopping, which returns to its queue", () =>
    Effect.gen(function* () {
      const interrupted: Array<string> = []
      const { stop } = yield* running(
        (delivery) => Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted.push(textOf(delivery)))),
        { concurrency: 2, stopWithin: "4 seconds" }
      )
      yield* send("a", "b", "c")
      yield* settleDown
      const stopping = yield* Effect.forkChild(stop)
      yield* TestClock.adjust("4 seconds")
      yield* Fiber.join(stopping)
      assert.deepStrictEqual(interrupted, ["a", "b"])
      assert.deepStrictEqual(yield* ready, { messages: 3, consumers: 0 })
    }).pipe(onMemory)
  )

  it.effect("stops within its deadline although the broker does not answer the cancel", () =>
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const seen: Array<string> = []
      const { stop } = yield* running(
        (delivery) => {
          seen.push(textOf(delivery))
          return Effect.never
        },
        { concurrency: 2, stopWithin: "1 second" }
      )
      yield* send("a")
      yield* settleDown
      yield* server.freeze
      const stopping = yield* Effect.forkChild(stop)
      yield* TestClock.adjust("1 second")
      assert.isDefined(stopping.pollUnsafe())
      yield* server.thaw
      yield* settleDown
      assert.deepStrictEqual(yield* ready, { messages: 1, consumers: 0 })
      assert.deepStrictEqual(seen, ["a"])
    }).pipe(onMemory)
  )

  it.effect("stops although work cannot be interrupted, and says whose it is", () =>
    Effect.gen(function* () {
      const { lines, layer } = logged()
      yield* Effect.gen(function* () {
        const { stop } = yield* running(() => Effect.uninterruptible(Effect.never), { stopWithin: "1 second" })
        yield* send("a")
        yield* settleDown
        const stopping = yield* Effect.forkChild(stop)
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.join(stopping)
        assert.deepStrictEqual(yield* ready, { messages: 1, consumers: 0 })
      }).pipe(Effect.provide(layer))
      assert.include(
        lines().join("\n"),
        "loop has stopped, but some handlers cannot be interrupted and are still running. The broker will deliver their messages again a"
      )
    }).pipe(onMemory)
  )

  it.effect("is stopped by its own interruption as by stop, can run again, and runs once at a time", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const { fiber, run, stop } = yield* running((delivery) => {
        seen.push(textOf(delivery))
        return Effect.as(Effect.sleep("1 second"), ack)
      })
      yield* send("a", "b")
      yield* settleDown
      assert.isTrue(Exit.isFailure(yield* Effect.exit(run)))
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(interrupting)
      assert.deepStrictEqual(seen, ["a"])
      const second = yield* Effect.forkScoped(run)
      yield* settleDown
      yield* TestClock.adjust("1 second")
      yield* stop
      assert.deepStrictEqual(seen, ["a", "b"])
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(second)))
      yield* stop
    }).pipe(onMemory)
  )

  it.effect("stops at once while it waits for a message, whatever the consume timeout", () =>
    Effect.gen(function* () {
      for (const consumeTimeoutSeconds of [null, 60]) {
        const { stop } = yield* running(() => Effect.succeed(ack), { consumeTimeoutSeconds })
        yield* settleDown
        yield* stop
        assert.deepStrictEqual(yield* ready, { messages: 0, consumers: 0 })
      }
    }).pipe(onMemory)
  )

  it.effect("stops at once in the pause after an error", () =>
    Effect.gen(function* () {
      const { fiber, stop } = yield* running(() => Effect.succeed(ack), { prepare: Effect.fail("not yet") })
      yield* settleDown
      yield* stop
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(fiber)))
    }).pipe(onMemory)
  )

  it.effect("reports what keeps it from consuming, tries again after the pause, and stops meanwhile", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const errors: Array<readonly [string, number]> = []
      let started = 0
      let prepared = 0
      const loop = DeliveryLoop.make(broker, {
        name: "loop",
        queue,
        concurrency: 1,
        idleRetrySeconds: 5,
        prepare: Effect.suspend(() => (++prepared < 3 ? Effect.void : broker.declare(declarations))),
        work: () => Effect.succeed(ack),
        onStarted: () => started++,
        onError: ({ exceptionType }, seconds) => errors.push([exceptionType, seconds])
      })
      const fiber = yield* Effect.forkScoped(loop.run)
      yield* settleDown
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(errors, [
        ["BrokerError", 5],
        ["BrokerError", 5]
      ])
      assert.strictEqual(started, 0)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(started, 1)
      assert.deepStrictEqual(yield* ready, { messages: 0, consumers: 1 })
      yield* loop.stop
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(fiber)))
    }).pipe(onMemory)
  )

  it.effect("declares and subscribes anew when the queue was silent and is found without a consumer", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const broker = yield* Broker
      let subscriptions = 0
      // a broker that forgets its first consumer, as clusters were seen to do
      const forgetful: Broker["Service"] = {
        ...broker,
        consume: (options) =>
          ++subscriptions === 1
            ? Effect.succeed({ queue: options.queue, cancel: Effect.void })
            : broker.consume(options)
      }
      yield* broker.declare(declarations)
      const loop = DeliveryLoop.make(forgetful, {
        name: "loop",
        queue,
        concurrency: 1,
        consumeTimeoutSeconds: 3,
        prepare: broker.declare(declarations),
        work: (delivery) => {
          seen.push(textOf(delivery))
          return Effect.succeed(ack)
        }
      })
      yield* Effect.forkScoped(loop.run)
      yield* send("a")
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(subscriptions, 1)
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(subscriptions, 2)
      assert.deepStrictEqual(seen, ["a"])
    }).pipe(onMemory)
  )

  it.effect("asks for its arguments for every channel, and works on nothing that comes by another", () =>
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const worked: Array<string> = []
      let asked = 0
      yield* running(
        (delivery) => {
          worked.push(`${textOf(delivery)} of ${delivery.epoch}`)
          return Effect.succeed(ack)
        },
        {
          arguments: Effect.delay(
            Effect.sync(() => ({ "x-priority": ++asked })),
            "1 second"
          )
        }
      )
      yield* TestClock.adjust("1 second")
      yield* send("a")
      yield* settleDown
      yield* server.drop()
      yield* settleDown
      yield* send("b")
      yield* settleDown
      assert.deepStrictEqual([asked, worked], [1, ["a of 1"]])
      yield* TestClock.adjust("1 second")
      yield* settleDown
      assert.deepStrictEqual([asked, worked], [2, ["a of 1", "b of 1"]])
    }).pipe(onMemory)
  )

  it.effect("names the messages when all places are taken and nothing was settled for long", () =>
    Effect.gen(function* () {
      const { lines, layer } = logged()
      yield* Effect.gen(function* () {
        yield* running(() => Effect.never, { concurrency: 2, stalledAfter: "1 minute" })
        yield* settleDown
        yield* send("one", "two", "three")
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(lines(), [])
        yield* TestClock.adjust("1 minute")
      }).pipe(Effect.provide(layer))
      assert.strictEqual(
        lines()[0],
        "loop receives no more messages, because it is processing 2 (its concurrency) and none has ended for 1m one, two"
      )
    }).pipe(onMemory)
  )
})
