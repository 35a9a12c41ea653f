import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import { Broker } from "../../src/services/Broker.ts"
import { DeadLetterStore } from "../../src/status/DeadLetterStore.ts"
import { eventually } from "../Eventually.ts"
import * as RabbitmqProcess from "../RabbitmqProcess.ts"
import { drained, start, stores } from "../status/DeadLetterServer.ts"
import { deadLetter } from "../status/DeadLetters.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"

describe.skipIf(!RabbitmqProcess.available || TemporaryPrefix.server === null)("a replay job and a broker", () => {
  it.live(
    "that is killed meanwhile: each message arrives once, or is named as unknown",
    () =>
      Effect.gen(function* () {
        const server = yield* RabbitmqProcess.make()
        const doors = Layer.merge(TemporaryPrefix.layer, BrokerAmqp.layer({ url: server.url, name: "svc-test" }))
        yield* Effect.gen(function* () {
          const store = yield* DeadLetterStore
          const { declare } = yield* Broker
          yield* declare({ exchanges: [], queues: [{ name: "source" }], bindings: [] })
          const total = 1_000
          yield* Effect.forEach(
            Array.from({ length: total }, (_, n) => n),
            (n) => store.record(deadLetter(n, { source_queue_name: "source" })),
            { concurrency: 64 }
          )
          const { get, post } = yield* start({}, { worker: { window: 64, perSecond: 1_000 } })
          const { body: job } = yield* post("/dlq/replays", { filter: { reason: "handler_error" } })
          const path = `/dlq/replays/${job.replay_id}`
          yield* eventually(get(path), ({ body }) => body.replayed >= 200)
          yield* server.kill
          const { body: alone, status } = yield* post("/dlq/messages/id-0/replay")
          assert.include([503, 504], status, JSON.stringify(alone))
          yield* eventually(get("/dlq/queues"), ({ body }) => body.queues[0]?.verdict === "no_answer")
          yield* server.start
          const { body: after } = yield* eventually(get(path), ({ body }) => body.state === "finished", "60 seconds")
          const arrived = new Array<number>(total).fill(0)
          for (const { content } of yield* drained("source")) {
            const n: number = JSON.parse(Buffer.from(content).toString()).n
            arrived[n] = (arrived[n] ?? 0) + 1
          }
          const inDoubt = yield* everyUnknown(get)
          for (const [n, times] of arrived.entries()) {
            if (inDoubt.has(`id-${n}`)) assert.isAtMost(times, 1, `id-${n}`)
            else assert.strictEqual(times, 1, `id-${n}`)
          }
          assert.strictEqual(after.failed, 0)
          assert.strictEqual(after.replayed + after.unknown + after.skipped, total)
          const named = after.problems.filter(({ outcome }: { outcome: string }) => outcome === "unknown")
          assert.strictEqual(named.length, after.unknown)
          assert.isTrue(named.every(({ dlq_id }: { dlq_id: string }) => inDoubt.has(dlq_id)))
        }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
      }).pipe(Effect.scoped),
    180_000
  )
})

const everyUnknown = Effect.fnUntraced(function* (get: Effect.Success<ReturnType<typeof start>>["get"]) {
  const { body } = yield* get("/dlq/messages?state=replay_unknown&limit=200")
  return new Set<string>(body.items.map(({ dlq_id }: { dlq_id: string }) => dlq_id))
})
