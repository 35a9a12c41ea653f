import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Option, Queue, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import { Broker, type Connection, type Delivery, type Fields, type Properties } from "../../src/services/Broker.ts"

const text = (delivery: Delivery) => Buffer.from(delivery.content).toString() + (delivery.redelivered ? "*" : "")

const declare = (
  broker: Broker["Service"],
  name: string,
  fields: Fields = {},
  more: { readonly durable?: boolean } = {}
) => broker.declare({ exchanges: [], queues: [{ name, arguments: fields, ...more }], bindings: [] })

const send = (broker: Broker["Service"], queue: string, content: string, properties: Properties = {}) =>
  broker.publish({ purpose: "tasks", exchange: "", routingKey: queue, content: Buffer.from(content), properties })

const messages = (broker: Broker["Service"], queue: string) =>
  Effect.map(broker.inspect(queue), (found) => Option.getOrUndefined(found)?.messages)

/** A consumer whose deliveries wait to be taken. */
const reader = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  queue: string,
  prefetch = 10,
  fields: Fields = {}
) {
  const deliveries = yield* Queue.unbounded<Delivery>()
  yield* broker.consume({
    queue,
    prefetch,
    arguments: fields,
    onDelivery: (delivery) => {
      Queue.offerUnsafe(deliveries, delivery)
    }
  })
  return deliveries
})

const retryQueue = (source: string, delay: number): Fields => ({
  "x-message-ttl": delay,
  "x-dead-letter-exchange": "",
  "x-dead-letter-routing-key": source
})

