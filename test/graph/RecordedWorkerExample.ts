import { Effect, Layer } from "effect"
import { makeRedisObservationSink, ObservationStore, RedisObservationStore } from "../../src/graph/index.ts"
import { TaskConsumer } from "../../src/messaging/index.ts"
import { DeadLetterStore, RedisDLQStore } from "../../src/status/index.ts"
import { client, work } from "../messaging/WorkerExample.ts"

/** The worker, with an index of its dead letters and a store of its observations. Needs a `Broker` and a `Redis`. */
export const recorded = Layer.unwrap(
  Effect.gen(function* () {
    const observationSink = yield* makeRedisObservationSink(yield* ObservationStore)
    return TaskConsumer.layer({ ...work, dlqStore: yield* DeadLetterStore, observationSink })
  })
).pipe(Layer.provide([client, RedisDLQStore.layer({ prefix: "mail" }), RedisObservationStore.layer()]))
