import { Effect, Layer, Schema } from "effect"
import {
  BrokerClient,
  RetryPolicy,
  SharedStatusWorkflowTopology,
  WorkflowConsumer,
  WorkflowHandler
} from "svc-runtime/messaging"

const topology = new SharedStatusWorkflowTopology({
  workflow_exchange: "reports",
  status_exchange: "reports.status",
  status_queue: "reports.status",
  stages: [
    {
      name: "plan",
      queue: "reports.plan",
      binding_keys: ["planner.plan.in"],
      publish_routing_key: "planner.plan.in",
      allowed_next_stages: ["write"]
    },
    { name: "write", queue: "reports.write", binding_keys: ["writer.write.in"], publish_routing_key: "writer.write.in" }
  ],
  entry_routes: [{ name: "report", routing_key: "planner.plan.in", target_stage: "plan" }]
})
const Order = Schema.Struct({ topic: Schema.String })
const Plan = Schema.Struct({ chapters: Schema.Array(Schema.String) })
const retryPolicy = new RetryPolicy()

/** Declares the topology and publishes. Needs a `Broker`. */
export const client = BrokerClient.layer({ topology })

const planner = WorkflowConsumer.layer({
  stage: "plan",
  retryPolicy,
  handler: WorkflowHandler.withPayload(Order, ({ payload: { topic } }, context) =>
    context.publishToStage("write", { payload: { chapters: [`What ${topic} is`, `What ${topic} is not`] } })
  )
})

const writer = WorkflowConsumer.layer({
  stage: "write",
  retryPolicy,
  handler: WorkflowHandler.withPayload(Plan, ({ payload: { chapters } }, context) =>
    context.publishStatus("completed", { result: { chapters: chapters.length } })
  )
})

export const workers = Layer.mergeAll(planner, writer).pipe(Layer.provide(client))

/** Starts the workflow. Needs the client. */
export const order = (task_id: string, topic: string) =>
  Effect.flatMap(BrokerClient, (client) => client.publishToEntry({ task_id, payload: { topic } }, "report"))
