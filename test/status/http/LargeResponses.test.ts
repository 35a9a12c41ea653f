import { createServer, type IncomingMessage, request } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as ExecutionGraphService from "../../../src/graph/ExecutionGraphService.ts"
import * as GraphRoutes from "../../../src/graph/GraphRoutes.ts"
import { DeadLetterStore } from "../../../src/status/dead-letters/DeadLetterStore.ts"
import * as History from "../../../src/status/history/History.ts"
import * as DeadLetterRoutes from "../../../src/status/http/DeadLetterRoutes.ts"
import * as StatusRoutes from "../../../src/status/http/StatusRoutes.ts"
import { StatusStore } from "../../../src/status/store/StatusStore.ts"
import { shared } from "../../messaging/SampleTopologies.ts"
import { inMemory, stores } from "../DeadLetterServer.ts"
import { deadLetter } from "../DeadLetters.ts"
import { event } from "../Events.ts"

/** More than sockets hold for a client that does not read. */
const large = JSON.stringify(event("task-1", "e1", { message: "m".repeat(24 * 1024 * 1024) }))
const small = JSON.stringify(event("task-2", "e1", { message: "m" }))

/** The routers on a socket, over a store whose one event is large. Counts the histories that are read. */
const asking = Effect.gen(function* () {
  const read = { times: 0 }
  const store = StatusStore.of({
    store: () => Effect.die("nothing is stored"),
    latest: () => Effect.undefined,
    live: () => Effect.die("nobody follows"),
    childTaskIds: () => Effect.succeed([]),
    history: (taskId) =>
      Effect.sync(() => {
        read.times++
        const json = taskId === "task-2" ? small : large
        return { events: [{ sequence: 1, eventId: "e1", status: "running", json }], newest: 1, oldest: 1 }
      })
  })
  const routes = HttpRouter.serve(Layer.mergeAll(StatusRoutes.layer(), DeadLetterRoutes.layer(), GraphRoutes.layer()), {
    disableLogger: true,
    disableListenLog: true
  }).pipe(
    Layer.provide([ExecutionGraphService.layer({ topology: shared() }), History.layerStore()]),
    Layer.provide(Layer.succeed(StatusStore, store)),
    Layer.provideMerge(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 }))
  )
  const { address } = Context.get(yield* Layer.build(routes), HttpServer.HttpServer)
  const port = "port" in address ? address.port : 0
  /** The answer of a request from an address, of which nothing is read yet. */
  const ask = (localAddress: string, path: string) =>
    Effect.callback<IncomingMessage>((resume) => {
      request({ host: "127.0.0.1", port, path, localAddress, agent: false })
        .on("response", (answer) => resume(Effect.succeed(answer)))
        .end()
    })
  return { read, ask }
})

const all = (answer: IncomingMessage) =>
  Effect.callback<number>((resume) => {
    let bytes = 0
    answer.on("data", (chunk: Uint8Array) => {
      bytes += chunk.length
    })
    answer.on("end", () => resume(Effect.succeed(bytes)))
  })

it.live.each(["/history?task_id=task-1", "/dlq/messages/id-1", "/executions/task-1/graph"])(
  "an address has its next answer of %s when it has read the one before, and others need not wait for it",
  (path) =>
    Effect.gen(function* () {
      yield* (yield* DeadLetterStore).record(deadLetter(1))
      const { ask, read } = yield* asking
      const first = yield* ask("127.0.0.1", path)
      const second = yield* Effect.forkChild(ask("127.0.0.1", path), { startImmediately: true })
      const other = yield* ask("127.0.0.2", path)
      while (read.times < 3) yield* Effect.sleep("5 millis")
      assert.isUndefined(second.pollUnsafe())
      for (const answered of [Effect.succeed(first), Effect.succeed(other), Fiber.join(second)]) {
        const answer = yield* answered
        assert.strictEqual(answer.statusCode, 200)
        assert.isAbove(yield* all(answer), 24 * 1024 * 1024)
      }
      assert.strictEqual(read.times, 3)
    }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(inMemory))))
)

it.live("an address that does not read a large answer has small ones", () =>
  Effect.gen(function* () {
    const { ask } = yield* asking
    const unread = yield* ask("127.0.0.1", "/history?task_id=task-1")
    for (const path of ["/history?task_id=task-2", "/executions/task-2/graph", "/history?task_id=task-2"]) {
      const answer = yield* ask("127.0.0.1", path)
      assert.strictEqual(answer.statusCode, 200)
      yield* all(answer)
    }
    assert.isFalse(unread.complete)
  }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(inMemory))))
)
