import { assert, layer as describeWith } from "@effect/vitest"
import { Effect, Exit, type Layer, Schedule, Stream } from "effect"
import { Redis, type Reply, type Script } from "../../src/services/Redis.ts"

/** Takes from a bucket of tokens; says what is left, or when it will be full again. */
export const take: Script<{ readonly taken: number; readonly left: number; readonly log: ReadonlyArray<string> }> = {
  name: "take",
  lua: `
    local left = tonumber(redis.call("GET", KEYS[1]) or ARGV[1])
    local wanted = tonumber(ARGV[2])
    if wanted > left then
      redis.call("RPUSH", KEYS[2], "refused " .. ARGV[2])
      redis.call("LTRIM", KEYS[2], -3, -1)
      return {0, left, redis.call("LRANGE", KEYS[2], 0, -1)}
    end
    redis.call("SET", KEYS[1], left - wanted, "PX", 60000)
    redis.call("RPUSH", KEYS[2], "took " .. ARGV[2])
    redis.call("LTRIM", KEYS[2], -3, -1)
    return {wanted, left - wanted, redis.call("LRANGE", KEYS[2], 0, -1)}`,
  step: (call, [bucket = "", log = ""], [full = "", text = ""]) => {
    const left = Number(call("GET", bucket) ?? full)
    const wanted = Number(text)
    const enough = wanted <= left
    if (enough) call("SET", bucket, left - wanted, "PX", 60_000)
    call("RPUSH", log, `${enough ? "took" : "refused"} ${text}`)
    call("LTRIM", log, -3, -1)
    return [enough ? wanted : 0, enough ? left - wanted : left, call("LRANGE", log, 0, -1)]
  },
  decode: (reply) => {
    const [taken, left, log] = Array.isArray(reply) ? reply : []
    assert.isNumber(taken)
    assert.isNumber(left)
    assert.isArray(log)
    return { taken, left, log: log.map(String) }
  }
}

const script = (lua: string, step: Script<Reply>["step"]): Script<Reply> => ({
  name: "example",
  lua,
  step,
  decode: (reply) => reply
})

