import { Context, Effect, type Layer, Schema } from "effect"
import { expectTypeOf } from "vitest"
import {
  type AggregationContext,
  AggregationHandler,
  type Broker,
  BrokerClient,
  Handler,
  type HandlerContext,
  type PublishError,
  type SettingsError,
  TaskConsumer
} from "../../src/messaging/index.ts"

class Mailbox extends Context.Service<
  Mailbox,
  { readonly deliver: (to: string) => Effect.Effect<void, { readonly _tag: "MailboxFull" }> }
>()("types/Mailbox") {}

class Templates extends Context.Service<Templates, { readonly render: (name: string) => Effect.Effect<string> }>()(
  "types/Templates"
) {}

const Mail = Schema.Struct({ to: Schema.String, sendAt: Schema.DateTimeUtcFromString })

/** The payload has the decoded type of the schema. The services of all handlers are the services of the worker. */
const handler = Handler.byTaskType({
  send: Handler.withPayload(Mail, ({ payload, task_id }, context) => {
    expectTypeOf(payload).toEqualTypeOf<typeof Mail.Type>()
    expectTypeOf(task_id).toEqualTypeOf<string>()
    expectTypeOf(context).toEqualTypeOf<HandlerContext>()
    return Effect.flatMap(Mailbox, ({ deliver }) => deliver(payload.to))
  }),
  render: Handler.make(() => Effect.flatMap(Templates, ({ render }) => render("welcome")))
})

expectTypeOf(handler).toEqualTypeOf<Handler.TaskHandler<Mailbox | Templates>>()

/** The worker needs the services of its handlers. It has no errors of theirs, because a failure fails the task. */
expectTypeOf(TaskConsumer.layer({ handler })).toEqualTypeOf<
  Layer.Layer<never, SettingsError, Broker | BrokerClient | Mailbox | Templates>
>()

export const mistakes = [
  // @ts-expect-error: the payload has no member recipient
  () => Handler.withPayload(Mail, ({ payload }) => Effect.log(payload.recipient)),
  // @ts-expect-error: sendAt is decoded to a DateTime, which is no number
  () => Handler.withPayload(Mail, ({ payload }) => Effect.sleep(payload.sendAt)),
  // @ts-expect-error: without a schema, a member of the payload is unknown
  () => Handler.make(({ payload }) => Effect.log(payload["to"].length)),
  // @ts-expect-error: a handler returns an Effect and no promise
  () => Handler.make(async ({ task_id }) => task_id),
  () =>
    // @ts-expect-error: a handler returns its Effect, and this one returns nothing
    Handler.make((_, context) => {
      context.publishStatus("sent")
    }),
  () =>
    // @ts-expect-error: byTaskType takes handlers and no functions
    Handler.byTaskType({ send: () => Effect.void }),
  // @ts-expect-error: a worker needs a handler
  () => TaskConsumer.layer({ concurrency: 4 }),
  // @ts-expect-error: concurrency is a number
  () => TaskConsumer.layer({ handler, concurrency: "4" }),
  // @ts-expect-error: the handler of an aggregation worker receives events and no tasks
  () => TaskConsumer.layer({ handler: AggregationHandler.make((event) => Effect.log(event.status)) })
]

export const contextMistakes = (context: HandlerContext, aggregation: AggregationContext) => [
  context.publishStatus("sent", { result: { id: 1 } }),
  context.manualRetry({ reason: "wrong worker", taskType: "post" }),
  // @ts-expect-error: a status is a text
  () => context.publishStatus(5),
  // @ts-expect-error: a result is an object
  () => context.publishStatus("sent", { result: "done" }),
  // @ts-expect-error: the member is called correlation_id
  () => context.publishStatus("sent", { correlationId: "c" }),
  // @ts-expect-error: only the handler of a task can hand it over
  () => aggregation.manualRetry(),
  // @ts-expect-error: the members of a context are read-only
  () => (context.taskId = "other")
]

export const publishing = Effect.gen(function* () {
  const client = yield* BrokerClient
  const published = client.publishTask({ task_id: "m1", task_type: "send", payload: { to: "ada@example.com" } })
  expectTypeOf(published).toEqualTypeOf<Effect.Effect<void, PublishError>>()
  // @ts-expect-error: the errors of a publish are not handled
  const ignored: Effect.Effect<void> = published
  // @ts-expect-error: PublishError has no error of this tag
  const caught = Effect.catchTag(published, "Unpublished", () => Effect.void)
  // @ts-expect-error: a task needs a task_id
  yield* client.publishTask({ task_type: "send" })
  // @ts-expect-error: the payload is an object
  yield* client.publishTask({ task_id: "m1", payload: "ada@example.com" })
  // @ts-expect-error: a batch needs its id
  yield* client.publishTasks([{ task_id: "m1" }], { mode: "batch_envelope" })
  return [ignored, caught]
})
