import { cpSync, statSync, truncateSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Option, References } from "effect"
import fc from "fast-check"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import * as DataDirectory from "../../../layers/data/DataDirectory.ts"
import { Broker, type Delivery, type Properties, type Queue } from "../../../src/services/Broker.ts"
import { eventually } from "../../Eventually.ts"
import * as TemporaryData from "../../TemporaryData.ts"

/** A new broker on the directory, until the scope closes. */
const open = (path: string, rewriteBytes?: number) =>
  Effect.map(
    Layer.build(
      Layer.fresh(
        BrokerMemory.layerConnection().pipe(
          Layer.provide(BrokerMemory.layerServerOnDisk({ rewriteBytes })),
          Layer.provide(DataDirectory.layer(path))
        )
      )
    ),
    Context.get(Broker)
  ).pipe(Effect.provideService(References.MinimumLogLevel, "Error"))

const textOf = ({ content }: Pick<Delivery, "content">) => Buffer.from(content).toString()

const publish = (broker: Broker["Service"], queue: string, text: string, properties: Properties = {}) =>
  broker
    .publish({ purpose: "tasks", exchange: "", routingKey: queue, content: Buffer.from(text), properties })
    .pipe(Effect.tap((outcome) => Effect.sync(() => assert.strictEqual(outcome._tag, "Confirmed"))))

const channel = (broker: Broker["Service"]) => broker.channel({ prefetch: 100 })

/** Takes everything from a queue. The messages return when the scope closes. */
const drain = (broker: Broker["Service"], queue: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { get } = yield* channel(broker)
      const found: Array<Delivery> = []
      for (let next = yield* get(queue); Option.isSome(next); next = yield* get(queue)) found.push(next.value)
      return found
    })
  )

const texts = (broker: Broker["Service"], queue: string) =>
  Effect.map(drain(broker, queue), (found) => found.map(textOf))

const deadLettered = { "x-dead-letter-exchange": "dead" }

const declare = (broker: Broker["Service"], queues: ReadonlyArray<Queue>) =>
  broker.declare({
    exchanges: [{ name: "dead", kind: "fanout" }],
    queues: [...queues, { name: "dead" }],
    bindings: [{ exchange: "dead", queue: "dead", routingKey: "" }]
  })

const firstLog = join("broker", "00000001.log")

