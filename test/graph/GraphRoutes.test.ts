import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { ExecutionGraph } from "../../src/graph/ExecutionGraph.ts"
import { layer as graphs, type Options } from "../../src/graph/ExecutionGraphService.ts"
import { ExecutionView } from "../../src/graph/ExecutionView.ts"
import { Explanation } from "../../src/graph/Explain.ts"
import * as GraphRoutes from "../../src/graph/GraphRoutes.ts"
import { executionGraphMermaid } from "../../src/graph/Mermaid.ts"
import { ObservationStore } from "../../src/graph/observations/ObservationStore.ts"
import * as StatusRuntime from "../../src/graph/StatusRuntime.ts"
import * as ExactJson from "../../src/messaging/envelope/ExactJson.ts"
import { ContractAliasConfig } from "../../src/messaging/topology/Aliases.ts"
import { RedisError } from "../../src/services/Redis.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import { StatusStore } from "../../src/status/store/StatusStore.ts"
import { shared } from "../messaging/SampleTopologies.ts"
import { acked, at, received, record } from "./Evidence.ts"

const stores = StatusRuntime.stores({ topology: shared() }).pipe(Layer.provide(RedisMemory.layer({ prefix: "svc:" })))

/** Asks a server on a socket of its own, over the stores of the test. */
const asking = Effect.fnUntraced(function* (
  routes: GraphRoutes.Options = {},
  options: Omit<Options, "topology"> = {},
  replaced: Layer.Layer<never> | Layer.Layer<StatusStore> = Layer.empty
) {
  const given = yield* Effect.context<StatusStore | DeadLetterStore | ObservationStore>()
  const serving = HttpRouter.serve(GraphRoutes.layer(routes), {
    disableLogger: true,
    disableListenLog: true,
    routerConfig: { maxParamLength: 1024 }
  }).pipe(
    Layer.provide(graphs({ topology: shared(), ...options })),
    Layer.provide(replaced),
    Layer.provide(Layer.succeedContext(given)),
    Layer.provideMerge(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 }))
  )
  const { address } = Context.get(yield* Layer.build(serving), HttpServer.HttpServer)
  const port = "port" in address ? address.port : 0
  return (path: string) =>
    Effect.promise(async () => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`)
      const text = await answer.text()
      const type = answer.headers.get("content-type") ?? ""
      return { status: answer.status, type, text, body: type.includes("json") ? JSON.parse(text) : text }
    })
})

const said = (task_id: string, status: string, seconds: number, meta: Record<string, unknown> = {}) =>
  Effect.flatMap(StatusStore, ({ store }) =>
    store({
      task_id,
      status,
      timestamp: at(seconds),
      meta,
      spec_version: "1.0",
      correlation_id: task_id,
      event_id: `${task_id} ${seconds}`
    })
  )

const T = "task-123"

describe("GraphRoutes", () => {
  it.live("answers with the graph, its text, its view, and why the task is not done", () =>
    Effect.gen(function* () {
      yield* said(T, "processing", 1)
      yield* (yield* ObservationStore).store(received(0))
      const get = yield* asking()
      const { body, status } = yield* get(`/executions/${T}/graph`)
      assert.strictEqual(status, 200)
      assert.deepStrictEqual(Object.keys(body), [
        "task_id",
        "topology_kind",
        "summary",
        "nodes",
        "edges",
        "annotations",
        "related_task_ids"
      ])
      const graph = Schema.decodeUnknownSync(ExecutionGraph)(body)
      assert.deepStrictEqual(
        graph.nodes.map(({ id }) => id),
        [`task:${T}`, `task-attempt:${T}:1`, `status:${T}:1`]
      )
      const mermaid = yield* get(`/executions/${T}/graph?format=mermaid`)
      assert.include(mermaid.type, "text/plain")
      assert.strictEqual(mermaid.body, executionGraphMermaid(graph))
      const view = yield* get(`/executions/${T}/view`)
      assert.deepStrictEqual(Schema.decodeUnknownSync(ExecutionView)(view.body).graph, graph)
      const explanation = yield* get(`/executions/${T}/explain`)
      assert.deepInclude(Schema.decodeUnknownSync(Explanation)(explanation.body), {
        task_id: T,
        verdict: "being_handled"
      })
    }).pipe(Effect.scoped, Effect.provide(stores))
  )

  it.live("shows the numbers of a status as they came", () =>
    Effect.gen(function* () {
      yield* said(T, "processing", 1, { order: ExactJson.parse("12345678901234567890") })
      const get = yield* asking()
      for (const name of ["graph", "view"]) {
        assert.include((yield* get(`/executions/${T}/${name}`)).text, '"meta":{"order":12345678901234567890}')
      }
    }).pipe(Effect.scoped, Effect.provide(stores))
  )

  it.live("knows nothing of a task that nothing was ever heard of", () =>
    Effect.gen(function* () {
      const get = yield* asking()
      for (const name of ["graph", "view", "explain"]) {
        const { body, status } = yield* get(`/executions/nobody/${name}`)
        assert.strictEqual(status, 404)
        assert.match(body.detail, /There is no status, observation or dead letter with task_id "nobody"/)
      }
    }).pipe(Effect.scoped, Effect.provide(stores))
  )

  it.live("knows a task by its children, its observations, or its dead letters alone", () =>
    Effect.gen(function* () {
      yield* said("child", "aggregating", 1, { parent_task_id: "parent" })
      yield* (yield* ObservationStore).store(received(0, { task_id: "observed" }))
      yield* (yield* DeadLetterStore).record({
        ...record(1, { task_id: "dead" }),
        headers: {},
        body: "",
        raw_body_b64: ""
      })
      const get = yield* asking()
      const parent = yield* get("/executions/parent/graph")
      assert.deepStrictEqual(parent.body.related_task_ids, ["child"])
      assert.strictEqual((yield* get("/executions/parent/view")).status, 200)
      const explained = yield* get("/executions/parent/explain")
      assert.deepInclude(explained.body, { verdict: "unknown", queue_name: null, children: 1 })
      assert.deepStrictEqual(explained.body.open_children, [{ task_id: "child", verdict: "unknown" }])
      assert.strictEqual(
        explained.body.sentence,
        "Its state is unknown. To determine it, the service needs the status and the observations. Children that are not known to be done, 1 of 1: child (unknown)."
      )
      assert.strictEqual((yield* get("/executions/observed/graph")).body.summary.graph_completeness, "full")
      assert.strictEqual((yield* get("/executions/dead/graph")).body.summary.graph_completeness, "partial")
      assert.strictEqual((yield* get("/executions/dead/explain")).body.verdict, "dead_lettered")
    }).pipe(Effect.scoped, Effect.provide(stores))
  )

  it.live("names the children that an acknowledged task waits for", () =>
    Effect.gen(function* () {
      const { store } = yield* ObservationStore
      for (const observation of [received(1, { task_id: "p" }), acked(2, { task_id: "p" })]) yield* store(observation)
      yield* said("p", "aggregating", 1.5)
      yield* said("c1", "completed", 3, { parent_task_id: "p" })
      yield* said("c2", "processing", 3, { parent_task_id: "p" })
      yield* store(received(3, { task_id: "c2" }))
      const get = yield* asking()
      const { body } = yield* get("/executions/p/explain")
      const { children, open_children, verdict } = Schema.decodeUnknownSync(Explanation)(body)
      assert.deepStrictEqual([verdict, children], ["waiting_for_children", 2])
      assert.deepStrictEqual(open_children, [{ task_id: "c2", verdict: "being_handled" }])
      yield* said("p", "completed", 4)
      assert.deepInclude((yield* get("/executions/p/explain")).body, { verdict: "finished", open_children: [] })
    }).pipe(Effect.scoped, Effect.provide(stores))
  )

  it.live("takes any task id: escaped, long, and in other scripts", () =>
    Effect.gen(function* () {
      const get = yield* asking()
      for (const id of ["a/b?c#d%2F", "งาน ☃", "x".repeat(255), "ง".repeat(85)]) {
        yield* said(id, "queued", 1)
        const { body, status } = yield* get(`/executions/${encodeURIComponent(id)}/graph`)
        assert.deepStrictEqual([status, body.task_id], [200, id])
      }
      const long = yield* get(`/executions/${"x".repeat(256)}/graph`)
      assert.deepStrictEqual(
        [long.status, long.body],
        [422, { detail: [{ loc: ["path", "task_id"], msg: "must have at most 255 bytes" }] }]
      )
      assert.strictEqual((yield* get("/executions/%20/graph")).status, 422)
      const format = yield* get(`/executions/${"x".repeat(255)}/graph?format=svg`)
      assert.deepStrictEqual([format.status, format.body.detail[0].loc], [422, ["query", "format"]])
    }).pipe(Effect.scoped, Effect.provide(stores))
  )

  it.live("bears the names and the path that it was given", () =>
    Effect.gen(function* () {
      yield* said(T, "queued", 1)
      const aliasConfig = new ContractAliasConfig({
        field_aliases: { task_id: "attempt_id" },
        http_aliases: { task_id: "attemptId" }
      })
      const get = yield* asking({ aliasConfig, executionsPath: "/runs" })
      const { body } = yield* get(`/runs/${T}/graph`)
      assert.strictEqual(Object.keys(body).at(-1), "attempt_id")
      assert.strictEqual(body.attempt_id, T)
      assert.strictEqual(body.nodes[0].task_id, T)
      assert.match((yield* get("/runs/nobody/graph")).body.detail, /attemptId "nobody"/)
    }).pipe(Effect.scoped, Effect.provide(stores))
  )

  it.live("says what it left out for the sake of its limits", () =>
    Effect.gen(function* () {
      for (const child of ["c1", "c2", "c3", "c4"]) {
        for (let second = 0; second < 40; second++) yield* said(child, "aggregating", second, { parent_task_id: "p" })
      }
      const letter = { headers: {}, body: "", raw_body_b64: "" }
      for (const second of [1, 2]) {
        yield* (yield* DeadLetterStore).record({ ...record(second, { task_id: "p" }), ...letter })
      }
      const get = yield* asking({}, { childrenLimit: 3, deadLetterLimit: 1, evidenceLimit: 100 })
      const { body } = yield* get("/executions/p/graph")
      const { nodes, related_task_ids, summary } = Schema.decodeUnknownSync(ExecutionGraph)(body)
      assert.deepStrictEqual(related_task_ids, ["c1", "c2", "c3"])
      assert.strictEqual(nodes.filter(({ kind }) => kind === "dlq_record").length, 1)
      assert.deepStrictEqual(summary.completeness_reasons, [
        { reason: "observations_missing", task_ids: ["c1", "c2", "c3", "p"] },
        { reason: "children_limit_reached", task_ids: ["p"] },
        { reason: "dead_letter_limit_reached", task_ids: ["p"] }
      ])
      const fewer = yield* asking({}, { evidenceLimit: 100, childrenLimit: 4 })
      const cut = (yield* fewer("/executions/p/graph")).body
      assert.deepInclude(cut.summary.completeness_reasons, { reason: "evidence_limit_reached", task_ids: ["c4"] })
      assert.include(JSON.stringify(cut.nodes), "aggregation_child:c4")
    }).pipe(Effect.scoped, Effect.provide(stores))
  )

  it.live("says that it cannot tell now, where a store is gone", () =>
    Effect.gen(function* () {
      const gone = Effect.fail(new RedisError({ operation: "command", retryable: true, cause: new Error("gone") }))
      const store = yield* StatusStore
      const replaced = Layer.succeed(StatusStore, { ...store, history: () => gone })
      const { body, status } = yield* (yield* asking({}, {}, replaced))(`/executions/${T}/graph`)
      assert.deepStrictEqual(
        [status, body],
        [503, { detail: "The data of the task cannot be read now: try again in a moment." }]
      )
    }).pipe(Effect.scoped, Effect.provide(stores))
  )

  it.effect("refuses impossible limits, all at once", () =>
    Effect.gen(function* () {
      const limits = { topology: shared(), childrenLimit: -1, deadLetterLimit: 201, evidenceLimit: 1 }
      const error = yield* Effect.flip(Layer.build(graphs(limits)))
      assert.deepStrictEqual(
        error.mistakes.map(({ field }) => field),
        ["childrenLimit", "deadLetterLimit", "evidenceLimit"]
      )
    }).pipe(Effect.scoped, Effect.provide(stores))
  )
})
