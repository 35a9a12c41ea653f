import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { Broker, type Delivery } from "../../src/services/Broker.ts"
import * as RedisDLQStore from "../../src/status/dead-letters/RedisDLQStore.ts"
import * as DeadLetterRoutes from "../../src/status/http/DeadLetterRoutes.ts"
import * as ReplayJobs from "../../src/status/replay/ReplayJobs.ts"
import * as ReplayWorker from "../../src/status/replay/ReplayWorker.ts"
import * as RunningBroker from "../RunningBroker.ts"
import * as TemporaryNames from "../TemporaryNames.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"
import type { JsonAnswer } from "./JsonAnswer.ts"

const memory = Layer.mergeAll(
  RedisMemory.layer({ prefix: "svc-test:" }),
  BrokerMemory.layerConnection().pipe(Layer.provideMerge(BrokerMemory.layerServer()))
)

const servers = Layer.mergeAll(TemporaryPrefix.layer, RunningBroker.layer())

export const inMemory = Layer.provideMerge(TemporaryNames.layer, memory)

/** What the suites run on. */
export const variants = [
  { name: "in memory", skip: false, doors: inMemory },
  {
    name: "on Redis and RabbitMQ",
    skip: TemporaryPrefix.server === null || RunningBroker.server === null,
    doors: Layer.provideMerge(TemporaryNames.layer, servers)
  }
]

/** The store and the jobs of one process. */
export const stores = (options: RedisDLQStore.Options = {}, jobs: ReplayJobs.Options = {}) =>
  Layer.provideMerge(ReplayJobs.layer(jobs), RedisDLQStore.layer(options))

/** A process that serves dead letters on a socket and works on jobs. */
export const start = Effect.fnUntraced(function* (
  options: DeadLetterRoutes.Options = {},
  {
    around = Layer.empty,
    worker = {}
  }: {
    /** Middleware of the whole server. */
    readonly around?: Layer.Layer<never, never, HttpRouter.HttpRouter>
    /** `null`: nobody works on jobs. */
    readonly worker?: ReplayWorker.Options | null
  } = {}
) {
  const routes = HttpRouter.serve(Layer.merge(DeadLetterRoutes.layer(options), around), {
    disableLogger: true,
    disableListenLog: true
  })
  const context = yield* Layer.build(
    Layer.provideMerge(routes, NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 }))
  )
  const jobs = yield* Effect.serviceOption(ReplayJobs.ReplayJobs)
  if (worker !== null && Option.isSome(jobs)) {
    yield* Layer.build(
      ReplayWorker.layer({ lookEvery: "20 millis", perSecond: 100_000, ...worker }).pipe(
        Layer.provide(Layer.succeed(ReplayJobs.ReplayJobs, jobs.value))
      )
    )
  }
  const { address } = Context.get(context, HttpServer.HttpServer)
  const url = `http://127.0.0.1:${"port" in address ? address.port : 0}`
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    Effect.promise(async (): Promise<JsonAnswer> => {
      const answer = await fetch(url + path, {
        method,
        headers,
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) })
      })
      const text = await answer.text()
      return { status: answer.status, body: text === "" ? undefined : JSON.parse(text) }
    })
  return {
    url,
    call,
    get: (path: string) => call("GET", path),
    post: (path: string, body?: unknown) => call("POST", path, body)
  }
})

/** Every message of a queue, taken out of it. */
export const drained = Effect.fnUntraced(function* (queue: string) {
  const channel = yield* (yield* Broker).channel({ prefetch: 1 })
  const letters: Array<Delivery> = []
  while (true) {
    const found = yield* channel.get(queue)
    if (Option.isNone(found)) return letters
    found.value.settle("ack")
    letters.push(found.value)
  }
}, Effect.scoped)

/** A queue that is there. */
export const queue = Effect.fnUntraced(function* (base: string) {
  const name = (yield* TemporaryNames.TemporaryNames).queue(base)
  yield* (yield* Broker).declare({ exchanges: [], queues: [{ name }], bindings: [] })
  return name
})
