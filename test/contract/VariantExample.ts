import { after, describe, it } from "node:test"
import { Effect, Layer } from "effect"
import { Broker } from "svc-runtime/messaging"
import { BrokerContract, BrokerMemory, Contract } from "svc-runtime/testing"

/** A broker that logs the routing key of each message. It has a fault: it loses `replyTo`. */
const logging = Layer.effect(
  Broker,
  Effect.map(Broker, (broker) => ({
    ...broker,
    publish: ({ properties: { replyTo: _, ...properties }, ...publication }) =>
      Effect.andThen(Effect.logDebug(publication.routingKey), broker.publish({ ...publication, properties }))
  }))
).pipe(Layer.provide(BrokerMemory.layerConnection()))

/** The laws of lost connections cut the connection of the variant. */
const faults = Layer.effect(
  BrokerContract.ConnectionFaults,
  Effect.map(BrokerMemory.BrokerServer, ({ cut, restore }) => ({ cut: cut(), restore }))
)

Contract.register(
  BrokerContract.suite,
  { name: "logging", layer: Layer.merge(logging, faults).pipe(Layer.provide(BrokerMemory.layerServer())) },
  { describe, it, afterAll: after }
)
