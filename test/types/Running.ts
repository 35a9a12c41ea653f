import { Effect, Layer, Redacted } from "effect"
import { expectTypeOf } from "vitest"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { Gateway } from "../../src/gateway/index.ts"
import { type ObservationStore, RedisObservationStore } from "../../src/graph/index.ts"
import {
  type Broker,
  BrokerClient,
  Handler,
  type Redis,
  type SettingsError,
  type SharedTasksSharedStatusTopology,
  TaskConsumer
} from "../../src/messaging/index.ts"
import { Database } from "../../src/services/index.ts"

declare const topology: SharedTasksSharedStatusTopology

const worker = TaskConsumer.layer({ handler: Handler.make(() => Effect.void) })
const client = BrokerClient.layer({ topology })
const broker = BrokerMemory.layer()
const send = Effect.flatMap(BrokerClient, ({ publishTask }) => publishTask({ task_id: "m1" }))

export const runs = [
  () => Effect.runPromise(send.pipe(Effect.provide(Layer.provide(client, broker)))),
  () => Effect.runPromise(Layer.launch(worker.pipe(Layer.provide(client), Layer.provide(broker))))
]

export const mistakes = [
  // @ts-expect-error: no layer provides the BrokerClient
  () => Effect.runPromise(send),
  // @ts-expect-error: the client needs a Broker
  () => Effect.runPromise(send.pipe(Effect.provide(client))),
  // @ts-expect-error: the broker provides a Broker and no BrokerClient
  () => Effect.runPromise(send.pipe(Effect.provide(broker))),
  // @ts-expect-error: the worker needs a BrokerClient
  () => Effect.runPromise(Layer.launch(worker.pipe(Layer.provide(broker)))),
  // @ts-expect-error: mergeAll does not provide the client with the broker
  () => Effect.runPromise(send.pipe(Effect.provide(Layer.mergeAll(client, broker)))),
  // @ts-expect-error: a Redis is no Broker
  () => Effect.runPromise(send.pipe(Effect.provide(Layer.provide(client, RedisMemory.layer())))),
  // @ts-expect-error: the gateway needs a Database among others
  () => Effect.runPromise(Layer.launch(Gateway.layer)),
  // @ts-expect-error: a failure of the connection is not handled
  (): Layer.Layer<Broker> => BrokerAmqp.layer({ url: Redacted.make("amqp://127.0.0.1") }),
  // @ts-expect-error: the database needs a layer
  () => Effect.runPromise(Effect.flatMap(Database.Database, ({ ping }) => ping))
]

expectTypeOf(client).toEqualTypeOf<Layer.Layer<BrokerClient, never, Broker>>()
expectTypeOf(RedisObservationStore.layer()).toEqualTypeOf<Layer.Layer<ObservationStore, SettingsError, Redis>>()
expectTypeOf<Effect.Services<typeof send>>().toEqualTypeOf<BrokerClient>()
