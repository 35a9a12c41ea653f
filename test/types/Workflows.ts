import { Effect, Schema } from "effect"
import { expectTypeOf } from "vitest"
import {
  BrokerClient,
  type ContractError,
  type PublishError,
  SharedStatusWorkflowTopology,
  WorkflowConsumer,
  type WorkflowContext,
  WorkflowHandler,
  type WorkflowStage
} from "../../src/messaging/index.ts"

const exchanges = { workflow_exchange: "reports", status_exchange: "reports.status", status_queue: "reports.status" }

const stage = <const Name extends string>(name: Name) => ({
  name,
  queue: `reports.${name}`,
  binding_keys: [`reports.${name}`],
  publish_routing_key: `reports.${name}`
})

export const valid = [
  new SharedStatusWorkflowTopology({
    ...exchanges,
    stages: [
      { ...stage("plan"), allowed_next_stages: ["write"] },
      { ...stage("write"), terminal: true }
    ],
    entry_routes: [{ name: "report", routing_key: "reports.plan", target_stage: "plan" }]
  }),
  // Stages whose names are known only when the program runs
  (stages: ReadonlyArray<WorkflowStage>) =>
    new SharedStatusWorkflowTopology({
      ...exchanges,
      stages,
      entry_routes: [{ name: "report", routing_key: "reports.plan", target_stage: "plan" }]
    })
]

export const topologyMistakes = [
  () =>
    new SharedStatusWorkflowTopology({
      ...exchanges,
      stages: [
        {
          ...stage("plan"),
          // @ts-expect-error: there is no stage writer
          allowed_next_stages: ["writer"]
        },
        stage("write")
      ]
    }),
  () =>
    new SharedStatusWorkflowTopology({
      ...exchanges,
      stages: [stage("plan"), stage("write")],
      // @ts-expect-error: there is no stage planner
      entry_routes: [{ name: "report", routing_key: "reports.plan", target_stage: "planner" }]
    }),
  // @ts-expect-error: a stage has a queue
  () => new SharedStatusWorkflowTopology({ ...exchanges, stages: [{ name: "plan" }] }),
  () =>
    new SharedStatusWorkflowTopology({
      ...exchanges,
      stages: [
        {
          ...stage("plan"),
          // @ts-expect-error: an accepted action is an object with the member action
          accepted_actions: ["draft"]
        }
      ]
    })
]

const Plan = Schema.Struct({ chapters: Schema.Array(Schema.String) })

const handler = WorkflowHandler.withPayload(Plan, ({ message_id, payload, stage }, context) => {
  expectTypeOf(payload.chapters).toEqualTypeOf<ReadonlyArray<string>>()
  expectTypeOf([stage, message_id]).toEqualTypeOf<Array<string>>()
  expectTypeOf(context).toEqualTypeOf<WorkflowContext>()
  return context.publishToStage("write", { payload, action: "draft" })
})

export const worker = WorkflowConsumer.layer({ stage: "plan", handler })

export const mistakes = [
  // @ts-expect-error: the payload has no member chapter
  () => WorkflowHandler.withPayload(Plan, ({ payload }) => Effect.log(payload.chapter)),
  // @ts-expect-error: the payload of another schema
  () => WorkflowHandler.withPayload(Schema.Struct({ topic: Schema.String }), ({ payload }) => count(payload)),
  // @ts-expect-error: a consumer has either a stage or a queue
  () => WorkflowConsumer.layer({ stage: "plan", queue: "reports.plan", handler }),
  // @ts-expect-error: a consumer has a stage or a queue
  () => WorkflowConsumer.layer({ handler })
]

const count = ({ chapters }: typeof Plan.Type) => Effect.log(chapters.length)

export const contextMistakes = (context: WorkflowContext) => {
  const published = context.publishToStage("write", { payload: { chapters: [] } })
  expectTypeOf(published).toEqualTypeOf<Effect.Effect<void, PublishError | ContractError>>()
  return [
    // @ts-expect-error: a message for another stage has a payload
    () => context.publishToStage("write", {}),
    // @ts-expect-error: the payload is an object
    () => context.publishToStage("write", { payload: ["one chapter"] }),
    // @ts-expect-error: the new message belongs to the same task
    () => context.publishToStage("write", { payload: {}, task_id: "other" }),
    // @ts-expect-error: a stage hands its task over with publishToStage
    () => context.manualRetry()
  ]
}

export const publishing = Effect.gen(function* () {
  const { publishToEntry } = yield* BrokerClient
  yield* publishToEntry({ task_id: "r1", payload: { topic: "bees" } }, "report")
  // @ts-expect-error: a message enters by a named route
  yield* publishToEntry({ task_id: "r1", payload: { topic: "bees" } })
  // @ts-expect-error: the member is called message_id
  yield* publishToEntry({ task_id: "r1", messageId: "m1" }, "report")
})
