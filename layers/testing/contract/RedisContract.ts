import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"
import { Effect, Exit, Schedule, Stream } from "effect"
import { Redis, type Reply, type Script } from "../../../src/services/Redis.ts"
import { includes } from "./law/Assert.ts"
import { law, type Suite } from "./law/Law.ts"
import { take } from "./TokenBucket.ts"

const script = (lua: string, step: Script<Reply>["step"]): Script<Reply> => ({
  name: "example",
  lua,
  step,
  decode: (reply) => reply
})

/** The Redis under test. Its `key` returns names that nothing else uses, and the scope deletes these keys. */
const FreshRedis = Effect.gen(function* () {
  const { command, key, run, subscribe } = yield* Redis
  const prefix = `contract:${randomUUID()}:`
  const keys = new Set<string>()
  yield* Effect.addFinalizer(() => Effect.ignore(command("DEL", ...keys)))
  return {
    command,
    run,
    subscribe,
    key: (name: string): string => {
      const fresh = key(prefix + name)
      keys.add(fresh)
      return fresh
    }
  }
})

/** The laws of `Redis`. Each law deletes the keys that it has written. */
export const suite: Suite<Redis> = {
  door: "Redis",
  laws: [
    law(
      "puts one prefix in front of the names of keys and channels",
      Effect.gen(function* () {
        const { key } = yield* Redis
        const prefix = key("")
        assert.notStrictEqual(prefix, "")
        assert.deepStrictEqual(["name", "other:name"].map(key), [`${prefix}name`, `${prefix}other:name`])
      })
    ),

    law(
      "replies as RESP2: text, integers, null, and lists of these",
      Effect.gen(function* () {
        const { command, key } = yield* FreshRedis
        assert.strictEqual(yield* command("SET", key("text"), "naïve ☃ 🚀"), "OK")
        assert.strictEqual(yield* command("get", key("text")), "naïve ☃ 🚀")
        assert.strictEqual(yield* command("GET", key("absent")), null)
        assert.strictEqual(yield* command("HSET", key("hash"), "one", 1, "two", "2"), 2)
        assert.deepStrictEqual(yield* command("hgetall", key("hash")), ["one", "1", "two", "2"])
        assert.deepStrictEqual(yield* command("HMGET", key("hash"), "two", "three"), ["2", null])
        assert.strictEqual(yield* command("ZADD", key("scores"), 1_763_640_000_000, "m"), 1)
        assert.strictEqual(yield* command("ZSCORE", key("scores"), "m"), "1763640000000")
        yield* command("ZADD", key("texts"), 0, "a", 0, "b", 0, "c", 0, "é")
        const counts = [
          ["[b", "[é"],
          ["(b", "(é"],
          ["-", "(b"],
          ["[bb", "+"],
          ["+", "-"]
        ].map(([min = "", max = ""]) => command("ZLEXCOUNT", key("texts"), min, max))
        assert.deepStrictEqual(yield* Effect.all(counts), [3, 1, 1, 2, 0])
        assert.strictEqual(yield* command("XADD", key("stream"), "1-1", "field", "value"), "1-1")
        assert.deepStrictEqual(yield* command("XRANGE", key("stream"), "-", "+"), [["1-1", ["field", "value"]]])
      })
    ),

    law(
      "gives stream entries ids that increase",
      Effect.gen(function* () {
        const { command, key } = yield* FreshRedis
        const add = command("XADD", key("grows"), "MAXLEN", "~", 1_000, "*", "n", 1)
        const ids = yield* Effect.all(Array.from({ length: 50 }, () => add))
        const entries = yield* command("XRANGE", key("grows"), "-", "+")
        assert.deepStrictEqual(
          entries,
          ids.map((id) => [id, ["n", "1"]])
        )
        assert.strictEqual(new Set(ids).size, 50)
      })
    ),

    law(
      "fails with an error that is not retryable when a command is refused",
      Effect.gen(function* () {
        const { command, key } = yield* FreshRedis
        yield* command("RPUSH", key("list"), "item")
        const wrongType = yield* Effect.flip(command("GET", key("list")))
        includes(wrongType, { _tag: "RedisError", operation: "command", retryable: false })
        assert.match(wrongType.message, /^WRONGTYPE /)
        assert.match((yield* Effect.flip(command("SVC.NOSUCH", "x"))).message, /^ERR unknown command 'SVC.NOSUCH'/)
        assert.match((yield* Effect.flip(command("GET"))).message, /^ERR wrong number of arguments for 'get' command/)
      })
    ),

    law(
      "runs a script atomically",
      Effect.gen(function* () {
        const { key, run } = yield* FreshRedis
        const taken = yield* Effect.all(
          Array.from({ length: 30 }, () => run(take, [key("bucket"), key("log")], [50, 3])),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(
          taken.reduce((total, { taken }) => total + taken, 0),
          48
        )
        assert.deepStrictEqual(taken.at(-1), { taken: 0, left: 2, log: ["refused 3", "refused 3", "refused 3"] })
      })
    ),

    law(
      "fails when a command inside of a script is refused, and keeps the writes before it",
      Effect.gen(function* () {
        const { command, key, run } = yield* FreshRedis
        const breaks = script(
          `redis.call("SET", KEYS[1], "done") return redis.call("INCR", KEYS[1])`,
          (call, [name = ""]) => {
            call("SET", name, "done")
            return call("INCR", name)
          }
        )
        const error = yield* Effect.flip(run(breaks, [key("half")], []))
        includes(error, { operation: "script", retryable: false })
        assert.match(error.message, /^ERR value is not an integer or out of range/)
        assert.strictEqual(yield* command("GET", key("half")), "done")
      })
    ),

    law(
      "dies when the script cannot have produced the reply",
      Effect.gen(function* () {
        const { run } = yield* Redis
        const odd = { ...script("return 1", () => 1), decode: () => assert.fail("not mine") }
        const exit = yield* Effect.exit(run(odd, [], []))
        assert.ok(Exit.hasDies(exit))
      })
    ),

    law(
      "returns the replication id to a script that then writes",
      Effect.gen(function* () {
        const { key, run } = yield* FreshRedis
        const named = script(
          `local info = redis.call("INFO", "replication") redis.call("SET", KEYS[1], "x") return info`,
          (call, [name = ""]) => {
            const info = call("INFO", "replication")
            call("SET", name, "x")
            return info
          }
        )
        const first = String(yield* run(named, [key("named")], []))
        assert.match(first, /^master_replid:\w{40}\r$/m)
        assert.strictEqual(yield* run(named, [key("named")], []), first)
      })
    ),

    law(
      "responds to a ping",
      Effect.flatMap(Redis, (redis) => redis.ping)
    ),

    law(
      "expires keys",
      Effect.gen(function* () {
        const { command, key } = yield* FreshRedis
        yield* command("SET", key("brief"), "now", "PX", 30)
        const gone = { until: (reply: Reply) => reply === null, schedule: Schedule.spaced("5 millis") }
        yield* Effect.repeat(command("GET", key("brief")), gone)
        assert.strictEqual(yield* command("PTTL", key("brief")), -2)
      })
    ),

    law(
      "delivers a message that is published as soon as the subscription is active",
      Effect.gen(function* () {
        const { command, key, subscribe } = yield* FreshRedis
        for (let round = 0; round < 25; round++) {
          const received = yield* Effect.scoped(
            Effect.gen(function* () {
              const messages = yield* subscribe(key("ready"))
              yield* command("PUBLISH", key("ready"), round)
              return yield* Stream.runCollect(Stream.take(messages, 1))
            })
          )
          assert.deepStrictEqual(received, [String(round)])
        }
      })
    ),

    law(
      "delivers any text to every subscriber of the channel, in order",
      Effect.gen(function* () {
        const { command, key, subscribe } = yield* FreshRedis
        const messages = ["", "plain", "naïve ☃ 🚀", "line\nbreak", ...Array.from({ length: 100 }, (_, n) => `${n}`)]
        const subscribers = yield* Effect.all([subscribe(key("told")), subscribe(key("told"))])
        const other = yield* subscribe(key("other"))
        yield* Effect.forEach(messages, (message) => command("PUBLISH", key("told"), message))
        yield* command("PUBLISH", key("other"), "else")
        for (const received of subscribers) {
          assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(received, messages.length)), messages)
        }
        assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(other, 1)), ["else"])
      })
    ),

    law(
      "delivers the messages that a script publishes",
      Effect.gen(function* () {
        const { key, run, subscribe } = yield* FreshRedis
        const messages = yield* subscribe(key("scripted"))
        const publish = script(`return redis.call("PUBLISH", KEYS[1], ARGV[1])`, (call, [channel = ""], [text = ""]) =>
          call("PUBLISH", channel, text)
        )
        yield* run(publish, [key("scripted")], ["from a script"])
        assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(messages, 1)), ["from a script"])
      })
    ),

    law(
      "unsubscribes with the last subscriber of a channel, and can subscribe again",
      Effect.gen(function* () {
        const { command, key, subscribe } = yield* FreshRedis
        const kept = yield* subscribe(key("kept"))
        const left = yield* Effect.scoped(
          Effect.gen(function* () {
            const first = yield* subscribe(key("left"))
            yield* Effect.scoped(subscribe(key("left")))
            yield* command("PUBLISH", key("left"), "still here")
            assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(first, 1)), ["still here"])
            return first
          })
        )
        assert.ok(Exit.isFailure(yield* Effect.exit(Stream.runDrain(left))))
        assert.strictEqual(yield* command("PUBLISH", key("left"), "nobody"), 0)
        const again = yield* subscribe(key("left"))
        yield* command("PUBLISH", key("left"), "back")
        yield* command("PUBLISH", key("kept"), "kept")
        assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(again, 1)), ["back"])
        assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(kept, 1)), ["kept"])
      })
    )
  ]
}
