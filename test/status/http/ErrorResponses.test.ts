import { createServer, request } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { HttpRouter, HttpServer, type HttpServerResponse } from "effect/http"
import * as ExecutionGraphService from "../../../src/graph/ExecutionGraphService.ts"
import * as GraphRoutes from "../../../src/graph/GraphRoutes.ts"
import { DeadLetterStore } from "../../../src/status/dead-letters/DeadLetterStore.ts"
import * as History from "../../../src/status/history/History.ts"
import * as DeadLetterRoutes from "../../../src/status/http/DeadLetterRoutes.ts"
import * as ErrorResponses from "../../../src/status/http/ErrorResponses.ts"
import * as StatusRoutes from "../../../src/status/http/StatusRoutes.ts"
import * as RedisStatusStore from "../../../src/status/store/RedisStatusStore.ts"
import { StatusStore } from "../../../src/status/store/StatusStore.ts"
import { logged } from "../../messaging/Logged.ts"
import { shared } from "../../messaging/SampleTopologies.ts"
import { inMemory, stores } from "../DeadLetterServer.ts"

const broken = HttpRouter.add(
  "GET",
  "/broken",
  Effect.sync((): HttpServerResponse.HttpServerResponse => {
    throw new Error("secret of the program")
  })
)

const routers = Layer.mergeAll(
  StatusRoutes.layer(),
  DeadLetterRoutes.layer({ brokerDlqQueueNames: [] }),
  GraphRoutes.layer()
)

const config = { disableLogger: true, disableListenLog: true, routerConfig: StatusRoutes.routerConfig } as const

/** As a program mounts them that has a listener of its own. */
const alone = HttpRouter.serve(routers, config)

const stored = Layer.merge(RedisStatusStore.layer(), stores())

const wholeStores = Layer.effectContext(Effect.context<StatusStore | DeadLetterStore>())

/** Every question to the stores is a defect. */
const brokenStores = Layer.unwrap(
  Effect.map(Effect.context<StatusStore | DeadLetterStore>(), (context) => {
    const broken = Effect.die(new Error("secret of the program"))
    return Layer.merge(
      Layer.succeed(StatusStore, {
        ...Context.get(context, StatusStore),
        latest: () => broken,
        history: () => broken
      }),
      Layer.succeed(DeadLetterStore, {
        ...Context.get(context, DeadLetterStore),
        get: () => broken,
        list: () => broken,
        queues: broken
      })
    )
  })
)

/** Routers behind one listener; asked by targets as they are, which `fetch` would correct. */
const asking = Effect.fnUntraced(function* (
  listener: typeof alone = HttpRouter.serve(Layer.mergeAll(routers, broken, ErrorResponses.layer), config),
  over: Layer.Layer<StatusStore | DeadLetterStore, never, StatusStore | DeadLetterStore> = wholeStores
) {
  const served = listener.pipe(
    Layer.provide([ExecutionGraphService.layer({ topology: shared() }), History.layerStore()]),
    Layer.provide(over),
    Layer.provide(stored),
    Layer.provide(inMemory),
    Layer.provideMerge(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 }))
  )
  const { address } = Context.get(yield* Layer.build(served), HttpServer.HttpServer)
  const port = "port" in address ? address.port : 0
  return (method: string, path: string) =>
    Effect.callback<{ readonly status: number | undefined; readonly allow: unknown; readonly text: string }>(
      (resume) => {
        const asked = request({ host: "127.0.0.1", port, method, path, agent: false }, (answer) => {
          let text = ""
          answer.setEncoding("utf8")
          answer.on("data", (chunk: string) => {
            text += chunk
          })
          answer.on("end", () => {
            resume(Effect.succeed({ status: answer.statusCode, allow: answer.headers.allow, text }))
          })
        })
        asked.end()
      }
    )
})

const detail = (text: string): unknown => JSON.parse(text).detail

describe("the routers' refusals", () => {
  it.live("have one shape, also where no route answers and where a handler breaks", () =>
    Effect.gen(function* () {
      const ask = yield* asking()
      for (const [method, path, status] of [
        ["GET", "/nothing", 404],
        ["GET", "/status/%ZZ", 404],
        ["GET", "/status/%ED%A0%80", 404],
        ["TRACE", "/status/t", 404],
        ["PROPFIND", "/dlq/queues", 404],
        ["GET", `/executions/${"x".repeat(3_000)}/graph`, 404],
        ["GET", "/broken", 500]
      ] as const) {
        const answer = yield* ask(method, path)
        assert.strictEqual(answer.status, status, `${method} ${path}`)
        assert.isString(detail(answer.text))
        assert.notInclude(answer.text, "secret")
      }
    })
  )

  it.live("have it where a handler breaks that was mounted alone", () => {
    const log = logged()
    return Effect.gen(function* () {
      const ask = yield* asking(alone, brokenStores)
      const paths = ["/status/t", "/history?task_id=t", "/dlq/queues", "/dlq/messages/1", "/executions/t/graph"]
      for (const path of paths) {
        const answer = yield* ask("GET", path)
        assert.strictEqual(answer.status, 500, path)
        assert.match(String(detail(answer.text)), /The reason is in its log/)
      }
      assert.lengthOf(
        log
          .lines()
          .filter((line) =>
            line.includes("A GET request failed with 500, because its handler threw an unexpected error")
          ),
        paths.length
      )
    }).pipe(Effect.provide(log.layer))
  })

  it.live("name the methods that a path has", () =>
    Effect.gen(function* () {
      const ask = yield* asking()
      for (const [method, path, allow] of [
        ["OPTIONS", "/status/t", "GET, HEAD"],
        ["POST", "/history", "GET, HEAD"],
        ["DELETE", "/dlq/queues", "GET, HEAD"],
        ["PUT", "/dlq/replays", "POST, GET, HEAD"],
        ["GET", "/dlq/messages/1/replay", "POST"],
        ["POST", "/broker/dlq/queues", "GET, HEAD"],
        ["PATCH", "/executions/t/graph", "GET, HEAD"]
      ] as const) {
        const answer = yield* ask(method, path)
        assert.deepStrictEqual([answer.status, answer.allow], [405, allow], `${method} ${path}`)
        assert.isString(detail(answer.text))
      }
    })
  )

  it.live("take no task for another: what a query and a path hold is read to its end", () =>
    Effect.gen(function* () {
      const ask = yield* asking()
      assert.include((yield* ask("GET", "/history?task_id=a?b")).text, '"task_id":"a?b"')
      for (const path of ["/status/a;b", "/executions/a/graph;b"]) {
        const answer = yield* ask("GET", path)
        assert.strictEqual(answer.status, 422, path)
        assert.include(answer.text, "%3B")
      }
      assert.include((yield* ask("GET", "/status/a%3Bb")).text, "a;b")
    })
  )

  it.live("do not break on a target that is no valid URL", () =>
    Effect.gen(function* () {
      const ask = yield* asking()
      assert.strictEqual((yield* ask("GET", "http://[/dlq/messages?limit=1")).status, 200)
    })
  )
})
