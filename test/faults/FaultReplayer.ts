import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Layer, Redacted } from "effect"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as RedisIoredis from "../../layers/RedisIoredis.ts"
import * as RedisDLQStore from "../../src/status/dead-letters/RedisDLQStore.ts"
import * as ReplayJobs from "../../src/status/replay/ReplayJobs.ts"
import * as ReplayWorker from "../../src/status/replay/ReplayWorker.ts"

/** A process that works on replay jobs, to be killed: `FaultReplayer.ts <RabbitMQ> <Redis> <prefix of keys>`. */
const [, , rabbitmq = "", redis = "", prefix = ""] = process.argv

ReplayWorker.layer({ lookEvery: "50 millis", leaseSeconds: 1, window: 100, perSecond: 300 }).pipe(
  Layer.provide(Layer.provideMerge(ReplayJobs.layer(), RedisDLQStore.layer({ replay_lease_seconds: 1 }))),
  Layer.provide(BrokerAmqp.layer({ url: Redacted.make(rabbitmq), name: "fault-replayer" })),
  Layer.provide(RedisIoredis.layer({ url: Redacted.make(redis), prefix })),
  Layer.launch,
  NodeRuntime.runMain
)
