import { assert, layer as describeWith } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Option, Queue, Result, Scope, Stream } from "effect"
import {
  Broker,
  type Connection,
  type ConsumeOptions,
  type Declarations,
  type Queue as Declared,
  type Delivery,
  type Fields,
  type Outcome,
  type Properties
} from "../../src/services/Broker.ts"
import { eventually } from "../Eventually.ts"
import * as Temporary from "../TemporaryNames.ts"

/** What may happen to the connection of the broker under test. */
export class ConnectionFaults extends Context.Service<
  ConnectionFaults,
  {
    /** It is lost, and none is accepted before `restore`. */
    readonly cut: Effect.Effect<void>
    readonly restore: Effect.Effect<void>
  }
>()("test/ConnectionFaults") {}

/** The lifetime of a message, in milliseconds. */
const brief = 60

/** The lifetime of a queue that must not be over before a slow machine has used it, in milliseconds. */
const leased = 400

const kinds = ["classic", "quorum"] as const
type Kind = (typeof kinds)[number]

const ofKind = (kind: Kind | "stream", more: Fields = {}): Fields =>
  kind === "classic" ? more : { "x-queue-type": kind, ...more }

const only = (...queues: ReadonlyArray<Declared>): Declarations => ({ exchanges: [], queues, bindings: [] })

const text = (content: Uint8Array): string => Buffer.from(content).toString()

/** A queue of its own, declared. */
export const declared = Effect.fnUntraced(function* (base: string, fields: Fields = {}, more: Partial<Declared> = {}) {
  const broker = yield* Broker
  const name = (yield* Temporary.TemporaryNames).queue(base)
  yield* broker.declare(only({ name, arguments: fields, ...more }))
  return name
})

export const send = (queue: string, content: string, properties: Properties = {}) =>
  Effect.flatMap(Broker, (broker) =>
    broker.publish({
      purpose: "tasks",
      exchange: "",
      routingKey: queue,
      content: Buffer.from(content),
      properties
    })
  )

const sendAll = (queue: string, contents: Iterable<string>) =>
  Effect.forEach(contents, (content) => Effect.map(send(queue, content), confirmed), { discard: true })

const confirmed = (outcome: Outcome) => assert.deepStrictEqual(outcome, { _tag: "Confirmed" })

/** A consumer whose deliveries wait to be taken. */
export const reader = Effect.fnUntraced(function* (
  queue: string,
  prefetch = 10,
  more: Partial<Pick<ConsumeOptions, "arguments" | "onLost" | "onResumed">> = {}
) {
  const broker = yield* Broker
  const deliveries = yield* Queue.unbounded<Delivery>()
  const subscription = yield* broker.consume({
    queue,
    prefetch,
    onDelivery: (delivery) => {
      Queue.offerUnsafe(deliveries, delivery)
    },
    ...more
  })
  const take = Effect.timeoutOrElse(Queue.take(deliveries), {
    duration: "5 seconds",
    orElse: () => Effect.die(new Error(`nothing arrived from ${queue}`))
  })
  return {
    ...subscription,
    take,
    takeN: (count: number) => Effect.all(Array.from({ length: count }, () => take)),
    /** What has come and was not taken. */
    arrived: Effect.sync(() => Queue.sizeUnsafe(deliveries))
  }
})

/** A failed test must not leave the next one without a connection. */
const faults = Effect.map(ConnectionFaults, ({ cut, restore }) => {
  let isCut = false
  const again = Effect.suspend(() => {
    if (!isCut) return Effect.void
    isCut = false
    return restore
  })
  const cutHere = Effect.andThen(
    Effect.addFinalizer(() => again),
    Effect.suspend(() => {
      isCut = true
      return cut
    })
  )
  return { cutHere, restore: again }
})

const texts = (deliveries: ReadonlyArray<Delivery>): ReadonlyArray<string> =>
  deliveries.map(({ content, redelivered }) => text(content) + (redelivered ? "*" : ""))

const settleAll = (deliveries: ReadonlyArray<Delivery>, how: "ack" | "requeue" | "reject" = "ack") =>
  Effect.sync(() => {
    for (const { settle } of deliveries) assert.strictEqual(settle(how), "requested")
  })

/** Everything that is ready, and acknowledged. */
const drained = Effect.fnUntraced(function* (queue: string) {
  const { get } = yield* (yield* Broker).channel({ prefetch: 1 })
  const deliveries: Array<Delivery> = []
  for (;;) {
    const next = yield* get(queue)
    if (Option.isNone(next)) return deliveries
    next.value.settle("ack")
    deliveries.push(next.value)
  }
}, Effect.scoped)

const ready = (queue: string, count: number) =>
  Effect.flatMap(Broker, (broker) =>
    eventually(
      Effect.map(broker.inspect(queue), (found) => Option.getOrUndefined(found)?.messages),
      (messages) => messages === count
    )
  )

/** Asks seldom: on a classic queue every question counts as a use. */
const gone = Effect.fnUntraced(function* (queue: string) {
  const { inspect } = yield* Broker
  for (let asked = 0; asked < 15; asked++) {
    yield* Effect.sleep(leased * 1.5)
    if (Option.isNone(yield* inspect(queue))) return
  }
  assert.fail(`${queue} is still there`)
})

