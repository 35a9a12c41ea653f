import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Stream } from "effect"
import { HttpClient, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Scope } from "../../../src/control/api/schema/Security.ts"
import * as ControlApp from "../../../src/control/ControlApp.ts"
import { Database } from "../../../src/services/Database.ts"
import * as Secret from "../../../src/state/Secret.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import { eventually } from "../../Eventually.ts"
import { admin, at, type Call, call, layer as listener, ok, refusalOf } from "../Listener.ts"

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const

/** Says which path and body it received. */
const routes = HttpRouter.use((router) =>
  Effect.forEach(
    methods,
    (method) =>
      router.add(
        method,
        "/queues/:queue",
        Effect.gen(function* () {
          const { text, url } = yield* HttpServerRequest.HttpServerRequest
          const { queue } = yield* HttpRouter.params
          return HttpServerResponse.jsonUnsafe({ url, queue, body: yield* Effect.orDie(text) })
        })
      ),
    { discard: true }
  )
)

/** Begins a cancellation of many tasks. */
const many = HttpRouter.add(
  "POST",
  "/tasks/cancellations",
  HttpServerResponse.jsonUnsafe(
    { cancellation_id: "c1", state: "running", total: 3, query: { type: "mail" }, requested: 0 },
    { status: 202 }
  )
)

/** Changes nothing, and is no operation. */
const check = HttpRouter.add("POST", "/dlq/messages/:dlq_id/edits/check", HttpServerResponse.empty())

/** Ends only when its client has hung up. */
const slow = HttpRouter.add(
  "POST",
  "/slow/:queue",
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    Effect.callback<HttpServerResponse.HttpServerResponse>((resume) => {
      const response = NodeHttpServerRequest.toServerResponse(request)
      response.once("close", () => resume(Effect.succeed(HttpServerResponse.jsonUnsafe({ queue: "slow" }))))
    })
  )
)

/** An event stream that says nothing and does not end. */
const endless = HttpRouter.add(
  "GET",
  "/events/:task_id",
  HttpServerResponse.stream(Stream.concat(Stream.succeed(Buffer.from(": connected\n\n")), Stream.never), {
    contentType: "text/event-stream",
    headers: { "x-told": "yes" }
  })
)

const tokenOf = Effect.fnUntraced(function* (...scopes: ReadonlyArray<Scope>) {
  const { sql } = yield* Database
  const value = Secret.mint(Secret.operatorTokenPrefix)
  yield* sql`INSERT INTO operator_tokens (token_prefix, token_hash, scopes)
    VALUES (${Secret.displayPrefix(value)}, ${Secret.digest(value)}, ${scopes})`
  return `Bearer ${Redacted.value(value)}`
})

const path = "/admin-ui/tasks/queues/a%2Fb?x=1"
const events = Effect.map(ok("GET", `${admin}/audit-events?action=tasks:operate`), (json) =>
  Array.isArray(json) ? json : []
)

