import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import { readTopology, scanTopology, summaryTopology } from "../../src/example/Topologies.ts"
import { declarations } from "../../src/messaging/topology/Topology.ts"
import { Broker } from "../../src/services/Broker.ts"
import { eventually } from "../Eventually.ts"
import * as RunningBroker from "../RunningBroker.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as TcpProxy from "../TcpProxy.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"

const url = inject("rabbitmq")

/** Redis, for as long as the scope. */
const redis = Effect.map(TemporaryPrefix.make, (prefix) => ({
  REDIS_URL: TemporaryPrefix.server ?? "",
  REDIS_KEY_PREFIX: prefix
}))

describe.skipIf(url === null || TemporaryPrefix.server === null)("the role messaging, on RabbitMQ and Redis", () => {
  it.live("works on the example, is ready, drains and leaves with 0", () =>
    Effect.gen(function* () {
      yield* Effect.addFinalizer(() => Effect.orDie(removed))
      const process = yield* RunningGateway.start({
        role: "messaging",
        environment: { RABBITMQ_URL: url ?? "", ...(yield* redis) }
      })
      assert.match(process.output(), /^ {2}broker +amqp \(RABBITMQ_URL\)$/m)
      assert.notInclude(process.output(), "database")
      const ready = Effect.promise(() => fetch(`${process.control}/admin-ui/readyz`))
      yield* eventually(ready, ({ status }) => status === 200)
      yield* eventually(
        Effect.sync(() => process.output()),
        (output) => /The example has summarised book-\d+: 2 chapters, 14 words/.test(output),
        "60 seconds"
      )
      process.signal("SIGTERM")
      assert.strictEqual(yield* Effect.promise(() => process.exited), 0)
    })
  )

  it.live.each(["broker", "Redis"] as const)(
    "waits for a %s that starts after it, and is not ready meanwhile",
    (late) =>
      Effect.gen(function* () {
        yield* Effect.addFinalizer(() => Effect.orDie(removed))
        const proxy = yield* TcpProxy.make(late === "Redis" ? redisTarget : RunningBroker.target())
        yield* proxy.cut
        const environment = { RABBITMQ_URL: url ?? "", ...(yield* redis) }
        const process = yield* RunningGateway.start({
          role: "messaging",
          environment:
            late === "Redis"
              ? { ...environment, REDIS_URL: `redis://127.0.0.1:${proxy.port}` }
              : { ...environment, RABBITMQ_URL: Redacted.value(RunningBroker.through(proxy)) }
        })
        const readiness = Effect.promise(() => fetch(`${process.control}/admin-ui/readyz`)).pipe(
          Effect.map(({ status }) => status)
        )
        assert.strictEqual(yield* readiness, 503)
        assert.include(process.output(), `${late === "Redis" ? late : "RabbitMQ"} cannot be reached`)
        yield* proxy.restore
        yield* eventually(readiness, (status) => status === 200, "60 seconds")
        process.signal("SIGTERM")
        assert.strictEqual(yield* Effect.promise(() => process.exited), 0)
      }).pipe(Effect.scoped)
  )
})

const redisTarget = {
  host: new URL(TemporaryPrefix.server ?? "redis://127.0.0.1").hostname,
  port: Number(new URL(TemporaryPrefix.server ?? "redis://127.0.0.1").port || 6379)
}

/** The example's queues have fixed names, also on a broker that others use. */
const removed = Effect.gen(function* () {
  const { remove } = yield* Broker
  const all = [readTopology, scanTopology, summaryTopology].map(declarations)
  const worked = all.flatMap(({ queues }) => queues.map(({ name }) => name))
  const books = [0, 1].map((shard) => `svc.example.books.${shard}`)
  const sources = [...new Set([...worked, ...books])]
  yield* remove({
    queues: sources.flatMap((name) => [name, `${name}.dlq`, `${name}.retry.2000ms.quorum`]),
    exchanges: [...new Set(all.flatMap(({ exchanges }) => exchanges.map(({ name }) => name)))]
  })
}).pipe(Effect.provide(BrokerAmqp.layer({ url: Redacted.make(url ?? "") })))
