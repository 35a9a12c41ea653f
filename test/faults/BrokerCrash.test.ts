import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Option, Stream } from "effect"
import { Broker, type Connection, type Outcome, type Publication } from "../../src/services/Broker.ts"
import { eventually } from "../Eventually.ts"
import * as RabbitmqProcess from "../RabbitmqProcess.ts"
import * as RunningBroker from "../RunningBroker.ts"

describe.skipIf(!RabbitmqProcess.available)("a RabbitMQ that fails under load", () => {
  it.live(
    "loses nothing that was confirmed when it is killed, and is worked with again when it is back",
    () =>
      Effect.gen(function* () {
        const server = yield* RabbitmqProcess.make()
        yield* Effect.gen(function* () {
          const { consume, declare, publish } = yield* Broker
          const queues = ["classic", "quorum"] as const
          yield* declare({
            exchanges: [],
            queues: queues.map((name) => ({ name, arguments: { "x-queue-type": name } })),
            bindings: []
          })
          yield* RabbitmqProcess.writtenDown
          const received = new Set<string>()
          const twice: Array<string> = []
          let resumedAt = 0
          for (const queue of queues)
            yield* consume({
              queue,
              prefetch: 100,
              onDelivery: (delivery) => {
                const id = new TextDecoder().decode(delivery.content)
                if (received.has(id) && !delivery.redelivered) twice.push(id)
                received.add(id)
                // Not at once, so that deliveries are open when it dies.
                setTimeout(() => delivery.settle("ack"), 5)
              },
              onResumed: () => {
                resumedAt ||= performance.now()
              }
            })

          const outcomes = new Map<string, Outcome>()
          let publishing = true
          // Each with a channel of its own: a quorum queue without a leader holds up the channel that publishes to it.
          const purposes = { classic: "tasks", quorum: "statuses" } as const
          const publisher = (queue: "classic" | "quorum", number: number) =>
            Effect.gen(function* () {
              for (let n = 0; publishing; n++) {
                const id = `${queue} ${number} ${n}`
                outcomes.set(id, yield* publish({ ...to(queue, id), purpose: purposes[queue] }))
              }
            })
          yield* Effect.forEach(queues, (queue) => Effect.forEach(ten, (n) => Effect.forkScoped(publisher(queue, n))))

          yield* eventually(
            Effect.sync(() => received.size),
            (count) => count > 2_000
          )
          yield* server.kill
          const counted = new Map(
            queues.map((queue) => [queue, [...outcomes.keys()].filter((id) => id.startsWith(queue)).length])
          )
          yield* server.launch
          yield* server.open
          const openedAt = performance.now()
          yield* eventually(
            Effect.sync(() => resumedAt),
            (at) => at > 0
          )
          const before = received.size
          yield* eventually(
            Effect.sync(() => received.size),
            (count) => count > before
          )
          const after = performance.now() - openedAt
          for (const queue of queues)
            yield* eventually(
              Effect.sync(() => [...outcomes.keys()].filter((id) => id.startsWith(queue)).length),
              (count) => count > (counted.get(queue) ?? 0) + 500
            )
          publishing = false
          const of = (tag: Outcome["_tag"]) => [...outcomes].filter(([, outcome]) => outcome._tag === tag)
          yield* eventually(
            Effect.sync(() => of("Confirmed").filter(([id]) => !received.has(id)).length),
            (missing) => missing === 0
          )
          const unknown = new Set(of("Unknown").map(([id]) => id))
          // A duplicate that is not marked as one is a message of which nobody knew whether it was stored.
          assert.deepStrictEqual(
            twice.filter((id) => !unknown.has(id)),
            []
          )
          assert.isAbove(unknown.size, 0)
          assert.deepStrictEqual(of("Returned"), [])
          yield* Effect.logInfo(
            `confirmed ${of("Confirmed").length}, unknown ${unknown.size} of which stored ${
              [...unknown].filter((id) => received.has(id)).length
            }, first delivery ${Math.round(after)} ms after the port opened`
          )
          assert.isBelow(after, 15_000)
        }).pipe(Effect.scoped, Effect.provide(RunningBroker.layer({ url: server.url, publishWithin: "30 seconds" })))
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "holds publishes back while it is out of memory, refuses them at their deadline, and says so",
    () =>
      Effect.gen(function* () {
        const server = yield* RabbitmqProcess.make()
        const elapsed = yield* Effect.gen(function* () {
          const { connection, declare, inspect, publish } = yield* Broker
          yield* declare({ exchanges: [], queues: [{ name: "q" }], bindings: [] })
          const states: Array<Connection> = []
          yield* Effect.forkScoped(
            Stream.runForEach(connection, (state) => Effect.sync(() => states.push(state))),
            { startImmediately: true }
          )
          assert.deepStrictEqual(yield* publish(to("q", "before")), { _tag: "Confirmed" })
          yield* server.control("set_vm_memory_high_watermark", "absolute", "1MB")
          // The broker speaks of its alarm to those who publish, and takes no more of their bytes.
          assert.deepInclude(yield* publish(to("q", "under way")), { _tag: "Unknown", reason: "deadline" })
          const blocked = yield* eventually(
            Effect.sync(() => states.at(-1)),
            (state) => state?._tag === "Blocked"
          )
          assert.deepStrictEqual(blocked, { _tag: "Blocked", reason: "low on memory" })
          const [waited, refused] = yield* Effect.timed(publish(to("q", "held back")))
          assert.deepStrictEqual(refused, { _tag: "Refused", reason: "blocked", detail: "low on memory" })
          assert.isAtLeast(Duration.toMillis(waited), 1_900)
          yield* server.control("set_vm_memory_high_watermark", "0.4")
          yield* eventually(
            Effect.sync(() => states.at(-1)?._tag),
            (tag) => tag === "Connected"
          )
          assert.deepStrictEqual(yield* publish(to("q", "after")), { _tag: "Confirmed" })
          // The one under way was stored in the end: that is what unknown means.
          assert.strictEqual(Option.getOrThrow(yield* inspect("q")).messages, 3)
          yield* server.control("set_vm_memory_high_watermark", "absolute", "1MB")
          yield* publish(to("q", "under way"))
          return performance.now()
        }).pipe(Effect.scoped, Effect.provide(RunningBroker.layer({ url: server.url, publishWithin: "2 seconds" })))
        // Closing does not wait for a broker that reads nothing.
        assert.isBelow(performance.now() - elapsed, 10_000)
      }).pipe(Effect.scoped),
    240_000
  )
})

const ten = Array.from({ length: 10 }, (_, n) => n)

const to = (queue: string, id: string): Publication => ({
  purpose: "tasks",
  exchange: "",
  routingKey: queue,
  content: new TextEncoder().encode(id),
  properties: {}
})
