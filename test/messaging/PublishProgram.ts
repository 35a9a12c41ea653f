import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Effect, Layer } from "effect"
import * as BrokerAmqp from "svc-runtime/layers/BrokerAmqp"
import { BrokerClient } from "svc-runtime/messaging"
import { client, send } from "./WorkerExample.ts"

const broker = Layer.unwrap(Effect.map(Config.Redacted("RABBITMQ_URL"), (url) => BrokerAmqp.layer({ url })))

/** Publishes a mail, and one without a text, which becomes a dead letter. */
const publish = Effect.gen(function* () {
  yield* send("m1", { to: "ada@example.com", text: "hello" })
  const { publishTask } = yield* BrokerClient
  yield* publishTask({ task_id: "m2", task_type: "send", payload: { to: "ada@example.com" } })
})

NodeRuntime.runMain(publish.pipe(Effect.provide(Layer.provide(client, broker))))
