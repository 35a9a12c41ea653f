import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import * as GraphRoutes from "../../src/graph/GraphRoutes.ts"
import * as StatusRuntime from "../../src/graph/StatusRuntime.ts"
import * as Handler from "../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../src/messaging/consume/TaskConsumer.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import * as StatusRoutes from "../../src/status/http/StatusRoutes.ts"
import { eventually } from "../Eventually.ts"
import { shared, workflow } from "../messaging/SampleTopologies.ts"

const topology = shared({ status_use_streams: true })
const doors = Layer.merge(BrokerMemory.layer(), RedisMemory.layer({ prefix: "svc-test:" }))

/** The routes on a socket, over everything that `StatusRuntime` gives; answers who asks them. */
const asking = Effect.fnUntraced(function* (options: Partial<StatusRuntime.Options> = {}) {
  const context = yield* HttpRouter.serve(Layer.merge(StatusRoutes.layer(), GraphRoutes.layer()), {
    routerConfig: StatusRoutes.routerConfig,
    disableLogger: true,
    disableListenLog: true
  }).pipe(
    Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 0 })),
    Layer.provide(StatusRuntime.layer({ topology, ...options })),
    Layer.build
  )
  const { address } = Context.get(context, HttpServer.HttpServer)
  const port = address._tag === "UnixPathAddress" ? 0 : address.port
  return (path: string) =>
    Effect.promise(async () => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`)
      return { status: answer.status, body: decode(await answer.json()) }
    })
})

const decode = Schema.decodeUnknownSync(Schema.Record(Schema.String, Schema.Unknown))

const other = workflow({ status_use_streams: true })

const publish = (...ids: ReadonlyArray<string>) =>
  Effect.flatMap(BrokerClient, ({ publishTask }) =>
    Effect.forEach(ids, (task_id) => publishTask({ task_id }), { discard: true })
  ).pipe(Effect.provide(BrokerClient.layer({ topology })))

const where = "tasks.queue (after at most 2 other messages; no consumer)"

describe("a task that nobody has taken", () => {
  it.live("is explained by the queue that it waits in, and how many are before it", () =>
    Effect.gen(function* () {
      const get = yield* asking()
      yield* publish("t1", "t2", "t3")
      const explained = yield* eventually(get("/executions/t3/explain"), ({ status }) => status === 200)
      assert.deepInclude(explained.body, {
        task_id: "t3",
        verdict: "unknown",
        sentence: `There is no status, observation or dead letter of the task. If the task was published, it waits in ${where}.`,
        queue_name: "tasks.queue",
        ready: 3,
        consumers: 0,
        missing_evidence: ["status", "observations"]
      })
      const { body, status } = yield* get("/status/t3")
      assert.strictEqual(status, 404)
      assert.deepStrictEqual(body, {
        detail: `No status is stored for task_id "t3". If the task was published, it waits in ${where}.`
      })
      // the specification's answer: a graph has nothing to show
      assert.strictEqual((yield* get("/executions/t3/graph")).status, 404)
    }).pipe(Effect.scoped, Effect.provide(doors))
  )

  it.live("is not spoken of where nothing waits", () =>
    Effect.gen(function* () {
      const get = yield* asking({ otherTopologies: [other] })
      const handler = Handler.make(() => Effect.void)
      const worker = TaskConsumer.layer({ handler }).pipe(Layer.provide(BrokerClient.layer({ topology })))
      yield* Layer.build(worker)
      yield* publish("t1")
      yield* eventually(get("/executions/nobody/explain"), ({ status }) => status === 404)
      assert.deepStrictEqual(yield* get("/status/nobody"), {
        status: 404,
        body: { detail: 'No status is stored for task_id "nobody".' }
      })
    }).pipe(Effect.scoped, Effect.provide(doors))
  )

  it.live("is looked for in every queue of the topologies, while the broker answers", () =>
    Effect.gen(function* () {
      const get = yield* asking({ otherTopologies: [other] })
      yield* publish("t1")
      yield* Effect.flatMap(BrokerClient, ({ publishToStage }) => publishToStage({ task_id: "w1" }, "write")).pipe(
        Effect.provide(BrokerClient.layer({ topology: other }))
      )
      const { body } = yield* eventually(get("/executions/w1/explain"), ({ body }) =>
        String(body["sentence"]).includes("write.queue")
      )
      assert.match(
        String(body["sentence"]),
        /tasks\.queue \(as the only message; no consumer\), or in write\.queue \(as the only message/
      )
      assert.isNull(body["queue_name"])
      const server = yield* BrokerMemory.BrokerServer
      yield* server.freeze
      yield* eventually(get("/executions/w1/explain"), ({ status }) => status === 404)
      yield* server.thaw
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.merge(
          BrokerMemory.layerConnection().pipe(Layer.provideMerge(BrokerMemory.layerServer())),
          RedisMemory.layer({ prefix: "svc-test:" })
        )
      )
    )
  )
})
