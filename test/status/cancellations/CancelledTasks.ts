import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import * as ControlStore from "../../../src/messaging/control/ControlStore.ts"
import * as Cancellations from "../../../src/status/cancellations/Cancellations.ts"
import * as CancellationWorker from "../../../src/status/cancellations/CancellationWorker.ts"
import * as CancellationRoutes from "../../../src/status/http/CancellationRoutes.ts"
import * as TaskCancellation from "../../../src/status/queues/TaskCancellation.ts"
import * as RedisStatusStore from "../../../src/status/store/RedisStatusStore.ts"
import { StatusStore } from "../../../src/status/store/StatusStore.ts"
import * as PostgresTaskIndex from "../../../src/status/tasks/PostgresTaskIndex.ts"
import * as RedisTaskIndex from "../../../src/status/tasks/RedisTaskIndex.ts"
import { TaskIndex } from "../../../src/status/tasks/TaskIndex.ts"
import { TaskIndexer } from "../../../src/status/tasks/TaskIndexer.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import { event } from "../Events.ts"
import type { JsonAnswer } from "../JsonAnswer.ts"

const memory = RedisMemory.layer({ prefix: "svc-test:" })

const redisIndex = RedisTaskIndex.layer()
export const inMemory = Layer.provideMerge(redisIndex, memory)
const embeddedIndex = Layer.provide(PostgresTaskIndex.layer(), MigratedDatabase.embedded)
const postgresIndex = Layer.provide(PostgresTaskIndex.layer(), MigratedDatabase.of(TemporaryDatabase.layer))

const isReal = TemporaryPrefix.server !== null

/** The servers and stores on which the suites run. */
export const variants = [
  { name: "all in memory", skip: false, doors: () => inMemory },
  {
    name: "in memory, the index in an embedded PostgreSQL",
    skip: false,
    doors: () => Layer.provideMerge(embeddedIndex, memory)
  },
  { name: "on Redis", skip: !isReal, doors: () => Layer.provideMerge(redisIndex, TemporaryPrefix.layer) },
  {
    name: "on Redis, the index in PostgreSQL",
    skip: !isReal || TemporaryDatabase.server === null,
    doors: () => Layer.provideMerge(postgresIndex, TemporaryPrefix.layer)
  }
]

const indexer = Layer.succeed(
  TaskIndexer,
  TaskIndexer.of({
    attributes: ["book"],
    state: Effect.succeed({ caughtUp: true, backfilled: true, failure: null }),
    offer: () => {}
  })
)

/** The stores and jobs of one process. */
export const services = (options: Cancellations.Options = {}, control = ControlStore.layer()) =>
  Cancellations.layer(options).pipe(
    Layer.provideMerge(TaskCancellation.layer()),
    Layer.provideMerge(RedisStatusStore.layer()),
    Layer.provideMerge(control)
  )

const newest = 1_790_000_000_000_000

interface Given {
  readonly status?: string
  readonly type?: string
  readonly isTerminal?: boolean
  readonly attributes?: Readonly<Record<string, string>>
}

/** Tasks with a status, in the index and in the store. The first one is the newest. */
export const tasks = Effect.fnUntraced(function* (
  ids: ReadonlyArray<string>,
  { attributes = {}, isTerminal = false, status = isTerminal ? "completed" : "pending", type = "mail" }: Given = {}
) {
  const [index, statuses] = [yield* TaskIndex, yield* StatusStore]
  yield* Effect.forEach(ids, (id) => statuses.store(event(id, `${id}-${status}`, { status })), { concurrency: 16 })
  yield* index.record(
    ids.map((task_id, n) => ({
      isProgress: true,
      isTerminal,
      task: {
        task_id,
        task_type: type,
        status,
        first_micros: newest - n,
        last_micros: newest - n,
        attempt: null,
        queue: null,
        worker: null,
        parent_id: null,
        error_class: null,
        message: null,
        attributes
      }
    }))
  )
})

/** The answer of the worker of a task to the request. */
export const answer = Effect.fnUntraced(function* (taskId: string, state: "cancelled" | "ended") {
  const store = yield* ControlStore.ControlStore
  const request = yield* store.cancelOf(taskId)
  assert(Option.isSome(request), `${taskId} was asked for`)
  yield* store.answerCancel(request.value, { state, worker: "w1" })
})

export const numbered = (from: number, to: number, name = "t"): ReadonlyArray<string> =>
  Array.from({ length: to - from + 1 }, (_, n) => `${name}-${String(from + n).padStart(5, "0")}`)

/** A process that serves the routes on a socket and works on jobs. */
export const start = Effect.fnUntraced(function* (
  worker: CancellationWorker.Options | null = {},
  options: CancellationRoutes.Options = {}
) {
  const routes = HttpRouter.serve(CancellationRoutes.layer(options), { disableLogger: true, disableListenLog: true })
  const context = yield* Layer.build(
    routes.pipe(
      Layer.provideMerge(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 })),
      Layer.provide(indexer)
    )
  )
  if (worker !== null)
    yield* Layer.build(CancellationWorker.layer({ lookEvery: "20 millis", perSecond: 100_000, ...worker }))
  const { address } = Context.get(context, HttpServer.HttpServer)
  const url = `http://127.0.0.1:${"port" in address ? address.port : 0}`
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    Effect.promise(async (): Promise<JsonAnswer> => {
      const response = await fetch(`${url}/tasks/cancellations${path}`, {
        method,
        headers,
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) })
      })
      return { status: response.status, body: await response.json() }
    })
  const get = (path = "") => call("GET", path)
  return {
    call,
    get,
    post: (body: unknown, headers?: Record<string, string>) => call("POST", "", body, headers),
    stop: (id: string) => call("POST", `/${id}/stop`),
    withdraw: (id: string) => call("POST", `/${id}/withdraw`),
    job: (id: string) => Effect.map(get(`/${id}`), ({ body }) => body)
  }
})
