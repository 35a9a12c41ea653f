import { Context, Effect, Layer } from "effect"
import { expectTypeOf } from "vitest"
import { defineTasks, type Tasks } from "../../src/index.ts"
import { BrokerClient, Handler, type SharedTasksSharedStatusTopology, TaskConsumer } from "../../src/messaging/index.ts"

declare const topology: SharedTasksSharedStatusTopology

class Mailbox extends Context.Service<Mailbox, { readonly deliver: Effect.Effect<void> }>()("types/Mailbox") {}

const client = BrokerClient.layer({ topology })
const delivering = TaskConsumer.layer({
  handler: Handler.make(() => Effect.flatMap(Mailbox, ({ deliver }) => deliver))
})
const mailbox = Layer.succeed(Mailbox, { deliver: Effect.void })
const workers = delivering.pipe(Layer.provide([client, mailbox]))

expectTypeOf(defineTasks({ topologies: [topology], workers })).toEqualTypeOf<Tasks>()

export const mistakes = [
  // @ts-expect-error: there is at least one topology
  () => defineTasks({ topologies: [], workers }),
  // @ts-expect-error: a topology is no name
  () => defineTasks({ topologies: ["mail"], workers }),
  // @ts-expect-error: workers is missing
  () => defineTasks({ topologies: [topology] }),
  // @ts-expect-error: the role provides no Mailbox
  () => defineTasks({ topologies: [topology], workers: delivering.pipe(Layer.provide(client)) }),
  // @ts-expect-error: the role provides no BrokerClient
  () => defineTasks({ topologies: [topology], workers: delivering.pipe(Layer.provide(mailbox)) }),
  // @ts-expect-error: workers is a Layer
  () => defineTasks({ topologies: [topology], workers: Effect.void }),
  // @ts-expect-error: the prefix is called deadLetters
  () => defineTasks({ topologies: [topology], workers, prefixes: { dlq: "mail" } }),
  // @ts-expect-error: the topology of the runtime is the first of topologies
  () => defineTasks({ topologies: [topology], workers, runtime: { topology } }),
  // @ts-expect-error: only defineTasks makes Tasks
  (): Tasks => ({ workers, queues: [], runtime: { topology, dlqStorePrefix: "mail", observationStorePrefix: "mail" } })
]
