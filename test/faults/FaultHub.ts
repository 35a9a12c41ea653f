import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Layer, Redacted } from "effect"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as RedisIoredis from "../../layers/RedisIoredis.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import * as StatusHub from "../../src/status/hub/StatusHub.ts"
import * as RedisStatusStore from "../../src/status/store/RedisStatusStore.ts"
import * as FaultyStatuses from "./FaultyStatuses.ts"

/** A hub in a process of its own, to be killed: `FaultHub.ts <RabbitMQ> <Redis> <kind of status plane>`. */
const [, , rabbitmq = "", redis = "", kind = ""] = process.argv

StatusHub.layer({ idleRetrySeconds: 0.2, prefetch: 50 }).pipe(
  Layer.provide(RedisStatusStore.layer(FaultyStatuses.kept)),
  Layer.provide(BrokerClient.layer({ topology: FaultyStatuses.topology(kind === "stream") })),
  Layer.provide(
    BrokerAmqp.layer({
      url: Redacted.make(rabbitmq),
      name: "fault-hub",
      heartbeatSeconds: 1,
      connectWithin: "60 seconds"
    })
  ),
  Layer.provide(RedisIoredis.layer({ url: Redacted.make(redis), prefix: FaultyStatuses.prefix })),
  Layer.launch,
  NodeRuntime.runMain
)
