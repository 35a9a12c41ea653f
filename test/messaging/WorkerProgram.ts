import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Effect, Layer } from "effect"
import * as BrokerAmqp from "svc-runtime/layers/BrokerAmqp"
import * as Teardown from "svc-runtime/layers/Teardown"
import { worker } from "./WorkerExample.ts"

const broker = Layer.unwrap(Effect.map(Config.Redacted("RABBITMQ_URL"), (url) => BrokerAmqp.layer({ url })))

Layer.launch(worker.pipe(Layer.provide(broker))).pipe(NodeRuntime.runMain({ teardown: Teardown.drained }))
