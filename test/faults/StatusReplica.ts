import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer, Redacted, Schema } from "effect"
import { HttpRouter } from "effect/http"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as RedisIoredis from "../../layers/RedisIoredis.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import * as StatusRoutes from "../../src/status/http/StatusRoutes.ts"
import * as StatusHub from "../../src/status/hub/StatusHub.ts"
import * as RedisStatusStore from "../../src/status/store/RedisStatusStore.ts"
import * as EventStream from "../../src/status/stream/EventStream.ts"
import * as StatusPlanes from "./StatusPlanes.ts"

/** One of several that do the same, in a process of its own: a hub, and a listener with the status routes. */
const { kept, plane, port, rabbitmq, redis } = Schema.decodeUnknownSync(
  Schema.fromJsonString(StatusPlanes.ReplicaOptions)
)(process.argv[2])

const listener = HttpRouter.serve(StatusRoutes.layer(), {
  routerConfig: StatusRoutes.routerConfig,
  disableLogger: true,
  disableListenLog: true
}).pipe(Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port })))

const served = EventStream.drainFirst.pipe(
  Layer.provide(listener),
  Layer.provide(
    EventStream.layer({ keepaliveIntervalSeconds: 1, maxWaitingEvents: 8, maxWaitingSize: 16_384, stalledSeconds: 2 })
  )
)

const announced = Layer.effectDiscard(Effect.sync(() => void process.stdout.write("listening\n")))

announced.pipe(
  Layer.provide(Layer.merge(served, StatusHub.layer({ idleRetrySeconds: 0.2, prefetch: 50 }))),
  Layer.provide(RedisStatusStore.layer({ history_maxlen: kept })),
  Layer.provide(BrokerClient.layer({ topology: StatusPlanes.topologyOf(plane) })),
  Layer.provide(
    BrokerAmqp.layer({
      url: Redacted.make(rabbitmq),
      name: "status-replica",
      heartbeatSeconds: 1,
      connectWithin: "20 seconds"
    })
  ),
  Layer.provide(RedisIoredis.layer({ url: Redacted.make(redis), prefix: StatusPlanes.prefix })),
  Layer.launch,
  NodeRuntime.runMain
)