describe("BrokerMemory on the test clock", () => {
  it.effect("refuses a body above the 128 MiB of a server's max_message_size, in its words", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      yield* declare(broker, "q")
      const content = Buffer.allocUnsafe(134_217_729)
      const sent = { purpose: "tasks", exchange: "", routingKey: "q", content, properties: {} } as const
      assert.deepInclude(yield* broker.publish(sent), {
        _tag: "Refused",
        reason: "invalid",
        detail: "PRECONDITION_FAILED - message size 134217729 is larger than configured max size 134217728"
      })
      assert.deepStrictEqual(yield* send(broker, "q", "x"), { _tag: "Confirmed" })
    }).pipe(Effect.provide(BrokerMemory.layer()))
  )

  it.effect("passes every round of a retry queue of thirty seconds at once, each at its time", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      yield* declare(broker, "tasks")
      yield* declare(broker, "tasks.retry", retryQueue("tasks", 30_000))
      const deliveries = yield* reader(broker, "tasks")
      const handled: Array<number> = []
      yield* Effect.forkScoped(
        Effect.forever(
          Effect.gen(function* () {
            const { content, settle } = yield* Queue.take(deliveries)
            handled.push(yield* Effect.clockWith((clock) => clock.currentTimeMillis))
            if (handled.length <= 3) {
              yield* broker.publish({
                purpose: "retries",
                exchange: "",
                routingKey: "tasks.retry",
                content,
                properties: {}
              })
            }
            settle("ack")
          })
        )
      )
      yield* send(broker, "tasks", "work")
      yield* TestClock.adjust("29999 millis")
      assert.deepStrictEqual(handled, [0])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(handled, [0, 30_000])
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(handled, [0, 30_000, 60_000, 90_000])
      assert.strictEqual(yield* messages(broker, "tasks"), 0)
    }).pipe(Effect.provide(BrokerMemory.layer()))
  )

  it.effect("dates deaths by its own clock, and lets an unused queue go to the millisecond", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      yield* TestClock.setTime(1_763_640_000_500)
      yield* declare(broker, "dead")
      yield* declare(broker, "brief", { ...retryQueue("dead", 1_000), "x-expires": 86_400_000 })
      yield* send(broker, "brief", "x")
      yield* TestClock.adjust("1 seconds")
      const { get } = yield* broker.channel({ prefetch: 1 })
      const delivery = Option.getOrThrow(yield* get("dead"))
      const [death] = Object.values(delivery.properties.headers?.["x-death"] ?? {})
      assert.deepInclude(death, { time: new Date(1_763_640_001_000), reason: "expired", queue: "brief" })
      yield* TestClock.adjust(86_398_999)
      const queues = Effect.forEach(["brief", "dead"], (name) => Effect.map(broker.inspect(name), Option.isSome))
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* queues, [false, true])
    }).pipe(Effect.provide(BrokerMemory.layer()))
  )

  it.effect("keeps what nobody takes where it dead-letters at least once, and tries again after three minutes", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const safe = {
        ...retryQueue("tasks", 1_000),
        "x-queue-type": "quorum",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish"
      }
      // the strategy alone is taken, and means nothing
      const { "x-overflow": _, ...unsafe } = safe
      yield* declare(broker, "safe", safe)
      yield* declare(broker, "unsafe", unsafe)
      for (const content of ["1", "2"]) yield* send(broker, "safe", content)
      yield* send(broker, "unsafe", "gone")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([yield* messages(broker, "safe"), yield* messages(broker, "unsafe")], [0, 0])
      const full = { "x-max-length": 1, "x-overflow": "reject-publish" }
      yield* declare(broker, "tasks", full)
      yield* TestClock.adjust("179999 millis")
      assert.strictEqual(yield* messages(broker, "tasks"), 0)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* messages(broker, "tasks"), 1)
      const { get } = yield* broker.channel({ prefetch: 1 })
      const taken = Effect.map(get("tasks"), (found) => {
        const delivery = Option.getOrThrow(found)
        delivery.settle("ack")
        return text(delivery)
      })
      const first = yield* taken
      yield* TestClock.adjust("3 minutes")
      assert.deepStrictEqual([first, yield* taken], ["1", "2"])
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* messages(broker, "tasks"), 0)
    }).pipe(Effect.scoped, Effect.provide(BrokerMemory.layer()))
  )

  it.effect("hands deliveries over in a turn of their own, never within the call that causes them", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      yield* declare(broker, "turns")
      let within = false
      const seen: Array<boolean> = []
      yield* broker.consume({
        queue: "turns",
        prefetch: 1,
        onDelivery: ({ redelivered, settle }) => {
          seen.push(within)
          within = true
          // The next delivery is caused here, and must not come here.
          settle(redelivered ? "ack" : "requeue")
          within = false
        }
      })
      yield* send(broker, "turns", "a")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(seen, [false, false])
    }).pipe(Effect.provide(BrokerMemory.layer()))
  )

  it.effect("gives up on a publish that nobody answers, and refuses what could not be sent", () =>
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const broker = yield* server.connect({ window: 1, publishWithin: "5 seconds", answerWithin: "2 seconds" })
      yield* declare(broker, "frozen")
      yield* server.freeze
      const sent = yield* Effect.forkChild(send(broker, "frozen", "sent"), { startImmediately: true })
      const turnless = yield* Effect.forkChild(send(broker, "frozen", "turnless"), { startImmediately: true })
      const asked = yield* Effect.forkChild(Effect.flip(broker.ping), { startImmediately: true })
      yield* TestClock.adjust("5 seconds")
      assert.deepInclude(yield* Fiber.join(sent), { _tag: "Unknown", reason: "deadline" })
      assert.deepInclude(yield* Fiber.join(turnless), { _tag: "Refused", reason: "unreachable" })
      assert.strictEqual((yield* Fiber.join(asked)).reason, "timeout")
      yield* server.thaw
      assert.strictEqual(yield* messages(broker, "frozen"), 1)
      assert.deepStrictEqual(yield* send(broker, "frozen", "again"), { _tag: "Confirmed" })
    }).pipe(Effect.provide(BrokerMemory.layerServer()))
  )

  it.effect("gives each publish its deadline, however many before it were never answered", () =>
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const broker = yield* server.connect({ publishWithin: "1 second" })
      yield* declare(broker, "silent")
      const late = Effect.gen(function* () {
        const sent = yield* Effect.forkChild(send(broker, "silent", "x"), { startImmediately: true })
        yield* TestClock.adjust("1 second")
        return sent.pollUnsafe()?.pipe(Exit.getSuccess, Option.getOrUndefined)
      })
      yield* server.freeze
      for (let n = 0; n < 3; n++) assert.deepInclude(yield* late, { _tag: "Unknown", reason: "deadline" })
      yield* server.thaw
      yield* server.block("low on disk")
      assert.deepInclude(yield* late, { _tag: "Unknown", reason: "deadline" })
      for (let n = 0; n < 2; n++) assert.deepInclude(yield* late, { _tag: "Refused", reason: "blocked" })
    }).pipe(Effect.provide(BrokerMemory.layerServer()))
  )
})

