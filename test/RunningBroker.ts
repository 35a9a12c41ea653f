import { randomUUID } from "node:crypto"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import * as BrokerAmqp from "../layers/BrokerAmqp.ts"
import { Broker, type Queue } from "../src/services/Broker.ts"

/** `null`: no RabbitMQ on this machine. */
export const server = inject("rabbitmq")

export const url = Redacted.make(server ?? "")

/** Whom the server knows us as. */
export const user = server === null ? "" : decodeURIComponent(new URL(server).username)

/** The server that is under test, as a proxy's target. */
export const target = () => {
  const { hostname, port } = new URL(server ?? "")
  return { host: hostname, port: Number(port || 5672) }
}

export const through = (proxy: { readonly port: number }) => {
  const url = new URL(server ?? "")
  url.host = `127.0.0.1:${proxy.port}`
  return Redacted.make(url.href)
}

export const layer = (options: Partial<BrokerAmqp.Options> = {}) =>
  BrokerAmqp.layer({ url, name: "svc-test", closeWithin: "500 millis", ...options })

/** A name of its own. */
export const name = (what: string) => `svc-test-${what}-${randomUUID()}`

/** Gone with the scope, by whatever connection. */
export const removed = (queue: string, ...exchanges: ReadonlyArray<string>) =>
  Effect.addFinalizer(() =>
    Effect.flatMap(Broker, (broker) => broker.remove({ queues: [queue], exchanges })).pipe(
      Effect.provide(layer()),
      Effect.ignore
    )
  )

/** A queue that is there until the scope closes. */
export const queue = Effect.fnUntraced(function* (options: Omit<Queue, "name"> = {}) {
  const broker = yield* Broker
  const queue = name("queue")
  yield* removed(queue)
  yield* broker.declare({ exchanges: [], queues: [{ name: queue, ...options }], bindings: [] })
  return queue
})
