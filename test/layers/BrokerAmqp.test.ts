import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Option, Redacted } from "effect"
import { Broker, type Delivery, type Outcome, type Properties, type Publication } from "../../src/services/Broker.ts"
import { eventually } from "../Eventually.ts"
import * as RunningBroker from "../RunningBroker.ts"

describe.skipIf(RunningBroker.server === null)("BrokerAmqp", () => {
  const broker = RunningBroker.layer({ publishWithin: "3 seconds" })

  it.live("refuses at once what comes after its end, also a status to an exchange that it has not heard of", () =>
    Effect.gen(function* () {
      const { publish } = yield* Effect.scoped(
        Effect.map(Layer.build(RunningBroker.layer()), (built) => Context.get(built, Broker))
      )
      for (const purpose of ["tasks", "statuses"] as const) {
        const message = { purpose, exchange: "", routingKey: "nowhere", content: Buffer.from("late"), properties: {} }
        const outcome = yield* Effect.timeout(publish(message), "2 seconds")
        assert.strictEqual(outcome._tag === "Refused" ? outcome.reason : outcome._tag, "closed")
      }
    })
  )

  it.live("takes its address as a text, alone or in a list", () =>
    Effect.gen(function* () {
      const url = Redacted.value(RunningBroker.url)
      for (const given of [url, [url] as const]) {
        yield* Effect.provide(
          Effect.flatMap(Broker, ({ ping }) => ping),
          RunningBroker.layer({ url: given })
        )
      }
    })
  )

  describe("publishing", () => {
    it.live("carries every property, every type of header and the bytes", () =>
      Effect.gen(function* () {
        const { channel, publish } = yield* Broker
        const queue = yield* RunningBroker.queue()
        const properties: Properties = {
          contentType: "application/json",
          contentEncoding: "identity",
          headers: {
            text: "ö",
            small: 1,
            large: 2 ** 40,
            fraction: 1.5,
            wide: 12n,
            yes: true,
            nothing: null,
            at: new Date(1_700_000_000_000),
            bytes: Uint8Array.of(1, 2),
            list: ["a", 2, [null]],
            table: { "!": "string", value: 1 },
            deep: { deeper: { at: new Date(0) } }
          },
          persistent: false,
          priority: 255,
          correlationId: "c",
          replyTo: "r",
          expiration: 60_000,
          messageId: "m",
          timestamp: new Date(1_700_000_000_000),
          type: "t",
          userId: RunningBroker.user,
          appId: "app"
        }
        assert.deepStrictEqual(yield* publish({ ...to(queue, "body"), properties }), confirmed)
        const own = yield* channel({ prefetch: 1 })
        const delivery = Option.getOrThrow(yield* own.get(queue))
        assert.strictEqual(textOf(delivery), "body")
        const { headers, ...rest } = delivery.properties
        const { headers: sent, ...others } = properties
        assert.deepStrictEqual(rest, others)
        const bytes = headers?.["bytes"]
        assert.deepStrictEqual(bytes instanceof Uint8Array ? [...bytes] : bytes, [1, 2])
        assert.deepStrictEqual({ ...headers, bytes: 0, wide: 0 }, { ...sent, bytes: 0, wide: 0 })
        assert.strictEqual(headers?.["wide"], 12)
        assert.deepInclude(delivery, { queue, exchange: "", routingKey: queue, redelivered: false, deliveryTag: 1 })
      }).pipe(Effect.scoped, Effect.provide(broker))
    )

    it.live("refuses what AMQP cannot carry, by name, and harms no other publish of its purpose", () =>
      Effect.gen(function* () {
        const { publish } = yield* Broker
        const queue = yield* RunningBroker.queue()
        const long = "x".repeat(256)
        const bad: ReadonlyArray<readonly [Partial<Publication>, RegExp]> = [
          [{ routingKey: "ö".repeat(128) }, /^routingKey has 256 bytes/],
          [{ exchange: long }, /^exchange has 256 bytes/],
          [{ properties: { correlationId: long } }, /^correlationId /],
          [{ properties: { messageId: "half\ud800" } }, /^messageId contains an unpaired surrogate/],
          [{ properties: { priority: 256 } }, /^priority is 256/],
          [{ properties: { priority: 1.5 } }, /^priority is 1.5/],
          [{ properties: { expiration: -1 } }, /^expiration is -1/],
          [{ properties: { headers: { CC: "one" } } }, /^the header CC is not a list/],
          [{ properties: { headers: { large: "x".repeat(65_536) } } }, /^the header large exceeds the limit/],
          [{ properties: { headers: { [long]: 1 } } }, /^the header x{60}… has a name of 256 bytes/],
          [{ properties: { headers: { wide: 2n ** 63n } } }, /^the header wide is an integer of more than 64 bits/],
          [{ properties: { headers: { deep: [{ number: Number.NaN }] } } }, /^the header deep is NaN/],
          [{ properties: { headers: { number: Number.NEGATIVE_INFINITY } } }, /^the header number is -Infinity/],
          [{ properties: { timestamp: new Date(Number.NaN) } }, /timestamp/]
        ]
        const all = yield* Effect.all(
          [publish(to(queue)), ...bad.map(([part]) => publish({ ...to(queue), ...part })), publish(to(queue))],
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(all[0], confirmed)
        assert.deepStrictEqual(all.at(-1), confirmed)
        bad.forEach(([, words], index) => {
          const outcome = all[index + 1]!
          assert.deepInclude(outcome, { _tag: "Refused", reason: "invalid" })
          assert.match(detailOf(outcome), words)
        })
        assert.strictEqual(yield* messagesIn(queue), 2)
      }).pipe(Effect.scoped, Effect.provide(broker))
    )

    it.live("tells an unroutable message from its routed neighbours", () =>
      Effect.gen(function* () {
        const { publish } = yield* Broker
        const queue = yield* RunningBroker.queue()
        const outcomes = yield* Effect.forEach(
          Array.from({ length: 300 }, (_, n) => n),
          (n) => publish(to(n % 3 === 0 ? `${queue}-nowhere` : queue, String(n % 2))),
          { concurrency: "unbounded" }
        )
        outcomes.forEach((outcome, n) => {
          assert.strictEqual(outcome._tag, n % 3 === 0 ? "Returned" : "Confirmed")
        })
        assert.match(detailOf(outcomes[0]!), /NO_ROUTE.*nowhere/)
      }).pipe(Effect.scoped, Effect.provide(broker))
    )

    it.live("finds the unroutable one among messages that differ in their headers alone", () =>
      Effect.gen(function* () {
        const { declare, publish } = yield* Broker
        const [exchange, queue] = [RunningBroker.name("exchange"), RunningBroker.name("queue")]
        yield* RunningBroker.removed(queue, exchange)
        yield* declare({
          exchanges: [{ name: exchange, kind: "headers" }],
          queues: [{ name: queue }],
          bindings: [{ exchange, queue, routingKey: "", arguments: { "x-match": "all", at: new Date(5_000), n: 7n } }]
        })
        const outcomes = yield* Effect.forEach(
          [7n, 8, 7, 9n, 7],
          (n) => publish({ ...to("", "same"), exchange, properties: { headers: { at: new Date(5_000), n } } }),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          outcomes.map(({ _tag }) => _tag),
          ["Confirmed", "Returned", "Confirmed", "Returned", "Confirmed"]
        )
      }).pipe(Effect.scoped, Effect.provide(broker))
    )

    it.live(
      "refuses a publish to an exchange that is not there, and no other: not behind it, not of another purpose",
      () =>
        Effect.gen(function* () {
          const { publish } = yield* Broker
          const queue = yield* RunningBroker.queue()
          const missing = RunningBroker.name("exchange")
          const outcomes = yield* Effect.forEach(
            [
              { ...to(queue), exchange: missing },
              to(queue),
              { ...to(queue), exchange: missing },
              to(queue),
              { ...to(queue), purpose: "statuses" as const }
            ],
            publish,
            { concurrency: "unbounded" }
          )
          const refused = { _tag: "Refused", reason: "no_exchange" } as const
          assert.deepInclude(outcomes[0], refused)
          assert.deepInclude(outcomes[2], refused)
          assert.match(detailOf(outcomes[0]!), /no exchange/)
          assert.deepStrictEqual([outcomes[1], outcomes[3], outcomes[4]], [confirmed, confirmed, confirmed])
          assert.strictEqual(yield* messagesIn(queue), 3)
        }).pipe(Effect.scoped, Effect.provide(broker))
    )

    it.live(
      "calls unknown what was under way in front of the publish that closed the channel, unless it was answered",
      () =>
        Effect.gen(function* () {
          const { publish } = yield* Broker
          const queue = yield* RunningBroker.queue({ arguments: { "x-queue-type": "quorum" } })
          const outcomes = yield* Effect.forEach(
            [to(queue), { ...to(queue), exchange: RunningBroker.name("exchange") }],
            publish,
            { concurrency: "unbounded" }
          )
          const stored = yield* messagesIn(queue)
          const [innocent] = outcomes
          assert.isTrue(
            innocent?._tag === "Confirmed" ? stored === 1 : innocent?._tag === "Unknown" && innocent.reason === "lost"
          )
        }).pipe(Effect.scoped, Effect.provide(broker))
    )

    it.live("refuses the user of another, and what an exchange of the broker's own takes from nobody", () =>
      Effect.gen(function* () {
        const { publish } = yield* Broker
        const queue = yield* RunningBroker.queue()
        const [, stranger, again] = yield* Effect.forEach(
          [to(queue), { ...to(queue), properties: { userId: "somebody" } }, to(queue)],
          publish,
          { concurrency: "unbounded" }
        )
        assert.deepInclude(stranger, { _tag: "Refused", reason: "invalid" })
        assert.match(detailOf(stranger!), /user_id/)
        assert.deepStrictEqual(again, confirmed)
        const denied = yield* publish({ ...to(queue), exchange: "amq.rabbitmq.trace" })
        assert.deepInclude(denied, { _tag: "Refused", reason: "denied" })
      }).pipe(Effect.scoped, Effect.provide(broker))
    )

    it.live("is told when a full queue refuses", () =>
      Effect.gen(function* () {
        const { publish } = yield* Broker
        const queue = yield* RunningBroker.queue({ arguments: { "x-max-length": 1, "x-overflow": "reject-publish" } })
        assert.deepStrictEqual(yield* publish(to(queue)), confirmed)
        assert.deepInclude(yield* publish(to(queue)), { _tag: "Refused", reason: "nacked" })
      }).pipe(Effect.scoped, Effect.provide(broker))
    )

    it.live("lets three hundred callers wait for a window of one, and keeps their order", () =>
      Effect.gen(function* () {
        const { publish } = yield* Broker
        const queue = yield* RunningBroker.queue()
        const outcomes = yield* Effect.forEach(
          Array.from({ length: 300 }, (_, n) => n),
          (n) => publish(to(queue, String(n))),
          { concurrency: "unbounded" }
        )
        assert.isTrue(outcomes.every(({ _tag }) => _tag === "Confirmed"))
        const received = yield* consumed(queue, 300)
        assert.deepStrictEqual(
          received.map(textOf),
          Array.from({ length: 300 }, (_, n) => String(n))
        )
      }).pipe(Effect.scoped, Effect.provide(RunningBroker.layer({ windows: { tasks: 1 } })))
    )

    it.live("keeps a publish whose caller went away while it waited from being sent", () =>
      Effect.gen(function* () {
        const { publish } = yield* Broker
        const queue = yield* RunningBroker.queue()
        const first = yield* Effect.forkChild(publish(to(queue, "first")), { startImmediately: true })
        const second = yield* Effect.forkChild(publish(to(queue, "second")), { startImmediately: true })
        const third = yield* Effect.forkChild(publish(to(queue, "third")), { startImmediately: true })
        yield* Fiber.interrupt(second)
        yield* Effect.all([Fiber.join(first), Fiber.join(third)])
        assert.deepStrictEqual((yield* consumed(queue, 2)).map(textOf), ["first", "third"])
      }).pipe(Effect.scoped, Effect.provide(RunningBroker.layer({ windows: { tasks: 1 } })))
    )
  })
})

const confirmed: Outcome = { _tag: "Confirmed" }

const to = (queue: string, text = "x"): Publication => ({
  purpose: "tasks",
  exchange: "",
  routingKey: queue,
  content: new TextEncoder().encode(text),
  properties: {}
})

const textOf = ({ content }: Pick<Delivery, "content">) => new TextDecoder().decode(content)

const detailOf = (outcome: Outcome) => ("detail" in outcome ? outcome.detail : "")

const messagesIn = (queue: string) =>
  Effect.flatMap(Broker, ({ inspect }) => Effect.map(inspect(queue), (found) => Option.getOrThrow(found).messages))

/** The first so many, acknowledged. */
const consumed = (queue: string, count: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { consume } = yield* Broker
      const received: Array<Delivery> = []
      yield* consume({
        queue,
        prefetch: 100,
        onDelivery: (delivery) => {
          received.push(delivery)
          delivery.settle("ack")
        }
      })
      return yield* eventually(
        Effect.sync(() => received),
        ({ length }) => length >= count
      )
    })
  )
