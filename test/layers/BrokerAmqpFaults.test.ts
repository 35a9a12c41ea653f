import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Layer, Option, Redacted, Stream } from "effect"
import { pauseBefore } from "../../layers/amqp/Recovery.ts"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import {
  Broker,
  type Connection,
  type ConsumeOptions,
  type Delivery,
  type Outcome,
  type Publication
} from "../../src/services/Broker.ts"
import { eventually } from "../Eventually.ts"
import * as RunningBroker from "../RunningBroker.ts"
import * as TcpProxy from "../TcpProxy.ts"
import * as ScriptedServer from "../upstream/ScriptedServer.ts"

describe.skipIf(RunningBroker.server === null)("BrokerAmqp: faults", () => {
  it.live("closes in time when the peer is silent, twenty consumers or none, and says so of what was under way", () =>
    Effect.gen(function* () {
      const proxy = yield* TcpProxy.make(RunningBroker.target())
      const outcome = yield* Deferred.make<Outcome>()
      const [elapsed] = yield* Effect.gen(function* () {
        const { publish } = yield* Broker
        const queue = yield* RunningBroker.queue()
        for (let n = 0; n < 20; n++) yield* consuming({ queue, prefetch: 10 })
        assert.deepStrictEqual(yield* publish(to(queue)), confirmed)
        yield* proxy.freeze
        yield* Effect.forkDetach(
          Effect.flatMap(publish(to(queue)), (known) => Deferred.succeed(outcome, known)),
          {
            startImmediately: true
          }
        )
      }).pipe(Effect.scoped, Effect.provide(through(proxy)), Effect.timed)
      assert.isBelow(Duration.toMillis(elapsed), 8_000)
      assert.deepInclude(yield* Deferred.await(outcome), { _tag: "Unknown", reason: "lost" })
    }).pipe(Effect.scoped)
  )

  it.live("notices a frozen peer by its heartbeat, and is back when it thaws", () =>
    Effect.gen(function* () {
      const proxy = yield* TcpProxy.make(RunningBroker.target())
      yield* Effect.gen(function* () {
        const { connection, ping, publish } = yield* Broker
        const queue = yield* RunningBroker.queue()
        yield* publish(to(queue))
        yield* proxy.freeze
        const [elapsed, outcome] = yield* Effect.timed(publish(to(queue)))
        assert.deepInclude(outcome, { _tag: "Unknown", reason: "lost" })
        assert.isBelow(Duration.toMillis(elapsed), 8_000)
        const now = yield* eventually(
          Effect.map(Stream.runHead(connection), Option.getOrThrow),
          ({ _tag }) => _tag === "Connecting"
        )
        assert.match(now._tag === "Connecting" ? now.failure : "", /Heartbeat timeout/)
        yield* proxy.thaw
        yield* eventually(Effect.isSuccess(ping), (answered) => answered)
        assert.deepStrictEqual(yield* publish(to(queue)), confirmed)
      }).pipe(Effect.scoped, Effect.provide(through(proxy, { heartbeatSeconds: 1 })))
    }).pipe(Effect.scoped)
  )

  it.live("gives a publish to a frozen peer its deadline, sent or not", () =>
    Effect.gen(function* () {
      const proxy = yield* TcpProxy.make(RunningBroker.target())
      yield* Effect.gen(function* () {
        const { publish } = yield* Broker
        const queue = yield* RunningBroker.queue()
        yield* eventually(publish(to(queue)), ({ _tag }) => _tag === "Confirmed")
        yield* proxy.freeze
        const [elapsed, [sent, waiting]] = yield* Effect.timed(
          Effect.all([publish(to(queue)), publish(to(queue))], { concurrency: 2 })
        )
        assert.deepInclude(sent, { _tag: "Unknown", reason: "deadline" })
        assert.deepInclude(waiting, { _tag: "Refused", reason: "unreachable" })
        assert.isBelow(Duration.toMillis(elapsed), 5_000)
      }).pipe(Effect.scoped, Effect.provide(through(proxy, { publishWithin: "1 second", windows: { tasks: 1 } })))
    }).pipe(Effect.scoped)
  )

  it.live("recovers from an error of a channel as from one of the connection", () =>
    Effect.gen(function* () {
      const { publish } = yield* Broker
      const queue = yield* RunningBroker.queue()
      const received = yield* consuming({ queue, prefetch: 10 })
      for (let n = 0; n < 3; n++) {
        const refused = yield* publish({ ...to(queue), exchange: RunningBroker.name("missing") })
        assert.deepInclude(refused, { _tag: "Refused", reason: "no_exchange" })
        assert.deepStrictEqual(yield* publish(to(queue)), confirmed)
      }
      yield* eventually(
        Effect.sync(() => received.length),
        (count) => count === 3
      )
      assert.isTrue(received.every(({ epoch }) => epoch === 1))
    }).pipe(Effect.scoped, Effect.provide(RunningBroker.layer()))
  )

  it.live("goes on consuming after a reconnect while a slow receiver still works on what it had", () =>
    Effect.gen(function* () {
      const proxy = yield* TcpProxy.make(RunningBroker.target())
      yield* Effect.gen(function* () {
        const { publish } = yield* Broker
        const queue = yield* RunningBroker.queue()
        const told: Array<string> = []
        const received = yield* consuming({
          queue,
          prefetch: 10,
          onLost: (epoch) => told.push(`lost ${epoch}`),
          onResumed: (epoch) => told.push(`resumed ${epoch}`)
        })
        yield* publish(to(queue, "slow"))
        yield* eventually(
          Effect.sync(() => received.length),
          (count) => count === 1
        )
        yield* proxy.cut
        yield* eventually(
          Effect.sync(() => told.length),
          (count) => count === 1
        )
        assert.strictEqual(received[0]!.settle("ack"), "stale")
        const waiting = yield* Effect.forkChild(publish(to(queue, "late")), { startImmediately: true })
        // it is in the queue again, so in front of what comes later
        yield* eventually(
          elsewhere(queue),
          Option.exists(({ messages }) => messages === 1)
        )
        yield* proxy.restore
        assert.deepStrictEqual(yield* Fiber.join(waiting), confirmed)
        yield* eventually(
          Effect.sync(() => received.slice(1).map(textOf)),
          (texts) => texts.length === 2
        )
        assert.deepStrictEqual(told, ["lost 1", "resumed 2"])
        assert.deepStrictEqual(
          received.map((delivery) => [textOf(delivery), delivery.epoch, delivery.redelivered]),
          [
            ["slow", 1, false],
            ["slow", 2, true],
            ["late", 2, false]
          ]
        )
        assert.isTrue(received.slice(1).every((delivery) => delivery.settle("ack") === "requested"))
      }).pipe(Effect.scoped, Effect.provide(through(proxy)))
    }).pipe(Effect.scoped)
  )

  it.live("calls unknown what was under way when the connection broke, and says what it is doing meanwhile", () =>
    Effect.gen(function* () {
      const proxy = yield* TcpProxy.make(RunningBroker.target())
      yield* Effect.gen(function* () {
        const { connection, ping, publish } = yield* Broker
        const queue = yield* RunningBroker.queue()
        const states: Array<Connection> = []
        yield* Effect.forkScoped(
          Stream.runForEach(connection, (state) => Effect.sync(() => states.push(state))),
          { startImmediately: true }
        )
        yield* publish(to(queue))
        yield* proxy.freeze
        const under = yield* Effect.forkChild(publish(to(queue)), { startImmediately: true })
        yield* Effect.sleep("20 millis")
        yield* proxy.cut
        assert.deepInclude(yield* Fiber.join(under), { _tag: "Unknown", reason: "lost" })
        yield* eventually(
          Effect.sync(() => states.filter(({ _tag }) => _tag === "Connecting").length),
          (count) => count > 2
        )
        yield* proxy.thaw
        yield* proxy.restore
        yield* eventually(Effect.isSuccess(ping), (answered) => answered)
        assert.strictEqual(states[0]?._tag, "Connected")
        const tries = states.flatMap((state) => (state._tag === "Connecting" ? [state] : []))
        assert.deepStrictEqual(
          tries.map(({ attempt }) => attempt),
          tries.map((_, index) => index + 1)
        )
        assert.match(tries[1]?.failure ?? "", /ECONNREFUSED/)
        assert.strictEqual(states.at(-1)?._tag, "Connected")
      }).pipe(Effect.scoped, Effect.provide(through(proxy)))
    }).pipe(Effect.scoped)
  )

  it.live("declares what was declared on the next connection, and not what was removed since", () =>
    Effect.gen(function* () {
      const proxy = yield* TcpProxy.make(RunningBroker.target())
      yield* Effect.gen(function* () {
        const { declare, inspect, ping, publish, remove } = yield* Broker
        const [exchange, kept, gone] = [
          RunningBroker.name("exchange"),
          RunningBroker.name("kept"),
          RunningBroker.name("gone")
        ]
        yield* RunningBroker.removed(kept, exchange)
        const passing = { durable: false, exclusive: true }
        yield* declare({
          exchanges: [{ name: exchange, kind: "topic", durable: false }],
          queues: [
            { name: kept, ...passing },
            { name: gone, ...passing }
          ],
          bindings: [{ exchange, queue: kept, routingKey: "a.#" }]
        })
        yield* remove({ queues: [gone] })
        yield* proxy.cut
        // a broker that has not noticed yet keeps an exclusive queue for the connection that it takes for alive
        yield* eventually(elsewhere(kept), Option.isNone)
        yield* proxy.restore
        yield* eventually(Effect.isSuccess(ping), (answered) => answered)
        assert.deepStrictEqual(yield* publish({ ...to("a.b"), exchange }), confirmed)
        assert.isTrue(Option.isSome(yield* inspect(kept)))
        assert.isTrue(Option.isNone(yield* inspect(gone)))
      }).pipe(Effect.scoped, Effect.provide(through(proxy)))
    }).pipe(Effect.scoped)
  )

  it.live("reads on in a stream behind what was acknowledged without a gap", () =>
    Effect.gen(function* () {
      const proxy = yield* TcpProxy.make(RunningBroker.target())
      yield* Effect.gen(function* () {
        const { publish } = yield* Broker
        const queue = yield* RunningBroker.queue({ arguments: { "x-queue-type": "stream" } })
        for (let n = 0; n < 20; n++) yield* publish(to(queue, String(n)))
        const received = yield* consuming({ queue, prefetch: 20, arguments: { "x-stream-offset": "first" } })
        yield* eventually(
          Effect.sync(() => received.length),
          (count) => count === 20
        )
        for (const n of [0, 1, 2, 3, 4, 6, 7]) received[n]!.settle("ack")
        yield* proxy.cut
        yield* proxy.restore
        yield* eventually(
          Effect.sync(() => received.length),
          (count) => count === 35
        )
        assert.deepStrictEqual(
          received.slice(20).map(textOf),
          Array.from({ length: 15 }, (_, n) => String(n + 5))
        )
      }).pipe(Effect.scoped, Effect.provide(through(proxy)))
    }).pipe(Effect.scoped)
  )

  it.live("ends a channel of one's own with the connection, for good", () =>
    Effect.gen(function* () {
      const proxy = yield* TcpProxy.make(RunningBroker.target())
      yield* Effect.gen(function* () {
        const { channel, ping } = yield* Broker
        const queue = yield* RunningBroker.queue()
        const own = yield* channel({ prefetch: 1 })
        yield* proxy.cut
        assert.deepInclude(yield* Effect.flip(own.ended), { operation: "channel", reason: "lost" })
        const [elapsed, error] = yield* Effect.timed(Effect.flip(own.get(queue)))
        assert.deepInclude(error, { operation: "channel", reason: "lost" })
        assert.isBelow(Duration.toMillis(elapsed), 500)
        yield* proxy.restore
        // Or it would declare the queue again after it was removed.
        yield* eventually(Effect.isSuccess(ping), (answered) => answered)
      }).pipe(Effect.scoped, Effect.provide(through(proxy)))
    }).pipe(Effect.scoped)
  )

  it.live("follows a lost connection by one to the next address, and the last address by the first", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const proxy = yield* TcpProxy.make(RunningBroker.target())
      const others = yield* Effect.all([resetting("b", asked), resetting("c", asked)])
      const url = [RunningBroker.through(proxy), ...others] as const
      yield* Effect.gen(function* () {
        const { ping } = yield* Broker
        yield* proxy.cut
        yield* eventually(
          Effect.sync(() => asked.length),
          (count) => count >= 4
        )
        assert.deepStrictEqual(asked.slice(0, 4), ["b", "c", "b", "c"])
        yield* proxy.restore
        yield* eventually(Effect.isSuccess(ping), (answered) => answered)
      }).pipe(Effect.scoped, Effect.provide(RunningBroker.layer({ url })))
    }).pipe(Effect.scoped)
  )

  it.live("replaces a channel on which a queue refuses, now and then, to the harm of nobody else", () => {
    let channels = 0
    return Effect.gen(function* () {
      const { publish } = yield* Broker
      const full = yield* RunningBroker.queue({ arguments: { "x-max-length": 1, "x-overflow": "reject-publish" } })
      const queue = yield* RunningBroker.queue()
      yield* publish(to(full))
      const before = channels
      const since = performance.now()
      const outcomes = { full: new Set<string>(), queue: new Set<string>() }
      const publishing = (kind: "full" | "queue", name: string) =>
        Effect.gen(function* () {
          while (performance.now() - since < 1_800) outcomes[kind].add((yield* publish(to(name)))._tag)
        })
      yield* Effect.all([publishing("full", full), publishing("queue", queue), publishing("queue", queue)], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual([...outcomes.full], ["Refused"])
      assert.deepStrictEqual([...outcomes.queue], ["Confirmed"])
      assert.isAtLeast(channels - before, 1)
      assert.isAtMost(channels - before, 4)
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.unwrap(
          Effect.map(
            TcpProxy.make(RunningBroker.target(), (bytes) => {
              if (bytes.includes(channelOpen)) channels++
            }),
            (proxy) => through(proxy)
          )
        )
      )
    )
  })

  describe("start", () => {
    const password = "s3cr3t-Passw0rd"

    it.live.each([
      { url: "amqp://user:PW@127.0.0.1:1", reason: "unreachable" as const },
      { url: "amqp://user:PW@[127.0.0.1", reason: "refused" as const },
      { url: "amqp://user:PW%@127.0.0.1:1", reason: "refused" as const },
      { url: "http://user:PW@127.0.0.1:1", reason: "refused" as const }
    ])("fails typed and without the password: $url", ({ reason, url }) =>
      Effect.gen(function* () {
        const error = yield* startFailure({ url: Redacted.make(url.replace("PW", password)) })
        assert.deepInclude(error, { _tag: "BrokerError", operation: "connect", reason })
        assert.notInclude(inspect(error, { depth: 10 }), password)
      }).pipe(Effect.timeout("5 seconds"))
    )

    it.live("fails typed when the password is wrong, and does not repeat it", () =>
      Effect.gen(function* () {
        const url = new URL(RunningBroker.server ?? "")
        url.password = password
        const error = yield* startFailure({ url: Redacted.make(url.href) })
        assert.deepInclude(error, { operation: "connect", reason: "denied" })
        assert.match(error.message, /^ACCESS_REFUSED/)
        assert.notInclude(inspect(error, { depth: 10 }), password)
        // nor is the right one waited for
        const waiting = yield* startFailure({ url: Redacted.make(url.href), whenUnreachable: "wait" })
        assert.strictEqual(waiting.reason, "denied")
      })
    )

    it.live("waits for a server that is not there yet, where it is told to", () =>
      Effect.gen(function* () {
        const proxy = yield* TcpProxy.make(RunningBroker.target())
        yield* proxy.cut
        yield* Effect.gen(function* () {
          const broker = yield* Broker
          const queue = RunningBroker.name("later")
          yield* RunningBroker.removed(queue)
          const declaring = yield* Effect.forkChild(
            broker.declare({ exchanges: [], queues: [{ name: queue }], bindings: [] })
          )
          const before = yield* Stream.runHead(broker.connection)
          assert.deepInclude(Option.getOrThrow(before), { _tag: "Connecting" })
          yield* proxy.restore
          yield* Fiber.join(declaring)
          assert.deepStrictEqual(yield* Stream.runHead(broker.connection), Option.some({ _tag: "Connected" }))
        }).pipe(Effect.scoped, Effect.provide(through(proxy, { whenUnreachable: "wait" })))
      }).pipe(Effect.scoped)
    )

    it.live("fails typed when there is no such virtual host", () =>
      Effect.gen(function* () {
        const url = new URL(RunningBroker.server ?? "")
        url.pathname = "/svc-test-none"
        const error = yield* startFailure({ url: Redacted.make(url.href) })
        assert.deepInclude(error, { operation: "connect", reason: "refused" })
        assert.match(error.message, /virtual host/)
      })
    )

    it.live("tries each of several addresses in its turn, and once", () =>
      Effect.gen(function* () {
        const asked: Array<string> = []
        const [a, b, c] = yield* Effect.all([resetting("a", asked), resetting("b", asked), resetting("c", asked)])
        const error = yield* startFailure({ url: [a, b, c] })
        assert.deepInclude(error, { _tag: "BrokerError", operation: "connect" })
        assert.deepStrictEqual(asked, ["a", "b", "c"])
      }).pipe(Effect.scoped, Effect.timeout("5 seconds"))
    )

    it.live("takes the second address where the first refuses", () =>
      Effect.gen(function* () {
        const proxy = yield* TcpProxy.make(RunningBroker.target())
        yield* proxy.cut
        const url = [RunningBroker.through(proxy), RunningBroker.url] as const
        yield* Effect.flatMap(Broker, ({ ping }) => ping).pipe(Effect.provide(RunningBroker.layer({ url })))
      }).pipe(Effect.scoped, Effect.timeout("5 seconds"))
    )

    it.live("fails typed when the server accepts and never answers", () =>
      Effect.gen(function* () {
        const proxy = yield* TcpProxy.make(RunningBroker.target())
        yield* proxy.freeze
        const error = yield* startFailure({ url: RunningBroker.through(proxy), connectWithin: "300 millis" })
        assert.deepInclude(error, { operation: "connect", reason: "unreachable" })
      }).pipe(Effect.scoped, Effect.timeout("5 seconds"))
    )
  })
})