/** What every `Redis` promises, on the real clock. */
export const suite = <E>(name: string, layer: Layer.Layer<Redis, E>) =>
  describeWith(layer, { excludeTestServices: true })(`Redis: ${name}`, (it) => {
    it.effect("names keys and channels with the deployment's prefix", () =>
      Effect.gen(function* () {
        const { key } = yield* Redis
        assert.match(key("name"), /^svc-test-.+:name$/)
      })
    )

    it.effect("answers as RESP2: text, whole numbers, nothing, and lists of these", () =>
      Effect.gen(function* () {
        const { command, key } = yield* Redis
        assert.strictEqual(yield* command("SET", key("text"), "naïve ☃ 🚀"), "OK")
        assert.strictEqual(yield* command("get", key("text")), "naïve ☃ 🚀")
        assert.strictEqual(yield* command("GET", key("absent")), null)
        assert.strictEqual(yield* command("HSET", key("hash"), "one", 1, "two", "2"), 2)
        assert.deepStrictEqual(yield* command("hgetall", key("hash")), ["one", "1", "two", "2"])
        assert.deepStrictEqual(yield* command("HMGET", key("hash"), "two", "three"), ["2", null])
        assert.strictEqual(yield* command("ZADD", key("scores"), 1_763_640_000_000, "m"), 1)
        assert.strictEqual(yield* command("ZSCORE", key("scores"), "m"), "1763640000000")
        assert.strictEqual(yield* command("XADD", key("stream"), "1-1", "field", "value"), "1-1")
        assert.deepStrictEqual(yield* command("XRANGE", key("stream"), "-", "+"), [["1-1", ["field", "value"]]])
      })
    )

    it.effect("gives stream entries ids that only grow", () =>
      Effect.gen(function* () {
        const { command, key } = yield* Redis
        const add = command("XADD", key("grows"), "MAXLEN", "~", 1_000, "*", "n", 1)
        const ids = yield* Effect.all(Array.from({ length: 50 }, () => add))
        const entries = yield* command("XRANGE", key("grows"), "-", "+")
        assert.deepStrictEqual(
          entries,
          ids.map((id) => [id, ["n", "1"]])
        )
        assert.strictEqual(new Set(ids).size, 50)
      })
    )

    it.effect("fails typed and for good when a command is refused", () =>
      Effect.gen(function* () {
        const { command, key } = yield* Redis
        yield* command("RPUSH", key("list"), "item")
        const wrongType = yield* Effect.flip(command("GET", key("list")))
        assert.deepInclude(wrongType, { _tag: "RedisError", operation: "command", retryable: false })
        assert.match(wrongType.message, /^WRONGTYPE /)
        assert.match((yield* Effect.flip(command("SVC.NOSUCH", "x"))).message, /^ERR unknown command 'SVC.NOSUCH'/)
        assert.match((yield* Effect.flip(command("GET"))).message, /^ERR wrong number of arguments for 'get' command/)
      })
    )

    it.effect("runs a script as one step, whoever else runs it", () =>
      Effect.gen(function* () {
        const { key, run } = yield* Redis
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
    )

    it.effect("fails typed when a command within a script is refused, and keeps what was done before it", () =>
      Effect.gen(function* () {
        const { command, key, run } = yield* Redis
        const breaks = script(
          `redis.call("SET", KEYS[1], "done") return redis.call("INCR", KEYS[1])`,
          (call, [name = ""]) => {
            call("SET", name, "done")
            return call("INCR", name)
          }
        )
        const error = yield* Effect.flip(run(breaks, [key("half")], []))
        assert.deepInclude(error, { operation: "script", retryable: false })
        assert.match(error.message, /^ERR value is not an integer or out of range/)
        assert.strictEqual(yield* command("GET", key("half")), "done")
      })
    )

    it.effect("treats a reply that the script cannot give as a defect", () =>
      Effect.gen(function* () {
        const { run } = yield* Redis
        const odd = { ...script("return 1", () => 1), decode: () => assert.fail("not mine") }
        const exit = yield* Effect.exit(run(odd, [], []))
        assert.isTrue(Exit.hasDies(exit))
      })
    )

    it.effect("names the history of its data to a script that goes on to write", () =>
      Effect.gen(function* () {
        const { key, run } = yield* Redis
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
    )

    it.effect("answers a ping", () => Effect.flatMap(Redis, (redis) => redis.ping))

    it.effect("expires what it was told to", () =>
      Effect.gen(function* () {
        const { command, key } = yield* Redis
        yield* command("SET", key("brief"), "now", "PX", 30)
        const gone = { until: (reply: Reply) => reply === null, schedule: Schedule.spaced("5 millis") }
        yield* Effect.repeat(command("GET", key("brief")), gone)
        assert.strictEqual(yield* command("PTTL", key("brief")), -2)
      })
    )

    it.effect("receives what is published as soon as the subscription succeeded", () =>
      Effect.gen(function* () {
        const { command, key, subscribe } = yield* Redis
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
    )

    it.effect("delivers to every subscriber, in order, whatever the text, and to no other channel", () =>
      Effect.gen(function* () {
        const { command, key, subscribe } = yield* Redis
        const messages = ["", "plain", "naïve ☃ 🚀", "line\nbreak", ...Array.from({ length: 100 }, (_, n) => `${n}`)]
        const subscribers = yield* Effect.all([subscribe(key("told")), subscribe(key("told"))])
        const other = yield* subscribe(key("other"))
        yield* Effect.forEach(messages, (message) => command("PUBLISH", key("told"), message))
        yield* command("PUBLISH", key("other"), "else")
        for (const received of subscribers) {
          assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(received, messages.length)), messages)
        }
        assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(other, 1)), ["else"])
      }).pipe(Effect.scoped)
    )

    it.effect("delivers what a script publishes", () =>
      Effect.gen(function* () {
        const { key, run, subscribe } = yield* Redis
        const messages = yield* subscribe(key("scripted"))
        const publish = script(`return redis.call("PUBLISH", KEYS[1], ARGV[1])`, (call, [channel = ""], [text = ""]) =>
          call("PUBLISH", channel, text)
        )
        yield* run(publish, [key("scripted")], ["from a script"])
        assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(messages, 1)), ["from a script"])
      }).pipe(Effect.scoped)
    )

    it.effect("leaves a channel with its last subscriber, and can subscribe again", () =>
      Effect.gen(function* () {
        const { command, key, subscribe } = yield* Redis
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
        assert.isTrue(Exit.isFailure(yield* Effect.exit(Stream.runDrain(left))))
        assert.strictEqual(yield* command("PUBLISH", key("left"), "nobody"), 0)
        const again = yield* subscribe(key("left"))
        yield* command("PUBLISH", key("left"), "back")
        yield* command("PUBLISH", key("kept"), "kept")
        assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(again, 1)), ["back"])
        assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(kept, 1)), ["kept"])
      }).pipe(Effect.scoped)
    )
  })
