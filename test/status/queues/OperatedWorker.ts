import { openSync, writeSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer, Redacted } from "effect"
import * as BrokerAmqp from "../../../layers/BrokerAmqp.ts"
import * as RedisIoredis from "../../../layers/RedisIoredis.ts"
import { Broker } from "../../../src/services/Broker.ts"
import { Redis } from "../../../src/services/Redis.ts"
import * as OperatedTasks from "./OperatedTasks.ts"

/** A worker in a process of its own: `OperatedWorker.ts <settings as JSON>`. It kills itself where it is told to. */
const settings: OperatedTasks.ProcessSettings = JSON.parse(process.argv[2] ?? "{}")

const file = openSync(settings.journal, "a")

const die = (point: OperatedTasks.CrashPoint) => {
  if (settings.crashAt !== point) return
  process.kill(process.pid, "SIGKILL")
  // The signal may arrive a moment later.
  for (;;);
}

const broker = Layer.effect(
  Broker,
  Effect.map(Broker, (broker) =>
    Broker.of({
      ...broker,
      publish: (publication) => {
        if (publication.properties.headers?.["status"] !== "cancelled") return broker.publish(publication)
        die("before the status")
        return Effect.tap(broker.publish(publication), () => Effect.sync(() => die("after the status")))
      }
    })
  )
).pipe(Layer.provide(BrokerAmqp.layer({ url: Redacted.make(settings.rabbitmq) })))

let answers = 0
const redis = Layer.effect(
  Redis,
  Effect.map(Redis, (redis) =>
    Redis.of({
      ...redis,
      run: (script, keys, args) => {
        if (script.name !== "answer-cancel") return redis.run(script, keys, args)
        answers++
        die(answers === 1 ? "before the first answer" : "before the second answer")
        return Effect.tap(redis.run(script, keys, args), () =>
          Effect.sync(() => die(answers === 1 ? "after the first answer" : "after the second answer"))
        )
      }
    })
  )
).pipe(Layer.provide(RedisIoredis.layer({ url: Redacted.make(settings.redis), prefix: settings.prefix })))

const worker = OperatedTasks.worker(settings.names, {
  note: (entry) => void writeSync(file, `${entry}\n`),
  concurrency: settings.concurrency
})

Layer.launch(worker.pipe(Layer.provide([broker, redis]))).pipe(NodeRuntime.runMain)
