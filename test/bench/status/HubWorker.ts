import { createServer } from "node:http"
import { createHistogram } from "node:perf_hooks"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer, Redacted } from "effect"
import * as BrokerAmqp from "../../../layers/BrokerAmqp.ts"
import * as RedisIoredis from "../../../layers/RedisIoredis.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import * as StatusHub from "../../../src/status/hub/StatusHub.ts"
import * as RedisStatusStore from "../../../src/status/store/RedisStatusStore.ts"
import { StatusStore } from "../../../src/status/store/StatusStore.ts"
import { ms, nanos } from "../Latency.ts"
import { environment } from "../messaging/Work.ts"
import { type Progress, topologyOf } from "./Hub.ts"

/** The hub in a process of its own. Each question for its progress begins a new measure of latency. */

let stored = 0
let latency = createHistogram()

/** Tells when an event is stored: its timestamp is of the publisher, on the same clock. */
const timed = Layer.effect(
  StatusStore,
  Effect.map(StatusStore, (store) =>
    StatusStore.of({
      ...store,
      store: (event) =>
        Effect.map(store.store(event), (outcome) => {
          stored++
          const { timeOrigin } = performance
          latency.record(nanos(timeOrigin + performance.now() - instantOf(event.timestamp)))
          return outcome
        })
    })
  )
)

/** Epoch milliseconds with their microseconds, which `Date.parse` cuts off. */
const instantOf = (timestamp: string): number => Date.parse(timestamp) + Number(timestamp.slice(23, 26)) / 1_000

const server = createServer((_, response) => {
  const { system, user } = process.cpuUsage()
  const progress: Progress = {
    stored,
    cpuMicros: system + user,
    p50: stored === 0 ? 0 : ms(latency, 50),
    p99: stored === 0 ? 0 : ms(latency, 99)
  }
  latency = createHistogram()
  response.end(JSON.stringify(progress))
})
server.listen({ port: 0, host: "127.0.0.1" }, () => {
  const address = server.address()
  if (address !== null && typeof address === "object") process.stdout.write(`${address.port}\n`)
})
process.once("disconnect", () => process.exit())

const { prefix, rabbitmq, redis } = environment

StatusHub.layer({ prefix: "bench" }).pipe(
  Layer.provide(timed),
  Layer.provide(RedisStatusStore.layer({ prefix: "bench" })),
  Layer.provide(BrokerClient.layer({ topology: topologyOf(prefix) })),
  Layer.provide(BrokerAmqp.layer({ url: Redacted.make(rabbitmq), name: "svc-bench-hub" })),
  Layer.provide(RedisIoredis.layer({ url: Redacted.make(redis), prefix })),
  Layer.launch,
  NodeRuntime.runMain
)
