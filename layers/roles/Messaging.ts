import { Effect, Layer } from "effect"
import * as ExamplePublisher from "../../src/example/ExamplePublisher.ts"
import * as Workers from "../../src/example/Workers.ts"
import { ObservationStore } from "../../src/graph/observations/ObservationStore.ts"
import * as RedisObservationStore from "../../src/graph/observations/RedisObservationStore.ts"
import { ExceptionDetails, omitted } from "../../src/messaging/failure/ExceptionDetails.ts"
import * as ObservationMetrics from "../../src/messaging/observe/ObservationMetrics.ts"
import { Readiness } from "../../src/process/Readiness.ts"
import { Broker } from "../../src/services/Broker.ts"
import { Redis } from "../../src/services/Redis.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import * as RedisDLQStore from "../../src/status/dead-letters/RedisDLQStore.ts"
import type { Settings } from "../Environment.ts"

/** The example's workers, which also record dead letters and observations. */
const workers = Layer.unwrap(
  Effect.gen(function* () {
    const storedSink = yield* RedisObservationStore.makeRedisObservationSink(yield* ObservationStore)
    return Workers.layer({
      dlqStore: yield* DeadLetterStore,
      observationSink: yield* ObservationMetrics.countingSink(storedSink)
    })
  })
).pipe(Layer.provide([RedisDLQStore.layer(), RedisObservationStore.layer()]))

export const layer = ({ storeExceptionDetails }: Settings) =>
  Layer.merge(workers, ExamplePublisher.layer).pipe(
    Layer.provide(storeExceptionDetails ? Layer.empty : Layer.succeed(ExceptionDetails, omitted))
  )

/** The process is ready only if the broker and Redis respond. */
export const readiness = Layer.effect(
  Readiness,
  Effect.gen(function* () {
    const broker = yield* Broker
    const redis = yield* Redis
    return yield* Readiness.fromDependencies([
      { name: "broker", ping: broker.ping, statusWithout: "not_ready" },
      { name: "redis", ping: redis.ping, statusWithout: "not_ready" }
    ])
  })
)
