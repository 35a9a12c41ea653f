import { randomUUID } from "node:crypto"
import { isDeepStrictEqual } from "node:util"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Schedule } from "effect"
import fc from "fast-check"
import { inject } from "vitest"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import { InstalledVersion } from "../../layers/drivers/InstalledDriver.ts"
import { BrokerContract, Contract } from "../../layers/testing/index.ts"
import { Broker } from "../../src/services/Broker.ts"
import * as TcpProxy from "../TcpProxy.ts"
import * as TemporaryData from "../TemporaryData.ts"
import { type Program, program, run, type Sight, type Subject } from "./BrokerPrograms.ts"

const { ConnectionFaults } = BrokerContract

const suite = <E>(name: string, layer: Layer.Layer<Broker | BrokerContract.ConnectionFaults, E>) =>
  Contract.register(BrokerContract.suite, { name, layer }, { afterAll, describe, it })

const memory = Layer.effect(
  ConnectionFaults,
  Effect.map(BrokerMemory.BrokerServer, ({ cut, restore }) => ConnectionFaults.of({ cut: cut(), restore }))
).pipe(Layer.provideMerge(BrokerMemory.layerConnection()))

suite("memory", memory.pipe(Layer.provideMerge(BrokerMemory.layerServer())))

const onDisk = BrokerMemory.layerServerOnDisk({ rewriteBytes: 100_000 }).pipe(Layer.provide(TemporaryData.layer))

suite("memory on disk", memory.pipe(Layer.provideMerge(onDisk)))

/** `null`: no RabbitMQ on this machine. */
const server = inject("rabbitmq")

/** Through a proxy, which can be cut. */
const amqp = Layer.unwrap(
  Effect.gen(function* () {
    const url = new URL(server ?? "")
    const { cut, port, restore } = yield* TcpProxy.make({ host: url.hostname, port: Number(url.port || 5672) })
    url.hostname = "127.0.0.1"
    url.port = String(port)
    return Layer.merge(
      Layer.succeed(ConnectionFaults, { cut, restore }),
      BrokerAmqp.layer({ url: Redacted.make(url.href), name: "svc-test-contract", answerWithin: "30 seconds" })
    )
  })
)

describe.skipIf(server === null)("against a server", () => {
  suite("amqp", amqp)
  suite("an unknown version of amqplib", amqp.pipe(Layer.provide(Layer.succeed(InstalledVersion, () => "0.1.0"))))
})

describe.skipIf(server === null)("a random program", () => {
  it.live(
    "has the same history on both",
    () =>
      Effect.gen(function* () {
        const both = yield* Both
        // However slow the machine is, it is enough then. Other programs are for whoever looks for what the model has not.
        const bounds = { numRuns: 20, interruptAfterTimeLimit: 15_000, seed: Number(process.env["SVC_TEST_SEED"] ?? 1) }
        let running: Promise<unknown> = Promise.resolve()
        const one = fc.asyncProperty(program, (given) => {
          const ends = both(given)
          running = ends
          return ends
        })
        yield* Effect.promise(() => fc.assert(one, bounds))
        // at the limit nobody waits for the program under way, which would leave its queues
        yield* Effect.promise(() => running)
      }).pipe(Effect.scoped),
    300_000
  )
})

/** How long the server may take to come to where the model is. */
const comesTo = "20 seconds"

/** Longer than the lifetime of a brief message. */
const lapse = 4

/**
 * Runs a program in memory first, whose sights say what the server must come to: without a guess how long it takes.
 */
const Both = Effect.gen(function* () {
  const memory = yield* BrokerMemory.makeServer()
  const imitation: Subject = {
    broker: yield* memory.connect({ name: "subject" }),
    observer: yield* memory.connect({ name: "observer" }),
    cut: memory.cut("subject"),
    restore: memory.restore
  }
  const proxied = yield* Layer.build(amqp)
  const direct = yield* Layer.build(BrokerAmqp.layer({ url: Redacted.make(server ?? ""), name: "svc-test-observer" }))
  const real: Subject = {
    ...Context.get(proxied, ConnectionFaults),
    broker: Context.get(proxied, Broker),
    observer: Context.get(direct, Broker)
  }
  const promise = Effect.runPromiseWith(yield* Effect.context<never>())
  return (given: Program) =>
    promise(
      Effect.gen(function* () {
        const prefix = `svc-test-${randomUUID()}`
        const history = yield* run(imitation, given, prefix, (look) => Effect.andThen(Effect.sleep(lapse), look))
        const expected = (index: number): Sight | undefined => history[index]
        const came = yield* run(real, given, prefix, (look, index) =>
          look
            .pipe(
              Effect.repeat({
                until: (sight) => isDeepStrictEqual(sight, expected(index)),
                schedule: Schedule.spaced("3 millis")
              }),
              Effect.timeoutOrElse({ duration: comesTo, orElse: () => look })
            )
            .pipe(
              Effect.tap((sight) =>
                Effect.sync(() =>
                  assert.deepStrictEqual(sight, expected(index), JSON.stringify(history.slice(0, index)))
                )
              )
            )
        )
        assert.strictEqual(came.length, history.length)
      })
    )
})
