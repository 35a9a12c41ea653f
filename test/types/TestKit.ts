import { Context, Effect, Layer } from "effect"
import { expectTypeOf } from "vitest"
import {
  BrokerContract,
  BrokerMemory,
  Contract,
  HandlerCheck,
  RedisContract,
  RedisMemory,
  step
} from "../../layers/testing/index.ts"
import { Handler, type SharedTasksSharedStatusTopology, TaskConsumer } from "../../src/messaging/index.ts"

declare const topology: SharedTasksSharedStatusTopology
declare const runner: Contract.TestRunner

class Payments extends Context.Service<Payments, { readonly charge: (order: string) => Effect.Effect<void> }>()(
  "types/Payments"
) {}

class Refunds extends Context.Service<Refunds, { readonly refund: (order: string) => Effect.Effect<void> }>()(
  "types/Refunds"
) {}

const orders = HandlerCheck.make({
  name: "orders",
  topology,
  world: Layer.succeed(Payments, { charge: () => Effect.void }),
  worker: TaskConsumer.layer({
    handler: Handler.make(({ task_id }) => Effect.flatMap(Payments, ({ charge }) => step("charge", charge(task_id))))
  }),
  tasks: [{ task_id: "o1" }],
  invariant: ({ deadLetters }) => (deadLetters.length === 0 ? Effect.void : Effect.fail("lost" as const))
})

expectTypeOf(orders.world).toEqualTypeOf<Layer.Layer<Payments>>()
expectTypeOf(HandlerCheck.run(orders)).toEqualTypeOf<
  Effect.Effect<HandlerCheck.Report, HandlerCheck.HandlerCheckFailed>
>()

export const mistakes = [
  // @ts-expect-error: the world has no Payments
  () => HandlerCheck.run({ ...orders, world: Layer.empty }),
  // @ts-expect-error: a task needs a task_id
  () => HandlerCheck.run({ ...orders, tasks: [{ task_type: "order" }] }),
  // @ts-expect-error: there is no fault of this name
  () => HandlerCheck.run({ ...orders, faults: ["crash"] }),
  // @ts-expect-error: the invariant needs Refunds, which the world does not have
  () => HandlerCheck.run({ ...orders, invariant: () => Effect.flatMap(Refunds, ({ refund }) => refund("o1")) }),
  // @ts-expect-error: the number of an operation is missing
  () => HandlerCheck.replay(orders, { seed: 1, faults: [{ what: "hang" }] }),
  () =>
    // @ts-expect-error: the laws of a broker need ConnectionFaults
    Contract.register(BrokerContract.suite, { name: "memory", layer: BrokerMemory.layer() }, runner),
  // @ts-expect-error: a broker does not keep the laws of Redis
  () => Contract.register(RedisContract.suite, { name: "memory", layer: BrokerMemory.layer() }, runner),
  ({ describe, it }: Contract.TestRunner) =>
    // @ts-expect-error: the runner has no afterAll
    Contract.register(RedisContract.suite, { name: "memory", layer: RedisMemory.layer() }, { describe, it })
]