it("tries to connect again at once, and then at least once in 0.7 seconds", () => {
  const pauses = [1, 2, 3, 4, 5, 6, 7, 50, 5_000].map((attempt) => [pauseBefore(attempt, 0), pauseBefore(attempt, 1)])
  assert.deepStrictEqual(pauses[0], [0, 20])
  for (const [least = 0, most = 0] of pauses.slice(1)) {
    assert.isAtLeast(least, 25)
    assert.isAtMost(most, 700)
  }
})

const confirmed: Outcome = { _tag: "Confirmed" }

/** The size and the method of the frame. */
const channelOpen = Buffer.from([0, 0, 0, 5, 0, 20, 0, 10])

/** What another connection sees of a queue. */
const elsewhere = (queue: string) =>
  Effect.flatMap(Broker, ({ inspect }) => inspect(queue)).pipe(Effect.provide(RunningBroker.layer()))

const through = (proxy: TcpProxy.TcpProxy, options: Partial<BrokerAmqp.Options> = {}) =>
  RunningBroker.layer({ url: RunningBroker.through(proxy), ...options })

/** The address of a server that resets every connection, and keeps a record of them. */
const resetting = (name: string, asked: Array<string>) =>
  Effect.map(
    ScriptedServer.serve((peer) => {
      asked.push(name)
      peer.reset()
    }),
    ({ origin }) => Redacted.make(`amqp://guest:guest@${new URL(origin).host}`)
  )

const startFailure = (options: Partial<BrokerAmqp.Options> & Pick<BrokerAmqp.Options, "url">) =>
  Broker.pipe(Effect.provide(BrokerAmqp.layer(options)), Effect.flip)

const to = (queue: string, text = "x"): Publication => ({
  purpose: "tasks",
  exchange: "",
  routingKey: queue,
  content: new TextEncoder().encode(text),
  properties: {}
})

const textOf = ({ content }: Pick<Delivery, "content">) => new TextDecoder().decode(content)

/** What has been delivered so far, by a consumer that lives as long as the scope. */
const consuming = Effect.fnUntraced(function* (options: Omit<ConsumeOptions, "onDelivery">) {
  const { consume } = yield* Broker
  const received: Array<Delivery> = []
  yield* consume({ onDelivery: (delivery) => received.push(delivery), ...options })
  return received
})