describe("a broker on disk", () => {
  it.live("has durable queues with their stored messages, and neither acknowledged nor fleeting ones", () =>
    Effect.gen(function* () {
      const root = yield* TemporaryData.path
      const path = join(root, "first")
      const headers = { at: new Date(1_000), bytes: Uint8Array.of(1, 2), big: 2n ** 60n, list: [1, { deep: true }] }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const broker = yield* open(path)
          yield* declare(broker, [
            { name: "work", arguments: deadLettered },
            { name: "quorum", arguments: { "x-queue-type": "quorum", "x-delivery-limit": 1, ...deadLettered } },
            { name: "fleeting", durable: false },
            { name: "gone" }
          ])
          yield* publish(broker, "work", "acknowledged")
          yield* publish(broker, "work", "rejected")
          yield* publish(broker, "work", "unsettled")
          yield* publish(broker, "work", "ready", { headers, messageId: "id" })
          yield* publish(broker, "work", "not persistent", { persistent: false })
          yield* publish(broker, "quorum", "twice delivered", { persistent: false })
          yield* publish(broker, "fleeting", "x")
          yield* publish(broker, "gone", "x")
          yield* broker.remove({ queues: ["gone"] })
          const { get } = yield* channel(broker)
          const take = Effect.map(get("work"), Option.getOrThrow)
          const settled = yield* take
          settled.settle("ack")
          const rejected = yield* take
          rejected.settle("reject")
          yield* take
          Option.getOrThrow(yield* get("quorum"))
          // The copy is what the next process finds after `kill -9`.
          yield* broker.inspect("work")
          cpSync(path, join(root, "second"), { recursive: true })
        })
      )
      const broker = yield* open(join(root, "second"))
      const found = yield* drain(broker, "work")
      assert.deepStrictEqual(
        found.map((one) => [textOf(one), one.redelivered]),
        [
          ["unsettled", true],
          ["ready", false]
        ]
      )
      assert.deepStrictEqual(found[1]?.properties, { persistent: true, messageId: "id", headers })
      assert.deepStrictEqual(yield* texts(broker, "dead"), ["rejected"])
      assert.isTrue(Option.isNone(yield* broker.inspect("fleeting")))
      assert.isTrue(Option.isNone(yield* broker.inspect("gone")))
      const [again] = yield* drain(broker, "quorum")
      assert.strictEqual(again?.properties.headers?.["x-delivery-count"], 1)
      // The drain delivered it a second time, beyond its limit.
      assert.deepStrictEqual(yield* texts(broker, "dead"), ["rejected", "twice delivered"])
    })
  )

  it.live("keeps the times at which messages expire, and the offsets of streams", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      const began = Date.now()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const broker = yield* open(path)
          yield* declare(broker, [
            { name: "delay", arguments: { "x-message-ttl": 2_000, ...deadLettered } },
            { name: "stream", arguments: { "x-queue-type": "stream" } }
          ])
          yield* publish(broker, "delay", "later")
          for (const text of ["zero", "one", "two"]) yield* publish(broker, "stream", text)
        })
      )
      const broker = yield* open(path)
      yield* publish(broker, "stream", "three")
      const read: Array<readonly [unknown, string]> = []
      yield* broker.consume({
        queue: "stream",
        prefetch: 10,
        arguments: { "x-stream-offset": 1 },
        onDelivery: (delivery) => read.push([delivery.properties.headers?.["x-stream-offset"], textOf(delivery)])
      })
      yield* eventually(
        Effect.sync(() => read.length),
        (length) => length === 3,
        "5 seconds"
      )
      assert.deepStrictEqual(read, [
        [1, "one"],
        [2, "two"],
        [3, "three"]
      ])
      assert.deepStrictEqual(yield* texts(broker, "dead"), [])
      yield* eventually(texts(broker, "dead"), (found) => found.length === 1, "5 seconds")
      assert.isAtLeast(Date.now() - began, 2_000)
      assert.isBelow(Date.now() - began, 4_000)
    })
  )

  it.live("keeps dead letters that no queue has taken yet", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      const atLeastOnce = {
        "x-queue-type": "quorum",
        "x-overflow": "reject-publish",
        "x-dead-letter-strategy": "at-least-once",
        "x-dead-letter-exchange": "missing"
      }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const broker = yield* open(path)
          yield* declare(broker, [{ name: "work", arguments: atLeastOnce }])
          yield* publish(broker, "work", "held")
          const { get } = yield* channel(broker)
          Option.getOrThrow(yield* get("work")).settle("reject")
          yield* broker.inspect("work")
        })
      )
      const kept = join(path, firstLog)
      const size = statSync(kept).size
      const broker = yield* open(path)
      assert.deepStrictEqual(yield* texts(broker, "work"), [])
      // It is written once, and not again by the process that took it over.
      assert.strictEqual(statSync(kept).size, size)
    })
  )

  it.live("has everything that was confirmed, wherever after it the log was cut", () =>
    Effect.gen(function* () {
      const root = yield* TemporaryData.path
      const promise = Effect.runPromiseWith(yield* Effect.context<never>())
      const step = fc.record({
        queue: fc.constantFrom("classic", "quorum"),
        what: fc.constantFrom("publish", "publish", "ack", "reject", "leave")
      })
      let round = 0
      const check = (
        steps: ReadonlyArray<{ readonly queue: string; readonly what: string }>,
        where: number,
        rewriteBytes: number | undefined
      ) =>
        Effect.gen(function* () {
          const path = join(root, String(round++))
          const contents: Record<string, ReadonlyArray<string>> = { classic: [], quorum: [], dead: [] }
          const history: Array<{ readonly size: number; readonly contents: Readonly<typeof contents> }> = []
          const sizeNow = () => statSync(join(path, firstLog)).size
          yield* Effect.scoped(
            Effect.gen(function* () {
              const broker = yield* open(path, rewriteBytes)
              yield* declare(broker, [
                { name: "classic", arguments: deadLettered },
                { name: "quorum", arguments: { "x-queue-type": "quorum", ...deadLettered } }
              ])
              if (rewriteBytes === undefined) history.push({ size: sizeNow(), contents: { ...contents } })
              for (const [index, { queue, what }] of steps.entries()) {
                const [first, ...others] = contents[queue] ?? []
                if (what === "publish") {
                  yield* publish(broker, queue, String(index))
                  contents[queue] = [...(contents[queue] ?? []), String(index)]
                } else if (first !== undefined) {
                  yield* Effect.scoped(
                    Effect.gen(function* () {
                      const { get } = yield* channel(broker)
                      const delivery = Option.getOrThrow(yield* get(queue))
                      if (what !== "leave") delivery.settle(what === "ack" ? "ack" : "reject")
                    })
                  )
                  if (what !== "leave") contents[queue] = others
                  if (what === "reject") contents["dead"] = [...(contents["dead"] ?? []), first]
                }
                yield* broker.inspect(queue)
                if (rewriteBytes === undefined) history.push({ size: sizeNow(), contents: { ...contents } })
              }
            })
          )
          let expected: Readonly<typeof contents> = contents
          if (rewriteBytes === undefined) {
            const declared = history[0]?.size ?? 0
            const cut = declared + Math.round(where * ((history.at(-1)?.size ?? 0) - declared))
            truncateSync(join(path, firstLog), cut)
            expected = history.findLast(({ size }) => size <= cut)?.contents ?? contents
          }
          const broker = yield* open(path, rewriteBytes)
          const found: Record<string, ReadonlyArray<string>> = {}
          for (const queue of Object.keys(contents)) found[queue] = yield* texts(broker, queue)
          assert.deepStrictEqual(found, expected)
        }).pipe(Effect.scoped)
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            fc.array(step, { minLength: 1, maxLength: 25 }),
            fc.double({ min: 0, max: 1, noNaN: true }),
            fc.constantFrom(undefined, 400),
            (steps, where, rewriteBytes) => promise(check(steps, where, rewriteBytes))
          ),
          { numRuns: 60 }
        )
      )
    })
  )
})
