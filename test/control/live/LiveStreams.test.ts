import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, type Fiber, Layer, Schema, Scope, Stream } from "effect"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import { ControlError } from "../../../src/control/api/schema/Errors.ts"
import type { Scope as OperatorScope } from "../../../src/control/api/schema/Security.ts"
import * as LivePosition from "../../../src/control/live/LivePosition.ts"
import { type LiveRequest, LiveStreams, type Options } from "../../../src/control/live/LiveStreams.ts"
import { LiveFeed, layer as liveFeed } from "../../../src/live/LiveFeed.ts"
import { type Topic, topics } from "../../../src/live/Topics.ts"
import { Redis, type RedisError } from "../../../src/services/Redis.ts"
import { eventually } from "../../Eventually.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"

const suite = (name: string, redisLayer: Layer.Layer<Redis, RedisError>) => {
  /** Processes that share one Redis. */
  const installation = Effect.map(Layer.build(redisLayer), (redis) => ({
    redis: Context.get(redis, Redis),
    process: Effect.map(Layer.build(Layer.fresh(liveFeed).pipe(Layer.provide(Layer.succeedContext(redis)))), (feed) =>
      Context.get(feed, LiveFeed)
    ),
    control: (options?: Options) =>
      Effect.map(
        Layer.build(LiveStreams.layer(options).pipe(Layer.provide(Layer.succeedContext(redis)))),
        Context.get(LiveStreams)
      )
  }))

  describe.concurrent(name, () => {
    it.live("shows each once to a listener that goes from one process to another", () =>
      Effect.gen(function* () {
        const { control, process } = yield* installation
        const [first, second] = [yield* control(), yield* control()]
        const [one, other] = [yield* process, yield* process]
        const listener = yield* listen(first, { topics: ["requests", "limits"] })
        yield* listener.isReady
        for (let at = 0; at < 30; at++) {
          const feed = at % 2 === 0 ? one : other
          feed.requests.add("started", () => ({ at }))
          if (at % 10 === 0) feed.limits.add("crossed_50", () => ({ at }))
          assert.isFalse(feed.tasks.isFollowed)
        }
        yield* listener.has("requests", "started", 30)
        yield* listener.close
        for (let at = 0; at < 7; at++) one.requests.add("started", () => ({ at }))
        const resumed = yield* listen(second, { topics: ["requests", "limits"], lastEventId: listener.lastId() })
        other.requests.add("started", () => ({ at: 7 }))
        yield* resumed.has("requests", "started", 8)
        yield* resumed.isReady
        assert.deepStrictEqual([resumed.count("limits", "crossed_50"), resumed.events("reset")], [0, []])
        assert.strictEqual(listener.count("limits", "crossed_50"), 3)
      }).pipe(Effect.scoped)
    )

    it.live("resets a listener whose position is gone, or is none, and goes on from now", () =>
      Effect.gen(function* () {
        const { control, process, redis } = yield* installation
        const streams = yield* control()
        const feed = yield* process
        const listener = yield* listen(streams, { topics: ["tasks"] })
        yield* listener.isReady
        for (const lastEventId of ["not a position", LivePosition.encode(new Map([["tasks", 12]]))]) {
          const lost = yield* listen(streams, { topics: ["tasks"], lastEventId })
          yield* lost.until(() => lost.events("reset").length === 1)
          assert.deepInclude(lost.events("reset")[0], { topics: ["tasks"] })
          feed.tasks.add("status", () => ({}))
          yield* lost.has("tasks", "status", 1)
        }
        // Redis has lost its data
        yield* redis.command("DEL", redis.key("{live}:tasks:number"), redis.key("{live}:tasks:batches"))
        yield* listener.until(() => listener.events("reset").length === 1, "10 seconds")
        const before = listener.count("tasks", "status")
        yield* eventually(
          Effect.sync(() => feed.tasks.isFollowed),
          (isFollowed) => isFollowed
        )
        feed.tasks.add("status", () => ({}))
        yield* listener.has("tasks", "status", before + 1)
      }).pipe(Effect.scoped)
    )

    it.live("folds what a stalled listener does not read, disconnects it, and slows nobody down", () =>
      Effect.gen(function* () {
        const { control, process } = yield* installation
        const streams = yield* control({ stalledSeconds: 3 })
        const feed = yield* process
        const stalled = yield* listen(streams, { topics: ["requests"] }, { readsUntilReady: true })
        const listener = yield* listen(streams, { topics: ["requests"] })
        yield* Effect.all([listener.isReady, stalled.isReady])
        for (let turn = 1; turn <= 5; turn++) {
          for (let at = 0; at < 100; at++) feed.requests.add("ended", () => ({ at }))
          yield* listener.has("requests", "ended", 100 * turn)
        }
        assert.isAtMost(Math.max(...listener.lives.map((text) => text.length)), 4_000)
        assert.strictEqual(stalled.count("requests", "ended"), 0)
        yield* stalled.hasEnded
      }).pipe(Effect.scoped)
    )

    it.live("ends streams whose credentials are no longer valid, and all of them at shutdown", () =>
      Effect.gen(function* () {
        const { control } = yield* installation
        const streams = yield* control({ mostStreams: 4, mostStreamsPerHolder: 2 })
        let scopes: Effect.Effect<ReadonlyArray<OperatorScope>, ControlError> = Effect.succeed(["*"])
        const credentials = { id: "revoked", scopes: Effect.suspend(() => scopes) }
        const revoked = yield* listen(streams, { topics: ["queues"], tokenId: "a", credentials })
        const kept = yield* listen(streams, { topics: ["queues"], tokenId: "a" })
        const refused = yield* Effect.flip(Effect.scoped(streams.open({ ...request, tokenId: "a" })))
        assert.strictEqual(refused.code, "too_many_live_streams")
        let checks = 0
        scopes = Effect.suspend(() => {
          checks++
          return Effect.fail(new ControlError("store_unavailable", "The database does not respond."))
        })
        yield* revoked.until(() => checks > 0)
        assert.deepStrictEqual(revoked.events("end"), [])
        scopes = Effect.succeed(["usage:read"])
        yield* revoked.hasEnded
        assert.lengthOf(revoked.events("end"), 1)
        assert.deepStrictEqual(kept.events("end"), [])
        yield* streams.drain
        yield* kept.hasEnded
        assert.match(kept.text(), /retry: \d+\n/)
        assert.strictEqual((yield* Effect.flip(Effect.scoped(streams.open(request)))).code, "gateway_overloaded")
      }).pipe(Effect.scoped)
    )
  })
}