describe("BrokerMemory under control", () => {
  it.effect("loses the connection of one name, and gives what it held to another", () =>
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const [first, second] = yield* Effect.all([server.connect({ name: "first" }), server.connect({ name: "second" })])
      yield* declare(first, "shared")
      yield* send(first, "shared", "a")
      const mine = yield* reader(first, "shared")
      const held = yield* Queue.take(mine)
      const theirs = yield* reader(second, "shared")
      yield* server.drop("first")
      const again = yield* Queue.take(theirs)
      assert.deepStrictEqual(
        [text(again), again.epoch, held.settle("ack"), again.settle("ack")],
        ["a*", 1, "stale", "requested"]
      )
      yield* send(second, "shared", "b")
      yield* send(second, "shared", "c")
      const next = yield* Effect.all([Queue.take(theirs), Queue.take(mine)])
      assert.deepStrictEqual(next.map(text), ["b", "c"])
      assert.deepStrictEqual(
        next.map(({ epoch }) => epoch),
        [1, 2]
      )
    }).pipe(Effect.provide(BrokerMemory.layerServer()))
  )

  it.effect("cancels a consumer at once while it is cut off, and does not bring it back", () =>
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const broker = yield* server.connect()
      yield* declare(broker, "left")
      const { cancel } = yield* broker.consume({ queue: "left", prefetch: 1, onDelivery: () => {} })
      yield* server.cut()
      yield* TestClock.adjust("1 second")
      const cancelling = yield* Effect.forkChild(cancel)
      yield* TestClock.adjust(0)
      assert.isDefined(cancelling.pollUnsafe())
      yield* server.restore
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* broker.inspect("left"), Option.some({ messages: 0, consumers: 0 }))
    }).pipe(Effect.scoped, Effect.provide(BrokerMemory.layerServer()))
  )

  it.effect("accepts nobody while it is cut off, and says so", () =>
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const broker = yield* server.connect({ name: "cut", publishWithin: "1 seconds" })
      const states: Array<Connection> = []
      yield* Effect.forkScoped(Stream.runForEach(broker.connection, (state) => Effect.sync(() => states.push(state))))
      yield* declare(broker, "kept")
      yield* server.cut("cut")
      assert.strictEqual((yield* Effect.flip(server.connect({ name: "cut" }))).reason, "unreachable")
      yield* server.connect({ name: "other" })
      const refused = yield* Effect.forkChild(send(broker, "kept", "a"), { startImmediately: true })
      yield* TestClock.adjust("1 seconds")
      assert.deepInclude(yield* Fiber.join(refused), { _tag: "Refused", reason: "unreachable" })
      yield* server.restore
      yield* TestClock.adjust("1 seconds")
      assert.deepStrictEqual(yield* send(broker, "kept", "b"), { _tag: "Confirmed" })
      assert.deepStrictEqual(
        states.map(({ _tag }) => _tag).filter((tag, index, all) => tag !== all[index - 1]),
        ["Connected", "Connecting", "Connected"]
      )
    }).pipe(Effect.provide(BrokerMemory.layerServer()))
  )

  it.effect("blocks: the publish that meets it waits for the end of it, those behind it are not sent", () =>
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const broker = yield* server.connect({ publishWithin: "1 seconds" })
      yield* declare(broker, "blocked")
      yield* server.block("low on disk")
      const [state] = yield* Stream.runCollect(Stream.take(broker.connection, 1))
      assert.deepStrictEqual(state, { _tag: "Connected" })
      const first = yield* Effect.forkChild(send(broker, "blocked", "meets it"), { startImmediately: true })
      const states = yield* Effect.forkChild(
        Stream.runCollect(Stream.takeUntil(broker.connection, ({ _tag }) => _tag === "Blocked"))
      )
      const seen = yield* Fiber.join(states)
      assert.deepStrictEqual(seen.at(-1), { _tag: "Blocked", reason: "low on disk" })
      const second = yield* Effect.forkChild(send(broker, "blocked", "behind it"), { startImmediately: true })
      yield* TestClock.adjust("1 seconds")
      assert.deepInclude(yield* Fiber.join(first), { _tag: "Unknown", reason: "deadline" })
      assert.deepStrictEqual(yield* Fiber.join(second), { _tag: "Refused", reason: "blocked", detail: "low on disk" })
      assert.strictEqual(yield* messages(broker, "blocked"), 0)
      yield* server.unblock
      assert.strictEqual(yield* messages(broker, "blocked"), 1)
      assert.deepStrictEqual(yield* send(broker, "blocked", "after"), { _tag: "Confirmed" })
    }).pipe(Effect.provide(BrokerMemory.layerServer()))
  )

  it.effect("blocks by itself when it holds more than it may, until there is room", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      yield* declare(broker, "full")
      for (let n = 0; n < 3; n++) {
        assert.deepStrictEqual(yield* send(broker, "full", "x".repeat(100)), { _tag: "Confirmed" })
      }
      const waiting = yield* Effect.forkChild(send(broker, "full", "y"), { startImmediately: true })
      yield* Effect.yieldNow
      assert.isUndefined(waiting.pollUnsafe())
      const deliveries = yield* reader(broker, "full")
      const first = yield* Queue.take(deliveries)
      first.settle("ack")
      assert.deepStrictEqual(yield* Fiber.join(waiting), { _tag: "Confirmed" })
    }).pipe(Effect.provide(BrokerMemory.layer({ memoryLimit: 3 * 612 - 1 })))
  )

  it.effect("keeps over a restart what is durable and persistent", () =>
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const [broker, other] = yield* Effect.all([server.connect(), server.connect()])
      yield* declare(broker, "durable")
      yield* declare(broker, "quorum", { "x-queue-type": "quorum" })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const passing = yield* server.connect()
          yield* declare(passing, "transient", {}, { durable: false })
          for (const queue of ["durable", "quorum", "transient"]) {
            yield* send(passing, queue, "light", { persistent: false })
            yield* send(passing, queue, "heavy")
          }
        })
      )
      const deliveries = yield* reader(other, "durable")
      yield* Queue.takeN(deliveries, 2)
      yield* server.restart
      assert.strictEqual(text(yield* Queue.take(deliveries)), "heavy*")
      assert.deepStrictEqual(
        yield* Effect.forEach(["durable", "quorum", "transient"], (name) => messages(broker, name)),
        [0, 2, undefined]
      )
    }).pipe(Effect.provide(BrokerMemory.layerServer()))
  )

  it.effect("keeps an exclusive queue for the connection that declared it, and lets it go with it", () =>
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const other = yield* server.connect()
      const scope = yield* Scope.make()
      const owner = yield* Scope.provide(server.connect(), scope)
      yield* owner.declare({ exchanges: [], queues: [{ name: "own", exclusive: true }], bindings: [] })
      const { message, reason } = yield* Effect.flip(other.inspect("own"))
      assert.strictEqual(reason, "locked")
      assert.match(message, /^RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'own'/)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* other.inspect("own"), Option.none())
      assert.strictEqual((yield* Effect.flip(owner.ping)).reason, "closed")
      assert.deepInclude(yield* send(owner, "own", "x"), { _tag: "Refused", reason: "closed" })
    }).pipe(Effect.provide(BrokerMemory.layerServer()))
  )

  it.effect("drops old segments of a stream, and reads on from the first that is left", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const fields = {
        "x-queue-type": "stream",
        "x-stream-max-segment-size-bytes": 2,
        "x-max-length-bytes": 4,
        "x-max-age": "1h"
      }
      yield* declare(broker, "log", fields)
      for (const content of ["0", "1", "2", "3", "4", "5", "6"]) yield* send(broker, "log", content)
      const deliveries = yield* reader(broker, "log", 10, { "x-stream-offset": "first" })
      assert.deepStrictEqual((yield* Queue.takeN(deliveries, 5)).map(text), ["2", "3", "4", "5", "6"])
      yield* TestClock.adjust("2 hours")
      yield* send(broker, "log", "7")
      yield* send(broker, "log", "8")
      const recent = yield* reader(broker, "log", 10, { "x-stream-offset": "1h" })
      assert.deepStrictEqual((yield* Queue.takeN(recent, 2)).map(text), ["7", "8"])
    }).pipe(Effect.provide(BrokerMemory.layer()))
  )
})
