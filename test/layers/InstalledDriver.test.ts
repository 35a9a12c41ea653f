import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { InstalledVersion, select } from "../../layers/drivers/InstalledDriver.ts"
import { Broker, type Settled } from "../../src/services/Broker.ts"
import { Redis } from "../../src/services/Redis.ts"
import { eventually } from "../Eventually.ts"
import * as RunningBroker from "../RunningBroker.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"

const choice = { internals: "internals", publicApi: "public API", slower: "slow" }

/** A logger, and the lines that it got. */
const capture = () => {
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(({ message }) => {
    lines.push([message].flat().join("; "))
  })
  return { lines, logged: Logger.layer([logger]) }
}

describe("the installed version of a driver", () => {
  it.effect.each(["amqplib", "ioredis"] as const)("is one whose internals are known: %s", (driver) =>
    Effect.gen(function* () {
      const { lines, logged } = capture()
      assert.strictEqual(yield* Effect.provide(select(driver, choice), logged), "internals")
      assert.isEmpty(lines)
    })
  )

  it.effect.each([undefined, "2.3.10", "2.4.0"])("leads to the public API where it is %s", (version) =>
    Effect.gen(function* () {
      const { lines, logged } = capture()
      const chosen = Effect.provideService(select("amqplib", choice), InstalledVersion, () => version)
      assert.strictEqual(yield* Effect.provide(chosen, logged), "public API")
      const named = `amqplib ${version ?? "of unknown version"}`
      assert.deepStrictEqual(lines, [
        `${named} is installed, but only other versions are fully supported, so its slower public API is used: slow; install amqplib 2.3.1`
      ])
    })
  )
})

describe("an unknown version", () => {
  const unknown = Layer.succeed(InstalledVersion, () => "0.1.0")

  it.live.skipIf(RunningBroker.server === null)(
    "of amqplib is logged once, however many messages are published, returned, consumed and settled",
    () => {
      const { lines, logged } = capture()
      return Effect.gen(function* () {
        const { consume, inspect, publish } = yield* Broker
        const queue = yield* RunningBroker.queue()
        const settled: Array<Settled> = []
        const properties = { headers: { at: new Date(0), list: [1, "two"] }, timestamp: new Date(1_000) }
        const outcomes = yield* Effect.forEach(
          [queue, RunningBroker.name("nowhere"), queue],
          (routingKey) =>
            publish({ purpose: "tasks", exchange: "", routingKey, content: Buffer.from("text"), properties }),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          outcomes.map(({ _tag }) => _tag),
          ["Confirmed", "Returned", "Confirmed"]
        )
        yield* Effect.scoped(
          Effect.andThen(
            consume({
              queue,
              prefetch: 1,
              onDelivery: (delivery) => {
                assert.deepStrictEqual(delivery.properties, { ...properties, persistent: true })
                settled.push(delivery.settle("ack"))
              }
            }),
            eventually(
              Effect.sync(() => settled),
              ({ length }) => length === 2
            )
          )
        )
        assert.deepStrictEqual(settled, ["requested", "requested"])
        assert.strictEqual((yield* inspect(queue))._tag, "Some")
        assert.lengthOf(lines, 1)
        assert.match(lines[0] ?? "", /^amqplib 0\.1\.0 is installed, but .* public API is used: a publish /)
      }).pipe(Effect.scoped, Effect.provide(RunningBroker.layer()), Effect.provide([unknown, logged]))
    }
  )

  it.live.skipIf(TemporaryPrefix.server === null)("of ioredis is logged once, however many commands are sent", () => {
    const { lines, logged } = capture()
    return Effect.gen(function* () {
      const { command, key } = yield* Redis
      yield* command("HSET", key("hash"), "field", "ö")
      assert.deepStrictEqual(yield* command("hgetall", key("hash")), ["field", "ö"])
      assert.isTrue((yield* Effect.flip(command("INCR", key("hash"), "too many"))).message.length > 0)
      assert.lengthOf(lines, 1)
      assert.match(lines[0] ?? "", /^ioredis 0\.1\.0 is installed, but .* public API is used: a command /)
    }).pipe(Effect.provide(TemporaryPrefix.layer), Effect.provide([unknown, logged]))
  })
})