suite("Live streams (memory)", RedisMemory.layer())
describe.skipIf(TemporaryPrefix.server === null)("on a server", () => {
  suite("Live streams (redis)", TemporaryPrefix.layer)
})

const request: LiveRequest = {
  topics,
  lastEventId: undefined,
  address: undefined,
  tokenId: null,
  credentials: { id: "valid", scopes: Effect.succeed(["*"]) }
}

const decodeEvent = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))
const decodeLive = Schema.decodeUnknownSync(
  Schema.fromJsonString(
    Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Struct({ count: Schema.Int })))
  )
)

/** A client that reads everything, or nothing after it is ready. */
const listen = Effect.fnUntraced(function* (
  streams: LiveStreams["Service"],
  asked: Partial<LiveRequest>,
  { readsUntilReady = false } = {}
) {
  let text = ""
  let hasEnded = false
  const scope = yield* Scope.fork(yield* Effect.scope)
  const frames = yield* Scope.provide(streams.open({ ...request, ...asked }), scope)
  const fiber: Fiber.Fiber<unknown, unknown> = yield* Stream.runForEach(frames, (chunk) => {
    text += Buffer.from(chunk).toString()
    return readsUntilReady && text.includes("event: ready") ? Effect.never : Effect.void
  }).pipe(
    Effect.onExit(() =>
      Effect.sync(() => {
        hasEnded = true
      })
    ),
    Effect.forkIn(scope)
  )
  const dataOf = (name: string) => [...text.matchAll(new RegExp(`event: ${name}\\ndata: (.*)\\n\\n`, "g"))]
  const texts = (name: string) => dataOf(name).map(([, data = ""]) => data)
  const count = (topic: Topic, kind: string) =>
    texts("live").reduce((sum, data) => sum + (decodeLive(data)[topic]?.[kind]?.count ?? 0), 0)
  const until = (holds: () => boolean, within?: "10 seconds") =>
    eventually(
      Effect.sync(() => ({ holds: holds(), text: text.slice(-500) })),
      ({ holds }) => holds,
      within
    )
  return {
    fiber,
    text: () => text,
    count,
    until,
    events: (name: string) => texts(name).map((data) => decodeEvent(data)),
    get lives() {
      return texts("live")
    },
    lastId: () => [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1],
    isReady: until(() => text.includes("event: ready")),
    has: (topic: Topic, kind: string, number: number) =>
      Effect.map(
        until(() => count(topic, kind) >= number),
        () => assert.strictEqual(count(topic, kind), number)
      ),
    hasEnded: until(() => hasEnded, "10 seconds"),
    close: Scope.close(scope, Exit.void)
  }
})
