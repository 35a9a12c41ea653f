import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import { reading, scanning, summarising } from "../../src/messaging/example/Topologies.ts"
import { declarations } from "../../src/messaging/Topology.ts"
import { Broker } from "../../src/services/Broker.ts"
import { eventually } from "../Eventually.ts"
import * as RunningGateway from "../RunningGateway.ts"

const url = inject("rabbitmq")

describe.skipIf(url === null)("the role messaging, on RabbitMQ", () => {
  it.live("works on the example, is ready, drains and leaves with 0", () =>
    Effect.gen(function* () {
      yield* Effect.addFinalizer(() => Effect.orDie(removed))
      const process = yield* RunningGateway.start({ role: "messaging", environment: { RABBITMQ_URL: url ?? "" } })
      assert.match(process.output(), /^ {2}broker +amqp \(RABBITMQ_URL\)$/m)
      assert.notInclude(process.output(), "database")
      const ready = yield* Effect.promise(() => fetch(`${process.control}/admin-ui/readyz`))
      assert.strictEqual(ready.status, 200)
      yield* eventually(
        Effect.sync(() => process.output()),
        (output) => /The example has summarised book-\d+: 2 chapters, 14 words/.test(output),
        "20 seconds"
      )
      process.signal("SIGTERM")
      assert.strictEqual(yield* Effect.promise(() => process.exited), 0)
    })
  )
})

/** The example's queues have fixed names, also on a broker that others use. */
const removed = Effect.gen(function* () {
  const { remove } = yield* Broker
  const all = [reading, scanning, summarising].map(declarations)
  const worked = all.flatMap(({ queues }) => queues.map(({ name }) => name))
  const books = [0, 1].map((shard) => `svc.example.books.${shard}`)
  const sources = [...new Set([...worked, ...books])]
  yield* remove({
    queues: sources.flatMap((name) => [name, `${name}.dlq`, `${name}.retry.2000ms`]),
    exchanges: [...new Set(all.flatMap(({ exchanges }) => exchanges.map(({ name }) => name)))]
  })
}).pipe(Effect.provide(BrokerAmqp.layer({ url: Redacted.make(url ?? "") })))
