import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Effect, Layer } from "effect"
import { BrokerAmqp, RedisIoredis, Teardown } from "../../layers/index.ts"
import { recorded } from "./RecordedWorkerExample.ts"
import { server } from "./ServerExample.ts"

const broker = Layer.unwrap(Effect.map(Config.Redacted("RABBITMQ_URL"), (url) => BrokerAmqp.layer({ url })))
const redis = Layer.unwrap(
  Effect.map(Config.Redacted("REDIS_URL"), (url) => RedisIoredis.layer({ url, prefix: "mails:" }))
)

Layer.launch(Layer.merge(recorded, server(8090)).pipe(Layer.provide([broker, redis]))).pipe(
  NodeRuntime.runMain({ teardown: Teardown.drained })
)
