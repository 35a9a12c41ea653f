import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Handler, RetryPolicy, SharedTasksSharedStatusTopology, TaskConsumer } from "svc-runtime/messaging"
import { HandlerCheck, step } from "svc-runtime/testing"

/** The provider of payments, as the handler sees it. A second call with the same key charges nothing. */
class Payments extends Context.Service<
  Payments,
  { readonly charge: (order: string, idempotencyKey: string) => Effect.Effect<void> }
>()("Payments") {}

const work = {
  retryPolicy: new RetryPolicy({ max_retries: 5, delay_ms: 10_000 }),
  handler: Handler.make(({ task_id }, context) =>
    Effect.gen(function* () {
      const { charge } = yield* Payments
      yield* charge(task_id, task_id)
      yield* context.publishStatus("paid")
    })
  )
}

/** A model of the provider. Its charges survive a crash of the worker. */
class Charges extends Context.Service<Charges, Map<string, string>>()("Charges") {}

const payments = Layer.effect(
  Payments,
  Effect.map(Charges, (charges) => ({
    charge: (order: string, key: string) =>
      step(
        `charge ${order}`,
        Effect.sync(() => {
          charges.set(key, order)
        })
      )
  }))
)

const orders = HandlerCheck.make({
  name: "orders",
  topology: new SharedTasksSharedStatusTopology({
    tasks_exchange: "orders",
    tasks_queue: "orders.pay",
    tasks_routing_key: "orders.pay",
    status_exchange: "orders.status",
    status_queue: "orders.status"
  }),
  world: Layer.provideMerge(
    payments,
    Layer.sync(Charges, () => new Map())
  ),
  worker: TaskConsumer.layer(work),
  tasks: [{ task_id: "o1" }, { task_id: "o2" }],
  invariant: ({ deadLetters, statusesOf }) =>
    Effect.map(Charges, (charges) => {
      assert.deepStrictEqual(Array.from(charges.values()).sort(), ["o1", "o2"])
      for (const order of ["o1", "o2"]) assert.include(statusesOf(order), "paid")
      assert.lengthOf(deadLetters, 0)
    })
})

it.effect("charges each order once", () => HandlerCheck.run(orders), 60_000)
