import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Redacted, Schedule, type Scope, Stream } from "effect"
import * as RedisIoredis from "../../layers/RedisIoredis.ts"
import { take } from "../../layers/testing/contract/TokenBucket.ts"
import { Redis, type RedisError } from "../../src/services/Redis.ts"
import { eventually } from "../Eventually.ts"
import { logged } from "../messaging/Logged.ts"
import * as RedisProcess from "../RedisProcess.ts"
import * as TcpProxy from "../TcpProxy.ts"

describe.skipIf(!RedisProcess.available)("RedisIoredis: faults", () => {
  it.live("fails what was in flight when its connection is killed, and comes back by itself", () =>
    Effect.gen(function* () {
      const server = yield* RedisProcess.make()
      yield* Effect.gen(function* () {
        const { command, ping, run } = yield* Redis
        yield* RedisProcess.ask(server.url, "CLIENT", "PAUSE", "60000", "WRITE")
        const waiting = yield* Effect.forkChild(Effect.flip(command("SET", "k", "v")), { startImmediately: true })
        yield* untilBlocked(server.url)
        yield* RedisProcess.ask(server.url, "CLIENT", "KILL", "TYPE", "normal")
        assert.deepInclude(yield* Fiber.join(waiting), { operation: "command", retryable: true })
        yield* RedisProcess.ask(server.url, "CLIENT", "UNPAUSE")
        yield* Effect.retry(ping, Schedule.spaced("10 millis"))
        assert.strictEqual(yield* command("GET", "k"), null)
        assert.strictEqual((yield* run(take, ["b", "l"], [5, 1])).left, 4)
      }).pipe(Effect.provide(connected(server.url)))
    }).pipe(Effect.scoped)
  )

  it.live("fails at once while the server is down, and runs scripts on the one that comes back without them", () =>
    Effect.gen(function* () {
      const server = yield* RedisProcess.make()
      yield* Effect.gen(function* () {
        const { command, ping, run } = yield* Redis
        assert.strictEqual((yield* run(take, ["b", "l"], [5, 1])).left, 4)
        yield* server.kill
        yield* Effect.repeat(Effect.isSuccess(ping), { until: (answered) => !answered })
        const [elapsed, error] = yield* Effect.timed(Effect.flip(command("GET", "k")))
        assert.isTrue(error.retryable)
        assert.isBelow(Duration.toMillis(elapsed), 900)
        assert.isTrue((yield* Effect.flip(run(take, ["b", "l"], [5, 1]))).retryable)
        yield* server.start
        yield* Effect.retry(ping, Schedule.spaced("10 millis"))
        assert.strictEqual((yield* run(take, ["b", "l"], [5, 1])).left, 4)
      }).pipe(Effect.provide(connected(server.url)))
    }).pipe(Effect.scoped)
  )

  it.live('takes the refusals of a full server for "not now"', () =>
    Effect.gen(function* () {
      const server = yield* RedisProcess.make()
      yield* Effect.gen(function* () {
        const { command, run } = yield* Redis
        yield* RedisProcess.ask(server.url, "CONFIG", "SET", "maxmemory", "1")
        for (const refused of [command("SET", "k", "v"), run(take, ["b", "l"], [5, 1])]) {
          const { message, retryable } = yield* Effect.flip<unknown, RedisError, never>(refused)
          assert.deepStrictEqual([retryable, message.split(" ", 1)], [true, ["OOM"]])
        }
        yield* RedisProcess.ask(server.url, "CONFIG", "SET", "maxmemory", "0")
        assert.strictEqual((yield* run(take, ["b", "l"], [5, 1])).left, 4)
      }).pipe(Effect.provide(connected(server.url)))
    }).pipe(Effect.scoped)
  )

  it.live("gives a frozen server one second, whoever asks when, and never sends a script twice", () =>
    Effect.gen(function* () {
      const server = yield* RedisProcess.make()
      const proxy = yield* TcpProxy.make({ host: "127.0.0.1", port: server.port })
      yield* Effect.gen(function* () {
        const { command, ping, run } = yield* Redis
        yield* run(take, ["b", "l"], [100, 1])
        yield* proxy.freeze
        const ask = Effect.timed(Effect.flip(run(take, ["b", "l"], [100, 1])))
        for (const [elapsed, error] of yield* Effect.all([ask, ask, Effect.delay(ask, "300 millis")], {
          concurrency: 3
        })) {
          assert.isTrue(error.retryable)
          assert.isBelow(Duration.toMillis(elapsed), 4_000)
        }
        yield* proxy.thaw
        yield* Effect.retry(ping, Schedule.spaced("10 millis"))
        assert.isAtLeast(Number(yield* command("GET", "b")), 96)
      }).pipe(Effect.provide(connected(through(proxy))))
    }).pipe(Effect.scoped)
  )

  it.live("fails every subscription when the connection is killed, and can subscribe again", () =>
    Effect.gen(function* () {
      const server = yield* RedisProcess.make()
      yield* Effect.gen(function* () {
        const { command, subscribe } = yield* Redis
        const subscribed = yield* Effect.all([subscribe("one"), subscribe("one"), subscribe("two")])
        yield* RedisProcess.ask(server.url, "CLIENT", "KILL", "TYPE", "pubsub")
        for (const messages of subscribed) {
          assert.deepInclude(yield* Effect.flip(Stream.runDrain(messages)), { operation: "subscribe", retryable: true })
        }
        const again = yield* subscribe("one")
        yield* command("PUBLISH", "one", "back")
        assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(again, 1)), ["back"])
      }).pipe(Effect.scoped, Effect.provide(connected(server.url)))
    }).pipe(Effect.scoped)
  )

  it.live("notices a server that froze while nothing is published", () =>
    Effect.gen(function* () {
      const server = yield* RedisProcess.make()
      const proxy = yield* TcpProxy.make({ host: "127.0.0.1", port: server.port })
      yield* Effect.gen(function* () {
        const messages = yield* Effect.flatMap(Redis, ({ subscribe }) => subscribe("quiet"))
        yield* proxy.freeze
        const [elapsed, error] = yield* Effect.timed(Effect.flip(Stream.runDrain(messages)))
        assert.isTrue(error.retryable)
        assert.isBelow(Duration.toMillis(elapsed), 6_000)
      }).pipe(Effect.scoped, Effect.provide(connected(through(proxy))))
    }).pipe(Effect.scoped)
  )

  it.live("keeps one connection for commands, and one more while anything is subscribed", () =>
    Effect.gen(function* () {
      const server = yield* RedisProcess.make()
      const connections = Effect.map(
        RedisProcess.ask(server.url, "CLIENT", "LIST"),
        (list) => String(list).split("name=svc-runtime").length - 1
      )
      yield* Effect.gen(function* () {
        const { subscribe } = yield* Redis
        assert.strictEqual(yield* connections, 1)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* Effect.all([subscribe("a"), subscribe("b"), subscribe("c")], { concurrency: 3 })
            assert.strictEqual(yield* connections, 2)
          })
        )
        yield* Effect.repeat(connections, { until: (count) => count === 1, schedule: Schedule.spaced("5 millis") })
      }).pipe(Effect.provide(connected(server.url)))
      yield* Effect.repeat(connections, { until: (count) => count === 0, schedule: Schedule.spaced("5 millis") })
    }).pipe(Effect.scoped)
  )

  it.live("closes in time when the server hangs", () =>
    Effect.gen(function* () {
      const server = yield* RedisProcess.make()
      const proxy = yield* TcpProxy.make({ host: "127.0.0.1", port: server.port })
      const [elapsed] = yield* Effect.gen(function* () {
        const { subscribe } = yield* Redis
        yield* subscribe("channel")
        yield* proxy.freeze
      }).pipe(Effect.scoped, Effect.provide(connected(through(proxy))), Effect.timed)
      assert.isBelow(Duration.toMillis(elapsed), 10_000)
    }).pipe(Effect.scoped)
  )

  describe("start", () => {
    const password = "s3cr3t-Passw0rd"

    it.live.each(["redis://:PW@127.0.0.1:1", "redis://:PW@[127.0.0.1", "redis://:PW%@127.0.0.1:1"])(
      "fails typed and without the password: %s",
      (url) =>
        Effect.gen(function* () {
          const error = yield* startFailure(url.replace("PW", password))
          assert.strictEqual(error._tag, "RedisError")
          assert.notInclude(inspect(error, { depth: 10 }), password)
        }).pipe(Effect.timeout("5 seconds"))
    )

    it.live("fails typed when the password is wrong, and does not repeat it", () =>
      Effect.gen(function* () {
        const server = yield* RedisProcess.make("--requirepass", "right")
        const error = yield* startFailure(`redis://:${password}@127.0.0.1:${server.port}`)
        assert.isFalse(error.retryable)
        assert.match(error.message, /^WRONGPASS /)
        assert.notInclude(inspect(error, { depth: 10 }), password)
        // nor is the right one waited for
        const url = Redacted.make(`redis://:${password}@127.0.0.1:${server.port}`)
        const waiting = yield* Effect.flip(Effect.provide(Redis, waits(url)))
        assert.match(waiting.message, /^WRONGPASS /)
      }).pipe(Effect.scoped)
    )

    it.live("waits for a server that is not there yet, where it is told to", () =>
      Effect.gen(function* () {
        const server = yield* RedisProcess.make()
        yield* server.kill
        yield* Effect.gen(function* () {
          const { command, ping, subscribe } = yield* Redis
          for (const refused of [ping, subscribe("channel")]) {
            assert.isTrue((yield* Effect.flip<unknown, RedisError, Scope.Scope>(refused)).retryable)
          }
          yield* server.start
          yield* Effect.retry(ping, Schedule.spaced("10 millis"))
          const messages = yield* subscribe("channel")
          yield* command("PUBLISH", "channel", "there")
          assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(messages, 1)), ["there"])
        }).pipe(Effect.scoped, Effect.provide(waits(server.url)))
      }).pipe(Effect.scoped)
    )

    it.live("waits for a server that does not answer yet, where it is told to, and says what it refuses then", () => {
      const log = logged()
      return Effect.gen(function* () {
        const server = yield* RedisProcess.make("--requirepass", "right")
        const proxy = yield* TcpProxy.make({ host: "127.0.0.1", port: server.port })
        yield* proxy.freeze
        const url = Redacted.make(`redis://:${password}@127.0.0.1:${proxy.port}`)
        yield* Effect.gen(function* () {
          const { ping } = yield* Redis
          yield* proxy.thaw
          yield* eventually(Effect.sync(log.lines), (lines) => lines.some((line) => line.includes("WRONGPASS")))
          yield* RedisProcess.ask(
            Redacted.make(`redis://:right@127.0.0.1:${server.port}`),
            "CONFIG",
            "SET",
            "requirepass",
            password
          )
          yield* Effect.retry(ping, Schedule.spaced("10 millis"))
        }).pipe(Effect.provide(waits(url)))
        assert.lengthOf(
          log.lines().filter((line) => line.includes("WRONGPASS")),
          1
        )
        assert.notInclude(log.lines().join("\n"), password)
      }).pipe(Effect.scoped, Effect.provide(log.layer))
    })

    it.live("fails typed when the server accepts and never answers", () =>
      Effect.gen(function* () {
        const server = yield* RedisProcess.make()
        const proxy = yield* TcpProxy.make({ host: "127.0.0.1", port: server.port })
        yield* proxy.freeze
        const error = yield* startFailure(`redis://127.0.0.1:${proxy.port}`)
        assert.isTrue(error.retryable)
      }).pipe(Effect.scoped, Effect.timeout("5 seconds"))
    )
  })
})

const connected = (url: Redacted.Redacted) => RedisIoredis.layer({ url, prefix: "svc-test:" })

const waits = (url: Redacted.Redacted) => RedisIoredis.layer({ url, prefix: "svc-test:", whenUnreachable: "wait" })

const through = (proxy: TcpProxy.TcpProxy) => Redacted.make(`redis://127.0.0.1:${proxy.port}`)

const startFailure = (url: string) => Redis.pipe(Effect.provide(connected(Redacted.make(url))), Effect.flip)

const untilBlocked = (url: Redacted.Redacted) =>
  RedisProcess.ask(url, "INFO", "clients").pipe(
    Effect.repeat({
      until: (clients) => String(clients).includes("blocked_clients:1"),
      schedule: Schedule.spaced("5 millis")
    })
  )
