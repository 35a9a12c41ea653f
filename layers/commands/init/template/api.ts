import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Config, Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { BrokerClient } from "svc-runtime/messaging"
import { Receipt, taskIdOf } from "./receipt.ts"

/** Publishes a receipt as a task. The response follows when the broker has stored the task. */
const publish = Effect.gen(function* () {
  const receipt = yield* HttpServerRequest.schemaBodyJson(Receipt)
  const { publishTask } = yield* BrokerClient
  const task_id = taskIdOf(receipt)
  yield* publishTask({ task_id, task_type: "receipt", payload: receipt })
  return yield* HttpServerResponse.json({ task_id }, { status: 202 })
}).pipe(
  Effect.catchTag(["SchemaError", "HttpServerError"], ({ message }) =>
    HttpServerResponse.json({ message }, { status: 400 })
  )
)

const server = Layer.unwrap(
  Effect.map(Config.Port("PORT").pipe(Config.withDefault(8090)), (port) =>
    NodeHttpServer.layer(createServer, { host: "127.0.0.1", port })
  )
)

/** Listens for receipts. */
export const api = HttpRouter.serve(HttpRouter.add("POST", "/receipts", publish)).pipe(Layer.provide(server))
