import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, References } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { Broker } from "../../src/services/Broker.ts"
import { RedisError } from "../../src/services/Redis.ts"
import * as StatusHub from "../../src/status/hub/StatusHub.ts"
import * as RedisStatusStore from "../../src/status/store/RedisStatusStore.ts"
import { StatusStore } from "../../src/status/store/StatusStore.ts"
import { eventually } from "../Eventually.ts"
import { shared } from "../messaging/SampleTopologies.ts"
import { event } from "./Events.ts"

/** What happens to a store while a hub uses it, one for each event that it is given, again and again. */
const mood: fc.Arbitrary<string> = fc.constantFrom("takes", "takes", "slow", "refuses", "takes and fails")

const happening: fc.Arbitrary<string> = fc.constantFrom("say", "say", "say", "drop a", "drop b", "stop a", "pause")

const tasks = ["t", "u", "v"]

/** It fails no longer after so many questions: each failure costs a pause. */
const failing = 30

/** An event that waited behind one that was interrupted went to the store before it was interrupted itself. */
const overtaken: [Array<string>, Array<string>] = [["refuses"], ["say", "say", "drop b", "drop a", "say", "drop a"]]

describe("StatusHub: a model of two hubs, with a store and connections that fail", () => {
  for (const streams of [true, false]) {
    it.effect(`${streams ? "stream" : "queue"}: every event is stored once, whatever happens in whatever order`, () =>
      Effect.gen(function* () {
        const promise = Effect.runPromiseWith(yield* Effect.context<never>())
        const holds = fc.asyncProperty(
          fc.array(mood, { minLength: 1, maxLength: 12 }),
          fc.array(happening, { minLength: 5, maxLength: 25 }),
          (moods, happenings) => promise(play(streams, moods, happenings))
        )
        yield* Effect.promise(() => fc.assert(holds, { numRuns: 40, examples: [overtaken] }))
      })
    )
  }
})

const play = Effect.fnUntraced(
  function* (streams: boolean, moods: ReadonlyArray<string>, happenings: ReadonlyArray<string>) {
    const server = yield* BrokerMemory.BrokerServer
    const client = yield* BrokerClient
    const store = yield* StatusStore
    yield* client.initialize
    // time passes as fast as it can
    yield* Effect.forkScoped(Effect.forever(TestClock.adjust("5 millis")))
    let given = 0
    const gone = new RedisError({ operation: "script", retryable: true, cause: new Error("gone") })
    const moody = StatusStore.of({
      ...store,
      store: (event) =>
        Effect.suspend(() => {
          switch (moods[given++ % moods.length]) {
            case "slow":
              return Effect.delay(store.store(event), "2 millis")
            case "refuses":
              return given < failing ? Effect.fail(gone) : store.store(event)
            case "takes and fails":
              return given < failing ? Effect.andThen(store.store(event), Effect.fail(gone)) : store.store(event)
            default:
              return store.store(event)
          }
        })
    })
    const hub = Effect.fnUntraced(function* (name: string) {
      const broker = yield* server.connect({ name })
      const hub = yield* StatusHub.make({ prefetch: 5, idleRetrySeconds: 0.01 }).pipe(
        Effect.provideService(Broker, broker),
        Effect.provideService(StatusStore, moody)
      )
      yield* Effect.addFinalizer(() => hub.stop)
      const start = Effect.forkScoped(hub.run)
      yield* start
      return { stop: hub.stop, start }
    })
    const a = yield* hub("a")
    yield* hub("b")
    let said = 0
    for (const happening of happenings) {
      if (happening === "say") {
        for (const task of tasks) yield* client.publishStatus(event(task, `e${said}`))
        said++
      }
      if (happening === "drop a") yield* server.drop("a")
      if (happening === "drop b") yield* server.drop("b")
      if (happening === "stop a") yield* Effect.andThen(a.stop, a.start)
      if (happening === "pause") yield* Effect.sleep("3 millis")
    }
    const wanted = Array.from({ length: said }, (_, n) => `e${n}`)
    for (const task of tasks) {
      const { events } = yield* eventually(store.history(task), ({ newest }) => newest >= said, "5 minutes")
      const ids = events.map(({ eventId }) => eventId)
      assert.deepStrictEqual(streams ? ids : ids.toSorted(), streams ? wanted : wanted.toSorted())
    }
  },
  (played, streams) =>
    played.pipe(
      Effect.scoped,
      Effect.provide(RedisStatusStore.layer({ history_maxlen: 1_000 })),
      Effect.provide(
        Layer.mergeAll(
          BrokerClient.layer({ topology: shared({ status_use_streams: streams }) }).pipe(
            Layer.provideMerge(BrokerMemory.layerConnection()),
            Layer.provideMerge(BrokerMemory.layerServer())
          ),
          RedisMemory.layer({ prefix: "svc-test:" })
        )
      ),
      Effect.provideService(References.MinimumLogLevel, "None")
    )
)