describe("the routes of tasks at the control listener", () => {
  layer(
    listener(EmbeddedDatabase.layer, {
      routes: ControlApp.layerWithTasks(Layer.mergeAll(routes, many, endless, check, slow))
    }),
    {
      excludeTestServices: true
    }
  )((it) => {
    it.effect("are the same below /admin-ui/tasks, with their parameters and bodies", () =>
      Effect.gen(function* () {
        const answer = yield* call("POST", path, { text: "content" })
        assert.deepStrictEqual(answer.json, { url: "/queues/a%2Fb?x=1", queue: "a/b", body: "content" })
        assert.strictEqual(answer.headers["cache-control"], "no-store")
      })
    )

    it.effect("tasks:read reads, and tasks:operate also changes", () =>
      Effect.gen(function* () {
        const statuses = (authorization: string) =>
          Effect.forEach(methods, (method) => Effect.map(call(method, path, { authorization }), ({ status }) => status))
        assert.deepStrictEqual(yield* statuses(yield* tokenOf("tasks:read")), [200, 403, 403, 403, 403, 403])
        assert.deepStrictEqual(yield* statuses(yield* tokenOf("tasks:operate")), [200, 200, 200, 200, 200, 200])
        assert.deepStrictEqual(
          yield* statuses(yield* tokenOf("usage:read", "operators:manage", "settings:update")),
          [403, 403, 403, 403, 403, 403]
        )
      })
    )

    it.effect("nobody without a token gets anything, however the path is written", () =>
      Effect.gen(function* () {
        const wrong: Call = { authorization: null }
        for (const written of [path, "/admin-ui/%74asks/queues/x", "/admin-ui/tasks/nothing", "/admin-ui/tasks"]) {
          assert.strictEqual((yield* call("GET", written, wrong)).status, 401, written)
          assert.strictEqual((yield* call("POST", written, wrong)).status, 401, written)
        }
        const unknown = `Bearer ${Redacted.value(Secret.mint(Secret.operatorTokenPrefix))}`
        assert.strictEqual(
          refusalOf(yield* call("GET", path, { authorization: unknown })).code,
          "invalid_operator_token"
        )
      })
    )

    it.effect("what an operator asks for is in the audit log, and what is refused or read is not", () =>
      Effect.gen(function* () {
        const before = (yield* events).length
        yield* call("GET", path)
        yield* call("POST", path, { authorization: yield* tokenOf("tasks:read") })
        assert.strictEqual((yield* events).length, before)
        yield* call("POST", path, { headers: { "x-request-id": "at-three" } })
        const [event, ...rest] = yield* events
        assert.strictEqual(rest.length, before)
        assert.deepStrictEqual(
          [at(event, "target_id"), at(event, "after"), at(event, "request_id")],
          ["/queues/a%2Fb?x=1", { method: "POST", path: "/queues/a%2Fb?x=1" }, "at-three"]
        )
        // the payload of the response is left out
        const results = yield* ok("GET", `${admin}/audit-events?action=tasks:operated&limit=1`)
        assert.deepStrictEqual(
          [at(results, 0, "after"), at(results, 0, "request_id")],
          [{ method: "POST", path: "/queues/a%2Fb?x=1", status: 200, result: { queue: "a/b" } }, "at-three"]
        )
        const operated = (yield* events).length
        yield* call("POST", "/admin-ui/tasks/dlq/messages/x/edits/check")
        yield* call("POST", "/admin-ui/tasks/dlq/replays/check")
        assert.strictEqual((yield* events).length, operated)
        yield* call("POST", "/admin-ui/tasks/queues/x?x=/edits/check")
        yield* call("POST", "/admin-ui/tasks/queues/x?x=/dlq/messages/x/edits/check")
        assert.strictEqual((yield* events).length, operated + 2)
      })
    )

    it.effect("a cancellation of many tasks is in the audit log with its id, its search and how many they are", () =>
      Effect.gen(function* () {
        const read = yield* call("POST", "/admin-ui/tasks/tasks/cancellations", {
          authorization: yield* tokenOf("tasks:read")
        })
        assert.strictEqual(read.status, 403)
        yield* call("POST", "/admin-ui/tasks/tasks/cancellations")
        const results = yield* ok("GET", `${admin}/audit-events?action=tasks:operated&limit=1`)
        assert.deepStrictEqual(at(results, 0, "after"), {
          method: "POST",
          path: "/tasks/cancellations",
          status: 202,
          result: { cancellation_id: "c1", state: "running", total: 3, query: { type: "mail" } }
        })
      })
    )

    it.effect("an operation whose client hangs up is in the audit log with its result", () =>
      Effect.gen(function* () {
        const asking = yield* Effect.forkChild(call("POST", "/admin-ui/tasks/slow/x"))
        yield* eventually(events, (all) => at(all[0], "target_id") === "/slow/x")
        yield* Fiber.interrupt(asking)
        const results = ok("GET", `${admin}/audit-events?action=tasks:operated&limit=1`)
        yield* eventually(results, (all) => at(all, 0, "target_id") === "/slow/x")
        assert.deepStrictEqual(at(yield* results, 0, "after", "result"), { queue: "slow" })
      })
    )

    it.effect("an event stream ends soon after its token is revoked, and not before", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const open = (authorization: string) =>
          HttpClient.get("/admin-ui/tasks/events/t1", { headers: { authorization } })
        const [revoked, kept] = [yield* tokenOf("tasks:read"), yield* tokenOf("tasks:read")]
        const streams = [yield* open(revoked), yield* open(kept)]
        assert.deepStrictEqual(
          streams.map(({ headers, status }) => [status, headers["content-type"], headers["x-told"]]),
          Array.from({ length: 2 }, () => [200, "text/event-stream", "yes"])
        )
        const [first, second] = yield* Effect.forEach(streams, ({ stream }) =>
          Effect.forkScoped(Stream.runCollect(Stream.decodeText(stream)))
        )
        assert(first !== undefined && second !== undefined)
        yield* sql`UPDATE operator_tokens SET revoked_at = now(), disabled = true
          WHERE token_hash = ${Secret.digest(Redacted.make(revoked.replace("Bearer ", "")))}`
        assert.strictEqual((yield* Fiber.join(first)).join(""), ": connected\n\n")
        assert.isUndefined(second.pollUnsafe())
      })
    )

    it.effect("a path that is none is a 404 for operators", () =>
      Effect.gen(function* () {
        const answer = yield* call("GET", "/admin-ui/tasks/nothing")
        assert.deepStrictEqual(refusalOf(answer), { status: 404, code: "not_found", param: null })
      })
    )
  })
})
