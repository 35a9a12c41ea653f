import { Effect, Layer } from "effect"
import { makeRedisObservationSink, ObservationStore, RedisObservationStore } from "svc-runtime/graph"
import { TaskConsumer } from "svc-runtime/messaging"
import { DeadLetterStore, RedisDLQStore } from "svc-runtime/status"
import { client, work } from "../messaging/WorkerExample.ts"

/** The worker, with an index of its dead letters and a store of its observations. Needs a `Broker` and a `Redis`. */
export const recorded = Layer.unwrap(
  Effect.gen(function* () {
    const observationSink = yield* makeRedisObservationSink(yield* ObservationStore)
    return TaskConsumer.layer({ ...work, dlqStore: yield* DeadLetterStore, observationSink })
  })
).pipe(Layer.provide([client, RedisDLQStore.layer({ prefix: "mail" }), RedisObservationStore.layer()]))
