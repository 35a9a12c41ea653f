import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Effect, Layer } from "effect"
import * as BrokerAmqp from "svc-runtime/layers/BrokerAmqp"
import * as RedisIoredis from "svc-runtime/layers/RedisIoredis"
import * as Teardown from "svc-runtime/layers/Teardown"
import { recorded } from "./RecordedWorkerExample.ts"
import { server } from "./ServerExample.ts"

const broker = Layer.unwrap(Effect.map(Config.Redacted("RABBITMQ_URL"), (url) => BrokerAmqp.layer({ url })))
const redis = Layer.unwrap(
  Effect.map(Config.Redacted("REDIS_URL"), (url) => RedisIoredis.layer({ url, prefix: "mails:" }))
)

Layer.launch(Layer.merge(recorded, server(8090)).pipe(Layer.provide([broker, redis]))).pipe(
  NodeRuntime.runMain({ teardown: Teardown.drained })
)
