import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import {
  BrokerContract,
  BrokerMemory,
  Contract,
  DatabaseContract,
  EgressContract,
  RedisContract,
  RedisMemory,
  UpstreamContract
} from "../../../layers/testing/index.ts"
import * as UpstreamHttp from "../../../layers/UpstreamHttp.ts"
import { Broker } from "../../../src/services/Broker.ts"
import { Egress, EgressError } from "../../../src/services/Egress.ts"
import { Redis, RedisError } from "../../../src/services/Redis.ts"
import { type Sink, Upstream } from "../../../src/services/Upstream.ts"

describe("a contract suite", () => {
  it.each([BrokerContract, DatabaseContract, EgressContract, RedisContract, UpstreamContract])(
    "has laws of different names: $suite.door",
    ({ suite }) => {
      const names = suite.laws.map(({ name }) => name)
      assert.isAbove(names.length, 0)
      assert.lengthOf(new Set(names), names.length)
    }
  )

  it.effect("ends a law that waits for ever, and says so", () =>
    Effect.gen(function* () {
      const began = yield* Deferred.make<void>()
      const { check } = Contract.law("waits", Effect.andThen(Deferred.succeed(began, undefined), Effect.never))
      const running = yield* Effect.forkChild(Effect.flip(check))
      yield* Deferred.await(began)
      yield* TestClock.adjust("10 minutes")
      const broken = yield* Fiber.join(running)
      assert.deepInclude(broken, { law: "waits", message: "The law did not end within 90 seconds" })
    })
  )

  it.effect("is interrupted with its test", () =>
    Effect.gen(function* () {
      const { check } = Contract.law("waits", Effect.never)
      const running = yield* Effect.forkChild(check, { startImmediately: true })
      yield* Fiber.interrupt(running)
      const exit = yield* Fiber.await(running)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
    })
  )
})

describe("register", () => {
  it.effect("builds a variant once for all laws, runs each law in a test, and releases the variant", () =>
    Effect.gen(function* () {
      const events: Array<string> = []
      const tests = new Map<string, () => Promise<void>>()
      const afterAll: Array<() => Promise<void>> = []
      class Door extends Context.Service<Door, string>()("test/Door") {}
      const layer = Layer.effect(
        Door,
        Effect.acquireRelease(
          Effect.sync(() => {
            events.push("built")
            return "open"
          }),
          () => Effect.sync(() => events.push("released"))
        )
      )
      const failure = new Error("closed")
      const laws = [
        Contract.law(
          "holds",
          Effect.flatMap(Door, (state) => Effect.sync(() => events.push(state)))
        ),
        Contract.law("breaks", Effect.andThen(Door, Effect.fail(failure)))
      ]
      Contract.register(
        { door: "Door", laws },
        { name: "mine", layer },
        {
          describe: (name, define) => {
            events.push(name)
            define()
          },
          it: (name, run) => tests.set(name, run),
          afterAll: (run) => afterAll.push(run)
        }
      )
      const rejections = yield* Effect.forEach(tests, ([name, run]) =>
        Effect.promise(() =>
          run().then(
            () => [name],
            (error: unknown) => [name, error]
          )
        )
      )
      assert.deepStrictEqual(rejections, [["holds"], ["breaks", failure]])
      yield* Effect.promise(() => Promise.all(afterAll.map((run) => run())))
      assert.deepStrictEqual(events, ["Door: mine", "built", "open", "released"])
    })
  )
})

/** Returns the names of the laws that a variant breaks, among those whose names match. */
const broken = <R, E>({ laws }: Contract.Suite<R>, among: RegExp, variant: Layer.Layer<R, E>) =>
  Effect.forEach(
    laws.filter(({ name }) => among.test(name)),
    ({ check }) => Effect.exit(check)
  ).pipe(
    Effect.map((exits) => exits.flatMap((exit) => (Exit.isFailure(exit) ? [Cause.squash(exit.cause)] : [])).map(lawOf)),
    Effect.provide(variant)
  )

const lawOf = (error: unknown): unknown => (error instanceof Contract.LawBroken ? error.law : error)

describe("the laws name the fault of a variant", () => {
  it.live("a broker that loses replyTo", () =>
    Effect.gen(function* () {
      const losing = Layer.effect(
        Broker,
        Effect.map(Broker, (broker) => ({
          ...broker,
          publish: ({ properties: { replyTo: _, ...properties }, ...publication }) =>
            broker.publish({ ...publication, properties })
        }))
      ).pipe(Layer.provide(BrokerMemory.layerConnection()))
      const faults = Layer.effect(
        BrokerContract.ConnectionFaults,
        Effect.map(BrokerMemory.BrokerServer, ({ cut, restore }) => ({ cut: cut(), restore }))
      )
      const variant = Layer.merge(losing, faults).pipe(Layer.provide(BrokerMemory.layerServer()))
      assert.deepStrictEqual(yield* broken(BrokerContract.suite, /deliver|publish|lost connection/, variant), [
        "delivers every property, every kind of header, and any bytes unchanged"
      ])
    })
  )

  it.live("a Redis whose errors are all retryable", () =>
    Effect.gen(function* () {
      const hopeful = Layer.effect(
        Redis,
        Effect.map(Redis, ({ command, ...redis }) => ({
          ...redis,
          command: (name, ...args) =>
            Effect.mapError(
              command(name, ...args),
              ({ cause, operation }) => new RedisError({ operation, cause, retryable: true })
            )
        }))
      ).pipe(Layer.provide(RedisMemory.layer({ prefix: "contract:" })))
      assert.deepStrictEqual(yield* broken(RedisContract.suite, /./, hopeful), [
        "fails with an error that is not retryable when a command is refused"
      ])
    })
  )

  it.live("an upstream that writes header names in upper case", () =>
    Effect.gen(function* () {
      const raising = (sink: Sink): Sink => ({
        ...sink,
        head: (status, headers) =>
          sink.head(
            status,
            headers.map((text, at) => (at % 2 === 0 ? text.toUpperCase() : text))
          )
      })
      const variant = Layer.effect(
        Upstream,
        Effect.map(Upstream, ({ exchange, exchangeUnsafe }) => ({
          exchange: (request, sink) => exchange(request, raising(sink)),
          exchangeUnsafe: (request, sink, done) => exchangeUnsafe(request, raising(sink), done)
        }))
      ).pipe(Layer.provide(UpstreamHttp.layer), Layer.merge(UpstreamContract.layerTarget))
      assert.deepStrictEqual(yield* broken(UpstreamContract.suite, /: models$|parts|stopped/, variant), [
        "passes the status, headers and bytes of a response unchanged: models"
      ])
    })
  )

  it.live("an egress over the global fetch", () =>
    Effect.gen(function* () {
      const variant = Layer.succeed(Egress, {
        fetch: ({ url }) =>
          Effect.tryPromise({
            try: async (signal) => {
              const response = await fetch(url, { signal })
              const body = new Uint8Array(await response.arrayBuffer())
              return { status: response.status, headers: Object.fromEntries(response.headers), body }
            },
            catch: (cause) => new EgressError({ reason: "unreachable", message: "It failed.", cause })
          })
      })
      assert.deepStrictEqual(yield* broken(EgressContract.suite, /bytes as they came|redirect/, variant), [
        "returns the status, folded headers, and the bytes as they came",
        "follows no redirect"
      ])
    })
  )
})
