import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted, Schedule } from "effect"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as RedisIoredis from "../../layers/RedisIoredis.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { Redis } from "../../src/services/Redis.ts"
import * as StatusHub from "../../src/status/hub/StatusHub.ts"
import * as RedisStatusStore from "../../src/status/store/RedisStatusStore.ts"
import { StatusStore } from "../../src/status/store/StatusStore.ts"
import { eventually } from "../Eventually.ts"
import * as RedisProcess from "../RedisProcess.ts"
import { event } from "../status/Events.ts"
import * as TcpProxy from "../TcpProxy.ts"
import * as FaultyStatuses from "./FaultyStatuses.ts"

const topology = FaultyStatuses.topology(true)

const ids = (count: number, from = 0) => Array.from({ length: count }, (_, n) => `e${from + n}`)

/**
 * Twenty events are in the Redis that there will be, with a bookmark behind them; forty more are not, and are lost before
 * the bookmark is written again.
 */
const losing = <E, R>(
  redisUrl: Redacted.Redacted,
  keep: Effect.Effect<unknown, E, R>,
  lose: Effect.Effect<unknown, E, R>
) =>
  Effect.gen(function* () {
    const { publishStatus } = yield* BrokerClient
    const { command, key } = yield* Redis
    const { history } = yield* StatusStore
    const bookmark = command("GET", key(`svc:hub:{${topology.status.queue}}`))
    const hub = yield* StatusHub.make({ idleRetrySeconds: 0.1 })
    yield* Effect.forkScoped(hub.run)
    yield* Effect.forEach(ids(20), (id) => publishStatus(event("t", id)))
    yield* eventually(bookmark, (found) => String(found).startsWith("19 "))
    yield* keep
    yield* Effect.forEach(ids(40, 20), (id) => publishStatus(event("t", id)))
    yield* eventually(history("t"), ({ newest }) => newest === 60)
    yield* lose
    yield* publishStatus(event("t", "last"))
    const all = [...ids(60), "last"]
    const stored = Effect.retry(history("t"), Schedule.spaced("20 millis"))
    const { events } = yield* eventually(stored, ({ newest }) => newest >= all.length)
    assert.deepStrictEqual(events.map(({ eventId }) => eventId).toSorted(), all.toSorted())
    yield* hub.stop
  }).pipe(Effect.scoped, Effect.provide(world(redisUrl)))

const world = (redisUrl: Redacted.Redacted) =>
  Layer.provideMerge(
    Layer.merge(BrokerClient.layer({ topology }), RedisStatusStore.layer(FaultyStatuses.kept)),
    Layer.merge(
      BrokerMemory.layer(),
      RedisIoredis.layer({ url: redisUrl, prefix: FaultyStatuses.prefix, deadline: "5 seconds" })
    )
  )

describe.skipIf(!RedisProcess.available)("a Redis that has lost its last writes", { timeout: 120_000 }, () => {
  it.live("holds everything of the stream again: after a crash, up to its snapshot", () =>
    Effect.gen(function* () {
      const redis = yield* RedisProcess.make()
      yield* losing(redis.url, RedisProcess.ask(redis.url, "SAVE"), Effect.andThen(redis.kill, redis.start))
    }).pipe(Effect.scoped)
  )

  it.live("holds everything of the stream again: after a failover to a replica that lagged", () =>
    Effect.gen(function* () {
      const [one, other] = yield* Effect.all([RedisProcess.make(), RedisProcess.make()], { concurrency: 2 })
      const target = { host: "127.0.0.1", port: one.port }
      const proxy = yield* TcpProxy.make(target)
      const follows = Effect.gen(function* () {
        yield* RedisProcess.ask(other.url, "REPLICAOF", "127.0.0.1", String(one.port))
        // from here on it gets nothing more
        yield* eventually(RedisProcess.ask(other.url, "INFO", "replication"), (info) =>
          /master_link_status:up/.test(String(info))
        )
        yield* RedisProcess.ask(other.url, "REPLICAOF", "NO", "ONE")
      })
      const failover = Effect.gen(function* () {
        yield* proxy.cut
        target.port = other.port
        yield* proxy.restore
      })
      yield* losing(Redacted.make(`redis://127.0.0.1:${proxy.port}`), follows, failover)
    }).pipe(Effect.scoped)
  )

  it.live("has a hub for a user without INFO, which warns of it once and notices a bookmark that is gone", () =>
    Effect.gen(function* () {
      const redis = yield* RedisProcess.make()
      const rights = ["on", ">secret", "~*", "&*", "+@all", "-@dangerous"]
      yield* RedisProcess.ask(redis.url, "ACL", "SETUSER", "careful", ...rights)
      const url = Redacted.make(`redis://careful:secret@127.0.0.1:${redis.port}`)
      const refused = yield* Effect.flip(
        Effect.flatMap(Redis, ({ command }) => command("INFO", "replication")).pipe(Effect.provide(world(url)))
      )
      assert.match(refused.message, /NOPERM/)
      const logged: Array<string> = []
      const logger = Logger.make(({ message }) => void logged.push(String(message)))
      const lose = RedisProcess.ask(redis.url, "FLUSHDB")
      yield* losing(url, Effect.void, lose).pipe(Effect.provide(Logger.layer([logger])))
      assert.lengthOf(
        logged.filter((line) => /The Redis user may not run INFO, .*\+info/.test(line)),
        1
      )
    }).pipe(Effect.scoped)
  )
})
