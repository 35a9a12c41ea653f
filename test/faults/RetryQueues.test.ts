import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../src/messaging/topology/RetryPolicy.ts"
import { Broker } from "../../src/services/Broker.ts"
import { eventually } from "../Eventually.ts"
import { letters } from "../messaging/Letters.ts"
import { logged } from "../messaging/Logged.ts"
import { shared } from "../messaging/SampleTopologies.ts"
import * as RabbitmqProcess from "../RabbitmqProcess.ts"

describe.skipIf(!RabbitmqProcess.available)("retry queues of a RabbitMQ that fails", { timeout: 300_000 }, () => {
  it.live.each(["classic", "quorum"])(
    "let a retry out when its queue has it, also where the broker is killed in between: to a %s queue",
    (kind) =>
      Effect.gen(function* () {
        const server = yield* RabbitmqProcess.make()
        yield* Effect.gen(function* () {
          const broker = yield* Broker
          yield* broker.declare(only({ name: source, arguments: { "x-queue-type": kind } }))
          const waiting = yield* retrying(500)
          const sent = new Set<string>()
          for (let round = 0; round < rounds; round++) {
            yield* waiting.publish(many(`${round}`, 2_000), (id) => sent.add(id))
            // the first of them are through, and the others on their way
            yield* eventually(inspected(source), (messages) => messages > 0, "20 seconds")
            yield* server.kill
            yield* server.start
            // a queue without a leader looks empty: so it is asked until everything has come
            yield* eventually(
              Effect.exit(letters(source, ({ body }) => sent.delete(String(body)))).pipe(Effect.map(() => [...sent])),
              (missing) => missing.length === 0,
              "60 seconds"
            )
          }
        }).pipe(Effect.provide(desk(server)))
      }).pipe(Effect.scoped)
  )

  it.live("keep a retry whose queue is not there, over a kill as well, until it is", () =>
    Effect.gen(function* () {
      const server = yield* RabbitmqProcess.make(RabbitmqProcess.offeringSoon)
      yield* Effect.gen(function* () {
        const broker = yield* Broker
        const waiting = yield* retrying(200)
        const sent = new Set<string>()
        yield* waiting.publish(many("t", 100), (id) => sent.add(id))
        yield* eventually(inspected(waiting.queue), (messages) => messages === 0, "20 seconds")
        yield* server.kill
        yield* server.start
        yield* broker.declare(only({ name: source }))
        yield* eventually(inspected(source), (messages) => messages === 100, "30 seconds")
        assert.deepStrictEqual(new Set((yield* letters(source)).map(({ body }) => String(body))), sent)
      }).pipe(Effect.provide(desk(server)))
    }).pipe(Effect.scoped)
  )

  it.live("are classic where the broker's feature flags are not enabled, and work", () =>
    Effect.gen(function* () {
      const server = yield* RabbitmqProcess.make({ RABBITMQ_FEATURE_FLAGS: "" })
      const log = logged()
      yield* Effect.gen(function* () {
        const broker = yield* Broker
        yield* broker.declare(only({ name: source }))
        const waiting = yield* retrying(200)
        assert.strictEqual(waiting.queue, `${source}.retry.200ms`)
        yield* waiting.publish(["t"], () => {})
        yield* eventually(inspected(source), (messages) => messages === 1, "20 seconds")
        assert.match(log.lines().join("\n"), /Retries of tasks\.queue wait in classic queues.*enable_feature_flag all/)
      }).pipe(Effect.provide(desk(server)), Effect.provide(log.layer))
    }).pipe(Effect.scoped)
  )
})

const source = "tasks.queue"

const rounds = Number(process.env["SVC_TEST_KILL_ROUNDS"] ?? 1)

const many = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}-${n}`)

const only = (queue: { readonly name: string; readonly arguments?: { readonly "x-queue-type": string } }) => ({
  exchanges: [],
  queues: [queue],
  bindings: []
})

const desk = (server: RabbitmqProcess.Node) =>
  Layer.provideMerge(
    BrokerClient.layer({ topology: shared() }),
    BrokerAmqp.layer({ url: server.url, name: "svc-test-retries", closeWithin: "500 millis" })
  )

/** The retry queue of that delay, declared as a worker would, and known to a broker that is killed. */
const retrying = Effect.fnUntraced(function* (delay_ms: number) {
  const { ensureRetryInfrastructure, publishRawToQueue } = yield* BrokerClient
  const queues = yield* ensureRetryInfrastructure(source, new RetryPolicy({ delay_ms }))
  const queue = queues.retryQueueOf(delay_ms)
  yield* RabbitmqProcess.writtenDown
  return {
    queue,
    /** All of them at once; `stored` is told of each that was confirmed. */
    publish: (ids: ReadonlyArray<string>, stored: (id: string) => void) =>
      Effect.forEach(
        ids,
        (id) => Effect.map(publishRawToQueue(queue, Buffer.from(JSON.stringify(id))), () => stored(id)),
        { concurrency: "unbounded", discard: true }
      )
  }
})

/** Messages that are ready; none while the broker is not there. */
const inspected = (queue: string) =>
  Effect.flatMap(BrokerClient, ({ inspectQueue }) => inspectQueue(queue)).pipe(
    Effect.map(Option.match({ onNone: () => 0, onSome: ({ messages }) => messages })),
    Effect.orElseSucceed(() => Number.NaN)
  )
