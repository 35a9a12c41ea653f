import { describe } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as TcpProxy from "../TcpProxy.ts"
import { ConnectionFaults, suite } from "./Broker.ts"

const memory = Layer.effect(
  ConnectionFaults,
  Effect.map(BrokerMemory.BrokerServer, ({ cut, restore }) => ConnectionFaults.of({ cut, restore }))
).pipe(Layer.provideMerge(BrokerMemory.layerConnection()), Layer.provideMerge(BrokerMemory.layerServer()))

suite("memory", memory)

/** `null`: no RabbitMQ on this machine. */
const server = inject("rabbitmq")

/** Through a proxy, which can be cut. */
const amqp = Layer.unwrap(
  Effect.gen(function* () {
    const url = new URL(server ?? "")
    const { cut, port, restore } = yield* TcpProxy.make({ host: url.hostname, port: Number(url.port || 5672) })
    url.hostname = "127.0.0.1"
    url.port = String(port)
    return Layer.merge(
      Layer.succeed(ConnectionFaults, { cut, restore }),
      BrokerAmqp.layer({ url: Redacted.make(url.href), name: "svc-test-contract" })
    )
  })
)

describe.skipIf(server === null)("against a server", () => {
  suite("amqp", amqp)
})
