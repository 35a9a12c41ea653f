import { Effect, Layer, Schema } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import { defineTasks } from "../../src/index.ts"
import {
  BrokerClient,
  RetryPolicy,
  SharedStatusWorkflowTopology,
  WorkflowConsumer,
  WorkflowHandler
} from "../../src/messaging/index.ts"

/** The names of the queues are those of one test. */
export const topologyOf = (name: string) =>
  new SharedStatusWorkflowTopology({
    workflow_exchange: name,
    status_exchange: `${name}.status`,
    status_queue: `${name}.status`,
    stages: [
      {
        name: "write",
        queue: `${name}.write`,
        binding_keys: ["write"],
        publish_routing_key: "write",
        allowed_next_stages: ["print"]
      },
      { name: "print", queue: `${name}.print`, binding_keys: ["print"], publish_routing_key: "print" }
    ],
    entry_routes: [{ name: "report", routing_key: "write", target_stage: "write" }]
  })

const topology = topologyOf(process.env["TRACED_TASKS"] ?? "svc-test-traced")

const Order = Schema.Struct({ gateway: Schema.String, key: Schema.String, topic: Schema.String })
const retryPolicy = new RetryPolicy({ max_retries: 1, delay_ms: 100 })

/** Asks the gateway, and fails at its first attempt after the answer. */
const writer = WorkflowConsumer.layer({
  stage: "write",
  retryPolicy,
  handler: WorkflowHandler.withPayload(Order, ({ payload: { gateway, key, topic } }, context) =>
    Effect.gen(function* () {
      const client = HttpClient.filterStatusOk(yield* HttpClient.HttpClient)
      const request = HttpClientRequest.post(`${gateway}/v1/chat/completions`).pipe(
        HttpClientRequest.bearerToken(key),
        HttpClientRequest.bodyJsonUnsafe({ model: "gpt-5", messages: [{ role: "user", content: topic }] })
      )
      const answer = yield* Effect.flatMap(client.execute(request), ({ json }) => json)
      if (context.retryAttempt === 0) return yield* Effect.fail(new Error("out of paper"))
      yield* context.publishToStage("print", { payload: { answer } })
    })
  )
}).pipe(Layer.provide(FetchHttpClient.layer))

const printer = WorkflowConsumer.layer({
  stage: "print",
  retryPolicy,
  handler: WorkflowHandler.make((_, context) => context.publishStatus("completed"))
})

export const tasks = defineTasks({
  topologies: [topology],
  workers: Layer.merge(writer, printer).pipe(Layer.provide(BrokerClient.layer({ topology }))),
  terminalStatuses: ["completed", "failed"],
  prefixes: { statuses: "traced", deadLetters: "traced" }
})
