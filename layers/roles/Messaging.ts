import { hostname } from "node:os"
import { Effect, Layer } from "effect"
import { ObservationStore } from "../../src/graph/observations/ObservationStore.ts"
import * as RedisObservationStore from "../../src/graph/observations/RedisObservationStore.ts"
import * as StatusRuntime from "../../src/graph/StatusRuntime.ts"
import * as ControlStore from "../../src/messaging/control/ControlStore.ts"
import * as RedisWorkControl from "../../src/messaging/control/RedisWorkControl.ts"
import { type DeadLetterRecord, DefaultDeadLetterSink } from "../../src/messaging/failure/DeadLetter.ts"
import { ExceptionDetails, omitted } from "../../src/messaging/failure/ExceptionDetails.ts"
import * as ObservationMetrics from "../../src/messaging/observe/ObservationMetrics.ts"
import { DefaultObservationSink } from "../../src/messaging/observe/ObservationSink.ts"
import { Readiness } from "../../src/process/Readiness.ts"
import { Broker } from "../../src/services/Broker.ts"
import { Redis } from "../../src/services/Redis.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import type { Tasks } from "../../src/tasks/Tasks.ts"
import type { Settings } from "../Environment.ts"

/** The sinks that record dead letters and observations of consumers in the stores of the role. */
const sinks = ({ runtime }: Tasks, tasksVersion: string) =>
  Layer.merge(
    Layer.effect(
      DefaultDeadLetterSink,
      Effect.map(DeadLetterStore, (store) => ({
        record: (letter: DeadLetterRecord) => store.record({ ...letter, worker_version: tasksVersion })
      }))
    ),
    Layer.effect(
      DefaultObservationSink,
      Effect.flatMap(ObservationStore, (store) =>
        Effect.flatMap(RedisObservationStore.makeRedisObservationSink(store), ObservationMetrics.countingSink)
      )
    )
  ).pipe(Layer.provide(StatusRuntime.stores(runtime)))

const workControl = ({ runtime: { storePrefix } }: Tasks, version: string) =>
  Layer.provide(
    RedisWorkControl.layer({ host: hostname(), pid: process.pid, version }),
    ControlStore.layer({ prefix: storePrefix })
  )

/**
 * The workers are provided, not merged. Otherwise the listeners of the role would also use the router of a listener that
 * a tasks module opens.
 */
export const layer = (tasks: Tasks, { storeExceptionDetails, tasksVersion }: Settings) =>
  Layer.empty.pipe(
    Layer.provide(tasks.workers),
    Layer.provide([sinks(tasks, tasksVersion), workControl(tasks, tasksVersion)]),
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