/** Without what differs from death to death. */
const deaths = ({ properties }: Delivery): ReadonlyArray<object> => {
  const list = properties.headers?.["x-death"]
  return (Array.isArray(list) ? list : []).map((death: unknown) => {
    assert.isTrue(typeof death === "object" && death !== null && "time" in death && death.time instanceof Date)
    return { ...Object(death), time: "a time" }
  })
}

const refusedArguments: ReadonlyArray<readonly [Kind | "stream", Fields, RegExp]> = [
  ["classic", { "x-message-ttl": -1 }, /'x-message-ttl' .*value_negative/],
  ["classic", { "x-message-ttl": "5" }, /'x-message-ttl' .*expected integer, got longstr/],
  ["classic", { "x-message-ttl": 1.5 }, /'x-message-ttl' .*expected integer, got double/],
  ["classic", { "x-expires": 0 }, /'x-expires' .*value_zero/],
  ["classic", { "x-dead-letter-exchange": 5 }, /invalid type 'byte' for arg 'x-dead-letter-exchange'/],
  ["classic", { "x-dead-letter-routing-key": "k" }, /'x-dead-letter-routing-key' .*routing_key_but_no_dlx_defined/],
  ["quorum", { "x-dead-letter-routing-key": "k" }, /'x-dead-letter-routing-key' .*routing_key_but_no_dlx_defined/],
  ["stream", { "x-dead-letter-exchange": "" }, /'x-dead-letter-exchange' .*rabbit_stream_queue/],
  ["classic", { "x-dead-letter-strategy": "at-least-once" }, /'x-dead-letter-strategy' .*rabbit_classic_queue/],
  ["quorum", { "x-dead-letter-strategy": "bogus" }, /'x-dead-letter-strategy' .*invalid_dlx_strategy/],
  ["classic", { "x-max-length": -1 }, /'x-max-length' .*value_negative/],
  ["stream", { "x-max-length": 5 }, /'x-max-length' .*rabbit_stream_queue/],
  ["classic", { "x-overflow": "bogus" }, /'x-overflow' .*invalid_overflow/],
  ["classic", { "x-max-priority": 256 }, /'x-max-priority' .*max_value_exceeded/],
  ["quorum", { "x-max-priority": 5 }, /'x-max-priority' .*rabbit_quorum_queue/],
  ["stream", { "x-max-priority": 5 }, /'x-max-priority' .*rabbit_stream_queue/],
  ["classic", { "x-single-active-consumer": "yes" }, /'x-single-active-consumer' .*unacceptable_type/],
  ["stream", { "x-single-active-consumer": true }, /'x-single-active-consumer' .*rabbit_stream_queue/],
  ["classic", { "x-queue-type": "bogus" }, /'x-queue-type' .*unsupported queue type 'bogus'/],
  ["classic", { "x-delivery-limit": 3 }, /'x-delivery-limit' .*rabbit_classic_queue/],
  ["stream", { "x-delivery-limit": 3 }, /'x-delivery-limit' .*rabbit_stream_queue/],
  ["quorum", { "x-queue-version": 2 }, /'x-queue-version' .*rabbit_quorum_queue/],
  ["classic", { "x-max-age": "1D" }, /'x-max-age' .*rabbit_classic_queue/],
  ["stream", { "x-message-ttl": 5 }, /'x-message-ttl' .*rabbit_stream_queue/],
  ["stream", { "x-expires": 5_000 }, /'x-expires' .*rabbit_stream_queue/]
]

const acceptedArguments: ReadonlyArray<readonly [Kind | "stream", Fields]> = [
  ["classic", { "x-message-ttl": 0, "x-expires": 60_000, "x-max-length": 0, "x-max-length-bytes": 10 }],
  ["classic", { "x-max-priority": 0, "x-overflow": "reject-publish-dlx", "x-single-active-consumer": false }],
  ["quorum", { "x-message-ttl": 5, "x-expires": 60_000, "x-delivery-limit": 3, "x-overflow": "reject-publish" }],
  ["stream", { "x-max-length-bytes": 1_000_000, "x-max-age": "1h" }],
  ["classic", { "x-consumer-timeout": "abc", "x-no-such": 1 }],
  ["quorum", { "x-consumer-timeout": "abc", "x-no-such": 1 }]
]

