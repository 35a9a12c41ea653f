import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import { Broker } from "../../../src/services/Broker.ts"
import * as QueueMetrics from "../../../src/status/dead-letters/QueueMetrics.ts"

const depthOf = (queue: string) =>
  Effect.map(PrometheusMetrics.format(), (text) =>
    text.split("\n").filter((line) => line.startsWith("svc_queue_messages{") && line.includes(`"${queue}"`))
  )

describe("the depth of queues", () => {
  it.effect("is looked at again and again, and 0 where there is no queue", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      yield* broker.declare({ exchanges: [], queues: [{ name: "depth" }], bindings: [] })
      yield* Layer.build(QueueMetrics.layer({ queues: ["depth", "nowhere"] }))
      yield* TestClock.adjust("1 second")
      assert.match(String(yield* depthOf("depth")), / 0$/)
      for (let index = 0; index < 3; index++) {
        yield* broker.publish({
          purpose: "tasks",
          exchange: "",
          routingKey: "depth",
          content: new Uint8Array(1),
          properties: {}
        })
      }
      yield* TestClock.adjust("15 seconds")
      assert.match(String(yield* depthOf("depth")), / 3$/)
      assert.match(String(yield* depthOf("nowhere")), / 0$/)
    }).pipe(Effect.provide(BrokerMemory.layer()))
  )
})
