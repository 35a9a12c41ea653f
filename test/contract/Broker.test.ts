import { Effect, Layer } from "effect"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import { ConnectionFaults, suite } from "./Broker.ts"

const memory = Layer.effect(
  ConnectionFaults,
  Effect.map(BrokerMemory.BrokerServer, ({ cut, restore }) => ConnectionFaults.of({ cut, restore }))
).pipe(Layer.provideMerge(BrokerMemory.layerConnection()), Layer.provideMerge(BrokerMemory.layerServer()))

suite("memory", memory)