/** What every `Broker` promises, on the real clock. */
export const suite = <E>(name: string, layer: Layer.Layer<Broker | ConnectionFaults, E>) =>
  describeWith(Layer.provideMerge(Temporary.layer, layer), { excludeTestServices: true })(`Broker: ${name}`, (it) => {
    it.effect("says who it is, and answers a ping", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        yield* broker.ping
        const { product, version } = yield* broker.server
        assert.match(product, /^RabbitMQ/)
        assert.match(version, /^\d+\.\d+\.\d+/)
        assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(broker.connection, 1)), [{ _tag: "Connected" }])
      })
    )

    it.effect("declares, counts what is there, and removes it, whether it is there or not", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        const queue = yield* declared("counted")
        yield* broker.declare(only({ name: queue }))
        assert.deepStrictEqual(yield* broker.inspect(queue), Option.some({ messages: 0, consumers: 0 }))
        yield* sendAll(queue, ["a", "b"])
        yield* ready(queue, 2)
        yield* broker.remove({ queues: [queue], exchanges: [queue] })
        yield* broker.remove({ queues: [queue], exchanges: [queue] })
        assert.deepStrictEqual(yield* broker.inspect(queue), Option.none())
      })
    )

    it.effect("examines without declaring", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        const names = yield* Temporary.TemporaryNames
        const [queue, exchange] = [names.queue("examined"), names.exchange("examined")]
        const wanted = { name: queue, arguments: { "x-max-length": 5 } }
        const both = Effect.all([
          broker.examine({ queue: wanted }),
          broker.examine({ exchange: { name: exchange, kind: "topic" } })
        ])
        assert.deepStrictEqual(yield* both, [{ _tag: "Missing" }, { _tag: "Missing" }])
        assert.deepStrictEqual(yield* both, [{ _tag: "Missing" }, { _tag: "Missing" }])
        yield* broker.declare({ exchanges: [{ name: exchange, kind: "topic" }], queues: [wanted], bindings: [] })
        assert.deepStrictEqual(yield* both, [{ _tag: "Same" }, { _tag: "Same" }])
        const longer = { ...wanted, arguments: { "x-max-length": 6 } }
        const [ofQueue, ofExchange] = yield* Effect.all([
          broker.examine({ queue: longer }),
          broker.examine({ exchange: { name: exchange, kind: "direct" } })
        ])
        assert.deepStrictEqual(ofQueue, {
          _tag: "Differs",
          differs: `PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue '${queue}' in vhost '/': received '6' but current is '5'`
        })
        assert.deepStrictEqual(ofExchange, {
          _tag: "Differs",
          differs: `PRECONDITION_FAILED - inequivalent arg 'type' for exchange '${exchange}' in vhost '/': received 'direct' but current is 'topic'`
        })
        assert.deepStrictEqual(yield* both, [{ _tag: "Same" }, { _tag: "Same" }])
      })
    )

    for (const [kind, fields, words] of refusedArguments) {
      it.effect(`refuses to declare: ${kind} ${JSON.stringify(fields)}`, () =>
        Effect.gen(function* () {
          const error = yield* Effect.flip(declared("refused", ofKind(kind, fields)))
          assert.deepInclude(error, { _tag: "BrokerError", operation: "declare", reason: "mismatch" })
          assert.match(error.message, words)
        })
      )
    }

    it.effect("accepts what RabbitMQ accepts, and what it knows nothing of", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        for (const [index, [kind, fields]] of acceptedArguments.entries()) {
          const name = yield* declared(`accepted-${index}`, ofKind(kind, fields))
          yield* broker.declare(only({ name, arguments: ofKind(kind, fields) }))
          yield* broker.remove({ queues: [name] })
        }
      })
    )

    it.effect("compares what it knows on a second declaration, and ignores the rest", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        const differs = Effect.fnUntraced(function* (base: string, first: Fields, second: Partial<Declared>) {
          const name = yield* declared(base, first)
          const { message, reason } = yield* Effect.flip(broker.declare(only({ name, ...second })))
          return [reason, message.slice(message.indexOf("inequivalent"), message.indexOf(" for queue"))] as const
        })
        assert.deepStrictEqual(
          yield* Effect.all([
            differs("compared-1", { "x-message-ttl": 5_000 }, { arguments: { "x-message-ttl": 6_000 } }),
            differs(
              "compared-2",
              { "x-message-ttl": 5_000, "x-expires": 60_000 },
              { arguments: { "x-max-length": 3 } }
            ),
            differs("compared-3", {}, { arguments: { "x-queue-type": "quorum" } }),
            differs("compared-4", {}, { durable: false, arguments: { "x-max-length": 3 } }),
            differs("compared-5", {}, { autoDelete: true })
          ]),
          [
            ["mismatch", "inequivalent arg 'x-message-ttl'"],
            ["mismatch", "inequivalent arg 'x-expires'"],
            ["mismatch", "inequivalent arg 'x-queue-type'"],
            ["mismatch", "inequivalent arg 'durable'"],
            ["mismatch", "inequivalent arg 'auto_delete'"]
          ]
        )
        const name = yield* declared("compared-6", { "x-consumer-timeout": 1, "x-no-such": "a" })
        yield* broker.declare(only({ name, arguments: { "x-queue-type": "classic", "x-no-such": "b" } }))
      })
    )

    it.effect("stops a declaration at the first that is refused, and touches nothing behind it", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        const names = yield* Temporary.TemporaryNames
        const [first, second, third] = [names.queue("first"), names.queue("second"), names.queue("third")]
        const error = yield* Effect.flip(
          broker.declare(only({ name: first }, { name: second, arguments: { "x-expires": 0 } }, { name: third }))
        )
        assert.strictEqual(error.reason, "mismatch")
        const there = yield* Effect.forEach([first, second, third], broker.inspect)
        assert.deepStrictEqual(there.map(Option.isSome), [true, false, false])
      })
    )

    it.effect("tells why nothing was declared or consumed: what is missing, reserved, or another's", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        const names = yield* Temporary.TemporaryNames
        const missing = names.queue("missing")
        const queue = yield* declared("bound")
        const binding = { exchange: names.exchange("missing"), queue, routingKey: "" }
        const reasons = yield* Effect.forEach(
          [
            broker.declare({ exchanges: [], queues: [], bindings: [binding] }),
            broker.declare({
              exchanges: [],
              queues: [],
              bindings: [{ ...binding, exchange: "amq.direct", queue: missing }]
            }),
            broker.declare({ exchanges: [], queues: [], bindings: [{ ...binding, exchange: "" }] }),
            broker.declare(only({ name: "amq.svc-test" })),
            broker.declare({ exchanges: [{ name: "amq.svc-test", kind: "direct" }], queues: [], bindings: [] }),
            Effect.scoped(broker.consume({ queue: missing, prefetch: 1, onDelivery: () => {} }))
          ],
          (attempt) => Effect.map(Effect.flip(attempt), ({ operation, reason }) => `${operation}: ${reason}`)
        )
        assert.deepStrictEqual(reasons, [
          "declare: not_found",
          "declare: not_found",
          "declare: denied",
          "declare: denied",
          "declare: denied",
          "consume: not_found"
        ])
      })
    )

    it.effect("routes by every kind of exchange, one copy for each queue", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        const names = yield* Temporary.TemporaryNames
        const bound = Effect.fnUntraced(function* (
          kind: "direct" | "topic" | "fanout" | "headers",
          keys: ReadonlyArray<readonly [key: string, fields?: Fields]>,
          published: ReadonlyArray<readonly [key: string, headers?: Fields]>
        ) {
          const [exchange, queue] = [names.exchange(kind), names.queue(`routed-${kind}`)]
          yield* broker.declare({
            exchanges: [{ name: exchange, kind }],
            queues: [{ name: queue }],
            bindings: keys.map(([routingKey, fields = {}]) => ({ exchange, queue, routingKey, arguments: fields }))
          })
          const outcomes = yield* Effect.forEach(published, ([routingKey, headers = {}]) =>
            broker.publish({
              purpose: "tasks",
              exchange,
              routingKey,
              content: Buffer.from(routingKey),
              properties: { headers }
            })
          )
          const arrived = yield* drained(queue)
          assert.isTrue(arrived.every((delivery) => delivery.exchange === exchange))
          assert.deepStrictEqual(
            arrived.map(({ routingKey }) => routingKey),
            published.flatMap(([key], index) => (outcomes[index]?._tag === "Confirmed" ? [key] : []))
          )
          return outcomes.map(({ _tag }) => (_tag === "Confirmed" ? "+" : _tag === "Returned" ? "-" : "?")).join("")
        })
        assert.strictEqual(yield* bound("fanout", [["x"], ["y"]], [["a"], [""]]), "++")
        assert.strictEqual(yield* bound("direct", [["a"], ["b.c"]], [["a"], ["b.c"], ["b"], ["A"], [""]]), "++---")
        assert.strictEqual(
          yield* bound(
            "topic",
            [["a.*"], ["#.z"], ["m.#"], ["*.*.q"], ["a.#.b"]],
            [["a.b"], ["a"], ["z"], ["x.y.z"], ["m"], ["m.n.o"], ["c.d.q"], ["d.q"], ["a.c.d.b"], [""]]
          ),
          "+-+++++-+-"
        )
        assert.strictEqual(yield* bound("topic", [["#"]], [["a"], [""], ["a.b"]]), "+++")
        assert.strictEqual(
          yield* bound(
            "headers",
            [
              ["", { "x-match": "all", a: 1, b: "two" }],
              ["", { "x-match": "any", c: true, d: null }]
            ],
            [
              ["1", { a: 1, b: "two", e: 5 }],
              ["2", { a: 1 }],
              ["3", { a: "1", b: "two" }],
              ["4", { c: true }],
              ["5", { c: false }],
              ["6", { d: "whatever" }],
              ["7"]
            ]
          ),
          "+--+-+-"
        )
      })
    )

    it.effect("follows an alternate exchange, and the CC and BCC headers", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        const names = yield* Temporary.TemporaryNames
        const [exchange, other, rest] = [names.exchange("first"), names.exchange("other"), names.queue("rest")]
        const [copied, hidden] = yield* Effect.all([declared("copied"), declared("hidden")])
        yield* broker.declare({
          exchanges: [
            { name: other, kind: "fanout" },
            { name: exchange, kind: "direct", arguments: { "alternate-exchange": other } }
          ],
          queues: [{ name: rest }],
          bindings: [{ exchange: other, queue: rest, routingKey: "" }]
        })
        const published = { purpose: "tasks", content: Buffer.from("x"), properties: {} } as const
        confirmed(yield* broker.publish({ ...published, exchange, routingKey: "nobody" }))
        assert.deepStrictEqual(
          (yield* drained(rest)).map(({ exchange, routingKey }) => [exchange, routingKey]),
          [[exchange, "nobody"]]
        )
        confirmed(yield* send(rest, "to all", { headers: { CC: [copied], BCC: [hidden], kept: 1 } }))
        for (const queue of [rest, copied, hidden]) {
          const [delivery] = yield* drained(queue)
          assert.deepStrictEqual(delivery?.properties.headers, { CC: [copied], kept: 1 })
          assert.strictEqual(delivery?.routingKey, rest)
        }
      })
    )

    it.effect("carries every property and every kind of header, and any bytes", () =>
      Effect.gen(function* () {
        const queue = yield* declared("properties")
        const { publish } = yield* Broker
        const content = Uint8Array.from({ length: 256 }, (_, byte) => byte)
        const properties: Properties = {
          contentType: "application/json",
          contentEncoding: "utf-8",
          persistent: false,
          priority: 7,
          correlationId: "correlation ☃",
          replyTo: "reply",
          expiration: 60_000,
          messageId: "message",
          timestamp: new Date(1_763_640_000_000),
          type: "type",
          appId: "app",
          headers: {
            text: "naïve ☃ 🚀",
            empty: "",
            whole: 1_763_640_000_000,
            negative: -5,
            fraction: 2.5,
            yes: true,
            nothing: null,
            time: new Date(1_763_640_000_000),
            list: [1, "two", [null, { three: 3 }]],
            table: { a: { b: false } }
          }
        }
        confirmed(yield* publish({ purpose: "tasks", exchange: "", routingKey: queue, content, properties }))
        confirmed(yield* send(queue, "bare"))
        const [full, bare] = yield* drained(queue)
        assert.deepStrictEqual(full?.properties, properties)
        assert.deepStrictEqual(Array.from(full?.content ?? []), Array.from(content))
        assert.deepStrictEqual(bare?.properties, { persistent: true, headers: {} })
      })
    )

    it.effect("tells what became of a publish: confirmed, returned, refused for want of an exchange, invalid", () =>
      Effect.gen(function* () {
        const { publish } = yield* Broker
        const names = yield* Temporary.TemporaryNames
        const queue = yield* declared("outcomes")
        const to = (exchange: string, routingKey: string, properties: Properties = {}) =>
          publish({ purpose: "tasks", exchange, routingKey, content: Buffer.from("x"), properties })
        const outcomes = yield* Effect.all(
          [
            to("", queue),
            to("", names.queue("nobody")),
            to(names.exchange("missing"), ""),
            to("", queue, { priority: 256 }),
            to("", queue, { expiration: -1 }),
            to("", "k".repeat(256)),
            to("", queue, { messageId: "m".repeat(256) })
          ],
          { concurrency: 1 }
        )
        assert.deepStrictEqual(
          outcomes.map((outcome) => (outcome._tag === "Refused" ? outcome.reason : outcome._tag)),
          ["Confirmed", "Returned", "no_exchange", "invalid", "invalid", "invalid", "invalid"]
        )
        const details = outcomes.map((outcome) => ("detail" in outcome ? outcome.detail : ""))
        assert.match(details[1] ?? "", /^NO_ROUTE/)
        assert.match(details[2] ?? "", /^NOT_FOUND - no exchange '/)
        assert.match(details[3] ?? "", /priority/)
        assert.match(details[4] ?? "", /expiration/)
        assert.match(details[5] ?? "", /routingKey/)
        assert.match(details[6] ?? "", /messageId/)
        yield* ready(queue, 1)
      })
    )

    it.effect("goes on publishing after an exchange was missing, in its own purpose and in the others", () =>
      Effect.gen(function* () {
        const { publish } = yield* Broker
        const missing = (yield* Temporary.TemporaryNames).exchange("missing")
        const queue = yield* declared("innocent")
        const content = Buffer.from("x")
        const outcomes = yield* Effect.all(
          [
            publish({ purpose: "statuses", exchange: "", routingKey: queue, content, properties: {} }),
            publish({ purpose: "tasks", exchange: missing, routingKey: "", content, properties: {} }),
            publish({ purpose: "retries", exchange: "", routingKey: queue, content, properties: {} }),
            publish({ purpose: "tasks", exchange: "", routingKey: queue, content, properties: {} })
          ],
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          outcomes.map(({ _tag }) => _tag),
          ["Confirmed", "Refused", "Confirmed", "Confirmed"]
        )
      })
    )

    it.effect("confirms more than the window holds, each publish by itself, and keeps their order", () =>
      Effect.gen(function* () {
        const queue = yield* declared("many")
        const count = 1_000
        const outcomes = yield* Effect.all(
          Array.from({ length: count }, (_, n) => send(n % 10 === 3 ? `${queue}-nobody` : queue, `${n}`)),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          outcomes.map(({ _tag }) => _tag),
          Array.from({ length: count }, (_, n) => (n % 10 === 3 ? "Returned" : "Confirmed"))
        )
        const { takeN } = yield* reader(queue, 300)
        const some = yield* takeN(300)
        assert.deepStrictEqual(
          some.map(({ content }) => Number(text(content))),
          Array.from({ length: count }, (_, n) => n)
            .filter((n) => n % 10 !== 3)
            .slice(0, 300)
        )
        assert.deepStrictEqual(
          some.map(({ deliveryTag }) => deliveryTag),
          Array.from({ length: 300 }, (_, n) => n + 1)
        )
      }).pipe(Effect.scoped)
    )

    it.effect("hands over at most the prefetch, and the next for each that is settled", () =>
      Effect.gen(function* () {
        const queue = yield* declared("prefetch")
        yield* sendAll(queue, ["1", "2", "3", "4", "5"])
        const { arrived, take, takeN } = yield* reader(queue, 2)
        const [first, second] = yield* takeN(2)
        assert.isTrue(first !== undefined && second !== undefined)
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
      }).pipe(Effect.scoped)
    )

    it.effect("gives back: on a classic queue to where it was, on a quorum queue to the end", () =>
      Effect.gen(function* () {
        const orders = yield* Effect.forEach(kinds, (kind) =>
          Effect.gen(function* () {
            const queue = yield* declared(`requeued-${kind}`, ofKind(kind))
            yield* sendAll(queue, ["1", "2", "3", "4"])
            const { get } = yield* (yield* Broker).channel({ prefetch: 1 })
            const held = yield* Effect.all([get(queue), get(queue), get(queue)])
            const [first, second, third] = held.map(Option.getOrThrow)
            assert.isTrue(first !== undefined && second !== undefined && third !== undefined)
            yield* settleAll(
              [third, first, second].flatMap((delivery) => delivery ?? []),
              "requeue"
            )
            yield* ready(queue, 4)
            return texts(yield* drained(queue)).join(" ")
          }).pipe(Effect.scoped)
        )
        assert.deepStrictEqual(orders, ["1* 2* 3* 4", "4 3* 1* 2*"])
      })
    )

    for (const kind of kinds) {
      it.effect(`returns what a closed scope left, before everything else: ${kind}`, () =>
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
      )

      it.effect(`serves its consumers in turn, those of a higher priority first: ${kind}`, () =>
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
        }).pipe(Effect.scoped)
      )

      it.effect(`has one active consumer, and the next when it is gone: ${kind}`, () =>
        Effect.gen(function* () {
          const queue = yield* declared(`single-${kind}`, ofKind(kind, { "x-single-active-consumer": true }))
          const leaving = yield* Scope.make()
          const active = yield* Scope.provide(reader(queue, 2), leaving)
          const waiting = yield* reader(queue, 9)
          yield* sendAll(queue, ["1", "2", "3", "4"])
          assert.deepStrictEqual(texts(yield* active.takeN(2)), ["1", "2"])
          yield* ready(queue, 2)
          assert.strictEqual(yield* waiting.arrived, 0)
          yield* Scope.close(leaving, Exit.void)
          assert.deepStrictEqual(texts(yield* waiting.takeN(4)), ["1*", "2*", "3", "4"])
        }).pipe(Effect.scoped)
      )

      it.effect(`sends what is rejected to the dead-letter exchange, and says why: ${kind}`, () =>
        Effect.gen(function* () {
          const dead = yield* declared(`dead-${kind}`)
          const queue = yield* declared(
            `rejects-${kind}`,
            ofKind(kind, { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead })
          )
          confirmed(yield* send(queue, "x", { correlationId: "c", headers: { own: 1 }, priority: 3 }))
          const { take } = yield* reader(queue)
          yield* settleAll([yield* take], "reject")
          yield* ready(dead, 1)
          const [delivery] = yield* drained(dead)
          assert.isTrue(delivery !== undefined)
          if (delivery === undefined) return
          assert.deepStrictEqual(deaths(delivery), [
            { count: 1, reason: "rejected", queue, exchange: "", "routing-keys": [queue], time: "a time" }
          ])
          const { headers = {}, ...properties } = delivery.properties
          const { "x-death": _, ...others } = headers
          assert.deepStrictEqual(others, {
            own: 1,
            "x-first-death-reason": "rejected",
            "x-first-death-queue": queue,
            "x-first-death-exchange": ""
          })
          assert.deepStrictEqual(properties, { persistent: true, correlationId: "c", priority: 3 })
          assert.deepStrictEqual([delivery.exchange, delivery.routingKey, delivery.redelivered], ["", dead, false])
        }).pipe(Effect.scoped)
      )

      it.effect(`lets messages expire, by the queue's time and by their own, from the front only: ${kind}`, () =>
        Effect.gen(function* () {
          const dead = yield* declared(`expired-${kind}`)
          const fields = { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead }
          const timed = yield* declared(`timed-${kind}`, ofKind(kind, { "x-message-ttl": brief, ...fields }))
          const own = yield* declared(`own-${kind}`, ofKind(kind, fields))
          confirmed(yield* send(timed, "queue's"))
          yield* ready(dead, 1)
          confirmed(yield* send(own, "long", { expiration: 60_000 }))
          confirmed(yield* send(own, "behind", { expiration: 1 }))
          confirmed(yield* send(timed, "own", { expiration: 20, headers: { CC: ["nobody"] } }))
          yield* ready(dead, 2)
          yield* ready(own, 2)
          const [first, second] = yield* drained(dead)
          assert.isTrue(first !== undefined && second !== undefined)
          if (first === undefined || second === undefined) return
          const death = { count: 1, reason: "expired", queue: timed, exchange: "", time: "a time" }
          assert.deepStrictEqual(deaths(first), [{ ...death, "routing-keys": [timed] }])
          assert.deepStrictEqual(deaths(second), [
            { ...death, "routing-keys": [timed, "nobody"], "original-expiration": "20" }
          ])
          assert.isUndefined(second.properties.expiration)
          assert.isUndefined(second.properties.headers?.["CC"])
        }).pipe(Effect.scoped)
      )

      it.effect(`goes round by a retry queue as often as it is rejected or sent again, and counts: ${kind}`, () =>
        Effect.gen(function* () {
          const { publish } = yield* Broker
          const source = yield* declared(`source-${kind}`, ofKind(kind))
          const retry = yield* declared(
            `retry-${kind}`,
            ofKind(kind, {
              "x-message-ttl": 10,
              "x-dead-letter-exchange": "",
              "x-dead-letter-routing-key": source
            })
          )
          const { take } = yield* reader(source)
          confirmed(yield* send(source, "x"))
          for (let round = 0; round < 3; round++) {
            const { content, properties, settle } = yield* take
            confirmed(
              yield* publish({ purpose: "retries", exchange: "", routingKey: retry, content, properties: properties })
            )
            settle("ack")
          }
          const delivery = yield* take
          assert.deepStrictEqual(deaths(delivery), [
            { count: 3, reason: "expired", queue: retry, exchange: "", "routing-keys": [retry], time: "a time" }
          ])
          assert.isFalse(delivery.redelivered)
        }).pipe(Effect.scoped)
      )

      it.effect(`drops what would go round by itself for ever: ${kind}`, () =>
        Effect.gen(function* () {
          const queue = yield* declared(
            `round-${kind}`,
            ofKind(kind, { "x-message-ttl": 10, "x-dead-letter-exchange": "" })
          )
          confirmed(yield* send(queue, "x"))
          yield* ready(queue, 0)
        })
      )

      it.effect(`keeps the newest when it is full: ${kind}`, () =>
        Effect.gen(function* () {
          const dead = yield* declared(`oldest-${kind}`)
          const queue = yield* declared(
            `newest-${kind}`,
            ofKind(kind, { "x-max-length": 2, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead })
          )
          const { take } = yield* reader(queue, 1)
          yield* sendAll(queue, ["1", "2", "3", "4", "5"])
          yield* ready(dead, 2)
          const buried = yield* drained(dead)
          assert.deepStrictEqual(texts(buried), ["2", "3"])
          assert.deepStrictEqual(
            buried.map(({ properties }) => properties.headers?.["x-first-death-reason"]),
            ["maxlen", "maxlen"]
          )
          assert.deepStrictEqual(texts([yield* take]), ["1"])
          yield* ready(queue, 2)
        }).pipe(Effect.scoped)
      )

      it.effect(`refuses publishes when it is full and told so: ${kind}`, () =>
        Effect.gen(function* () {
          const queue = yield* declared(
            `full-${kind}`,
            ofKind(kind, { "x-max-length": 2, "x-overflow": "reject-publish" })
          )
          const refused = yield* eventually(send(queue, "x"), ({ _tag }) => _tag !== "Confirmed")
          assert.deepInclude(refused, { _tag: "Refused", reason: "nacked" })
          const { messages } = Option.getOrThrow(yield* (yield* Broker).inspect(queue))
          assert.isAtLeast(messages, 2)
          assert.isAtMost(messages, kind === "classic" ? 2 : 4)
          yield* drained(queue)
          assert.deepStrictEqual(yield* eventually(send(queue, "y"), ({ _tag }) => _tag === "Confirmed"), {
            _tag: "Confirmed"
          })
        })
      )

      it.effect(`gives a message without a lifetime to whoever waits for it, or to nobody: ${kind}`, () =>
        Effect.gen(function* () {
          const queue = yield* declared(`instant-${kind}`, ofKind(kind))
          const { arrived, take } = yield* reader(queue, 1)
          confirmed(yield* send(queue, "caught", { expiration: 0 }))
          const caught = yield* take
          confirmed(yield* send(queue, "lost", { expiration: 0 }))
          yield* ready(queue, 0)
          caught.settle("ack")
          confirmed(yield* send(queue, "next"))
          assert.deepStrictEqual(texts([yield* take]), ["next"])
          assert.strictEqual(yield* arrived, 0)
        }).pipe(Effect.scoped)
      )

      it.effect(`tells a consumer that its queue was deleted, and serves it again when it is back: ${kind}`, () =>
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
          assert.isAbove(yield* Deferred.await(resumed), 1)
          confirmed(yield* send(queue, "after"))
          const after = yield* take
          assert.deepStrictEqual([...texts([after]), after.deliveryTag], ["after", 1])
          assert.isAbove(after.epoch, 1)
        }).pipe(Effect.scoped)
      )

      it.effect(`survives a lost connection: what was unsettled comes again, under a new epoch: ${kind}`, () =>
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
          assert.isTrue(first !== undefined && second !== undefined && third !== undefined)
          if (first === undefined || second === undefined || third === undefined) return
          yield* settleAll([second])
          yield* ready(queue, 0)
          // Acknowledgements are gathered for some milliseconds.
          yield* Effect.sleep(30)
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
        }).pipe(Effect.scoped)
      )
    }

    it.effect("gives up on a message that comes back too often: quorum", () =>
      Effect.gen(function* () {
        const dead = yield* declared("limit-dead")
        const queue = yield* declared(
          "limited",
          ofKind("quorum", { "x-delivery-limit": 2, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead })
        )
        const { take } = yield* reader(queue, 1)
        confirmed(yield* send(queue, "x"))
        const seen: Array<unknown> = []
        for (let round = 0; round < 3; round++) {
          const delivery = yield* take
          seen.push([delivery.redelivered, delivery.properties.headers?.["x-delivery-count"]])
          delivery.settle("requeue")
        }
        assert.deepStrictEqual(seen, [
          [false, undefined],
          [true, 1],
          [true, 2]
        ])
        yield* ready(dead, 1)
        const [delivery] = yield* drained(dead)
        assert.strictEqual(delivery?.properties.headers?.["x-first-death-reason"], "delivery_limit")
        assert.isUndefined(delivery?.properties.headers?.["x-delivery-count"])
      }).pipe(Effect.scoped)
    )

    it.effect("serves the highest priority first, puts back into it, and drops it first when it is full", () =>
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
    )

    it.effect("counts bytes", () =>
      Effect.gen(function* () {
        const queue = yield* declared("bytes", { "x-max-length-bytes": 10 })
        yield* sendAll(queue, ["aaaa", "bbbb", "cccc", "d"])
        assert.deepStrictEqual(texts(yield* drained(queue)), ["bbbb", "cccc", "d"])
        yield* sendAll(queue, ["a", "much too much for it"])
        yield* ready(queue, 0)
      })
    )

    it.effect("cancels: nothing more arrives, and what arrived can still be settled", () =>
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
      }).pipe(Effect.scoped)
    )

    it.effect("lets go of a queue that nobody uses, and of one whose last consumer left", () =>
      Effect.gen(function* () {
        const unused = yield* declared("unused", { "x-expires": leased })
        const left = yield* declared("auto", {}, { durable: false, autoDelete: true })
        yield* gone(unused)
        yield* Effect.scoped(reader(left))
        yield* gone(left)
      })
    )

    it.effect("keeps a queue that expires for as long as somebody consumes from it", () =>
      Effect.gen(function* () {
        const used = yield* declared("used", { "x-expires": leased })
        const { cancel } = yield* reader(used)
        yield* Effect.sleep(leased * 3)
        assert.isTrue(Option.isSome(yield* (yield* Broker).inspect(used)))
        yield* cancel
        yield* gone(used)
      }).pipe(Effect.scoped)
    )

    it.effect("survives a receiver that throws", () =>
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
      }).pipe(Effect.scoped)
    )

    it.effect("keeps a stream: everybody reads all of it, from where they like, and acknowledging frees room", () =>
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
              // A stream knows nothing but `ack`: the others must do no harm.
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
        assert.deepInclude(bogus, { operation: "consume", reason: "refused" })
        const own = yield* broker.channel({ prefetch: 1 })
        assert.strictEqual((yield* Effect.flip(own.get(queue))).reason, "refused")
        assert.deepStrictEqual(yield* own.get(yield* declared("no-stream")), Option.none())
      }).pipe(Effect.scoped)
    )

    it.effect("goes on in a stream behind what was settled, after the connection was lost", () =>
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
      }).pipe(Effect.scoped)
    )

    it.effect("refuses a prefetch that AMQP does not have", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        const queue = yield* declared("prefetches")
        for (const prefetch of [0, -1, 1.5, 65_536]) {
          const error = yield* Effect.flip(Effect.scoped(broker.consume({ queue, prefetch, onDelivery: () => {} })))
          assert.deepInclude(error, { operation: "consume", reason: "refused" })
        }
      })
    )

    it.effect("gives a channel of one's own, that ends with the first thing that is refused", () =>
      Effect.gen(function* () {
        const broker = yield* Broker
        const names = yield* Temporary.TemporaryNames
        const queue = yield* declared("own")
        const channel = yield* broker.channel({ prefetch: 2 })
        assert.deepStrictEqual(yield* channel.get(queue), Option.none())
        confirmed(
          yield* channel.publish({ exchange: "", routingKey: queue, content: Buffer.from("x"), properties: {} })
        )
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

    it.effect("tells of the connection, keeps publishes back while there is none, and declares again", () =>
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
        assert.isTrue(Result.isSuccess(yield* Fiber.join(asking)))
        assert.deepStrictEqual(texts(yield* drained(queue)), ["kept"])
        assert.strictEqual(states[0], "Connected")
      }).pipe(Effect.scoped)
    )
  })
