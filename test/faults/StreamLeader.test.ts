import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import { Broker, type Outcome } from "../../src/services/Broker.ts"
import { eventually } from "../Eventually.ts"
import * as RabbitmqProcess from "../RabbitmqProcess.ts"

/** For `rabbitmqctl eval`. */
const leader = "amqqueue:get_pid(hd([Q || Q <- rabbit_amqqueue:list(), amqqueue:get_type(Q) =:= rabbit_stream_queue]))"

const stream = Effect.flatMap(Broker, ({ declare }) =>
  declare({
    exchanges: [],
    queues: [{ name: "stream", arguments: { "x-queue-type": "stream" } }],
    bindings: [{ exchange: "statuses", queue: "stream", routingKey: "" }]
  })
)

const published = Effect.fnUntraced(function* (exchange: string, id: string, expected?: Outcome["_tag"]) {
  const { publish } = yield* Broker
  const content = Buffer.from(id)
  const outcome = yield* publish({ purpose: "statuses", exchange, routingKey: "", content, properties: {} })
  if (expected !== undefined) assert.strictEqual(outcome._tag, expected)
  return outcome
})

/**
 * Before 4.0, RabbitMQ hands on to the next leader of a stream what the one before had not written, by the numbers of the
 * channel, and counts by those of the stream (rabbitmq/rabbitmq-server#12236). Where the channel has counted further, it
 * takes what follows for duplicates, and confirms it without writing it.
 */
describe.skipIf(!RabbitmqProcess.available)("a RabbitMQ whose stream gets another leader", () => {
  /** What makes the channel count further than the stream. */
  const before: Readonly<Record<string, Effect.Effect<unknown, unknown, Broker>>> = {
    "the broker returned some": Effect.andThen(
      Effect.forEach(["a", "b", "c"], (id) => published("statuses", id, "Returned")),
      stream
    ),
    "others went to another exchange": Effect.gen(function* () {
      const { declare } = yield* Broker
      yield* stream
      yield* declare({
        exchanges: [{ name: "others", kind: "fanout" }],
        queues: [{ name: "others" }],
        bindings: [{ exchange: "others", queue: "others", routingKey: "" }]
      })
      yield* Effect.forEach(["a", "b", "c"], (id) => published("others", id, "Confirmed"))
    })
  }
  for (const [what, skewing] of Object.entries(before)) {
    it.live(
      `holds every status that was confirmed, also where ${what}`,
      () =>
        Effect.gen(function* () {
          const server = yield* RabbitmqProcess.make()
          yield* Effect.gen(function* () {
            const { declare } = yield* Broker
            yield* declare({ exchanges: [{ name: "statuses", kind: "fanout" }], queues: [], bindings: [] })
            yield* skewing
            yield* RabbitmqProcess.writtenDown
            const confirmed: Array<string> = []
            const publish = (id: string) =>
              Effect.map(published("statuses", id), ({ _tag }) => void (_tag === "Confirmed" && confirmed.push(id)))

            yield* server.control("eval", `sys:suspend(${leader}).`)
            const underWay = yield* Effect.forkScoped(
              Effect.forEach(["1", "2", "3"], publish, { concurrency: "unbounded" })
            )
            // they have to be with the leader when it ends
            yield* Effect.sleep("300 millis")
            yield* server.control("eval", `exit(${leader}, kill).`)
            yield* Effect.forEach(
              Array.from({ length: 20 }, (_, n) => String(n + 4)),
              publish,
              { concurrency: 4 }
            )
            yield* Fiber.join(underWay)
            assert.isAtLeast(confirmed.length, 20)

            const { consume } = yield* Broker
            const found = new Set<string>()
            yield* consume({
              queue: "stream",
              prefetch: 100,
              arguments: { "x-stream-offset": "first" },
              onDelivery: ({ content, settle }) => {
                found.add(Buffer.from(content).toString())
                settle("ack")
              }
            })
            yield* eventually(
              Effect.sync(() => confirmed.filter((id) => !found.has(id))),
              (lost) => lost.length === 0
            )
          }).pipe(
            Effect.provide(BrokerAmqp.layer({ url: server.url, name: "fault-test", publishWithin: "10 seconds" }))
          )
        }).pipe(Effect.scoped),
      { timeout: 300_000 }
    )
  }
})
