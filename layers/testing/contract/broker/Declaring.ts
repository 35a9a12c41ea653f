import assert from "node:assert/strict"
import { Effect, Option, Stream } from "effect"
import { Broker, type Queue as Declared, type Fields } from "../../../../src/services/Broker.ts"
import { includes } from "../law/Assert.ts"
import { type BrokerLaw, brokerLaw } from "./BrokerLaw.ts"
import { atLeastOnce, declared, type Kind, ofKind, only, ready, sendAll } from "./Messages.ts"
import * as Temporary from "./TemporaryNames.ts"

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
  ["quorum", { "x-dead-letter-strategy": "at-least-once" }],
  ["quorum", { "x-message-ttl": 5, "x-dead-letter-exchange": "", ...atLeastOnce }],
  ["stream", { "x-max-length-bytes": 1_000_000, "x-max-age": "1h" }],
  ["classic", { "x-consumer-timeout": "abc", "x-no-such": 1 }],
  ["quorum", { "x-consumer-timeout": "abc", "x-no-such": 1 }]
]

/** Laws of declarations. */
export const laws: ReadonlyArray<BrokerLaw> = [
  brokerLaw(
    "returns its product and version, and responds to a ping",
    Effect.gen(function* () {
      const broker = yield* Broker
      yield* broker.ping
      const { product, version } = yield* broker.server
      assert.match(product, /^RabbitMQ/)
      assert.match(version, /^\d+\.\d+\.\d+/)
      assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(broker.connection, 1)), [{ _tag: "Connected" }])
    })
  ),

  brokerLaw(
    "declares a queue, counts its messages, and removes it, even if it does not exist",
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
  ),

  brokerLaw(
    "refuses a name that AMQP cannot carry",
    Effect.gen(function* () {
      const broker = yield* Broker
      const name = "n".repeat(300)
      const errors = yield* Effect.all([
        Effect.flip(broker.inspect(name)),
        Effect.flip(broker.declare(only({ name }))),
        Effect.flip(broker.declare({ exchanges: [{ name, kind: "topic" }], queues: [], bindings: [] })),
        Effect.flip(broker.examine({ queue: { name } })),
        Effect.flip(broker.remove({ queues: [name] }))
      ])
      for (const { message, reason } of errors) {
        assert.strictEqual(reason, "refused")
        assert.match(message, /255/)
      }
    })
  ),

  brokerLaw(
    "examines a queue and an exchange without declaring them",
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
  ),

  ...refusedArguments.map(([kind, fields, words]) =>
    brokerLaw(
      `refuses to declare: ${kind} ${JSON.stringify(fields)}`,
      Effect.gen(function* () {
        const error = yield* Effect.flip(declared("refused", ofKind(kind, fields)))
        includes(error, { _tag: "BrokerError", operation: "declare", reason: "mismatch" })
        assert.match(error.message, words)
      })
    )
  ),

  brokerLaw(
    "refuses a stream that is not durable",
    Effect.gen(function* () {
      const error = yield* Effect.flip(declared("fleeting", ofKind("stream"), { durable: false }))
      assert.strictEqual(error.reason, "mismatch")
      assert.match(error.message, /invalid property 'non-durable' for queue/)
    })
  ),

  brokerLaw(
    "accepts the arguments that RabbitMQ accepts, and those that RabbitMQ does not know",
    Effect.gen(function* () {
      const broker = yield* Broker
      for (const [index, [kind, fields]] of acceptedArguments.entries()) {
        const name = yield* declared(`accepted-${index}`, ofKind(kind, fields))
        yield* broker.declare(only({ name, arguments: ofKind(kind, fields) }))
        yield* broker.remove({ queues: [name] })
      }
    })
  ),

  brokerLaw(
    "compares the arguments that RabbitMQ knows on a second declaration, and ignores others",
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
          differs("compared-2", { "x-message-ttl": 5_000, "x-expires": 60_000 }, { arguments: { "x-max-length": 3 } }),
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
  ),

  brokerLaw(
    "stops at the first declaration that is refused, and does not make the later ones",
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
  ),

  brokerLaw(
    "fails to declare and to consume with the reason: missing or reserved names",
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
]
