import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import { eventually } from "../Eventually.ts"
import * as RawConnection from "../RawConnection.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { portOf } from "../upstream/SimulatorServer.ts"
import { call } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"

interface Heard {
  readonly request: IncomingMessage
  readonly body: () => string
  /** Over on the upstream's side, answered or not. */
  readonly closed: Promise<void>
}

interface UpstreamSite {
  readonly origin: string
  readonly heard: ReadonlyArray<Heard>
  /** The first request for `path`, once it is there. */
  readonly asked: (path: string) => Effect.Effect<Heard>
}

/** Larger than any answer may be. */
const huge = 50_000_000

const page = `<html><a href="/ui/keys">é</a><script src="/acme-assets/main.js"></script></html>`

/** An upstream with a UI of its own names, and with answers that have no body or no end. */
const answers: Readonly<Record<string, (response: ServerResponse, heard: Heard) => void>> = {
  "/ui/": (response) => response.setHeader("content-type", "text/html; charset=utf-8").end(page),
  "/ui/old": (response) =>
    response.writeHead(302, { location: "/ui/login?next=%2Fui", "set-cookie": ["token=a.b; Path=/", "seen=1"] }).end(),
  "/acme-assets/main.js": (response) =>
    response.setHeader("content-type", "text/javascript").end(`import("/acme-assets/x.js")`),
  "/v1/large": (response) => response.writeHead(200, { "content-length": huge, etag: '"1"' }).end(),
  "/v1/none": (response) => response.writeHead(204, { "x-own": "1" }).end(),
  "/v1/same": (response) => response.writeHead(304, { "content-length": huge, etag: '"1"' }).end(),
  "/v1/empty": (response) => response.writeHead(200, { "content-length": 0 }).end(),
  "/v1/begun": (response) => void response.writeHead(200, { "content-type": "text/plain" }).write("begun"),
  "/v1/silent": () => {},
  "/v1/upload": (response, { body }) => response.end(JSON.stringify({ got: body() }))
}

const site: Effect.Effect<UpstreamSite, never, Scope.Scope> = Effect.gen(function* () {
  const heard: Array<Heard> = []
  const server = createServer((request, response) => {
    let body = ""
    const one: Heard = {
      request,
      body: () => body,
      closed: new Promise((closed) => response.once("close", closed))
    }
    heard.push(one)
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text
    })
    request.on("end", () => (answers[request.url?.split("?", 1)[0] ?? ""] ?? answers["/v1/upload"])?.(response, one))
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))),
    () =>
      Effect.promise(() => {
        server.closeAllConnections()
        return new Promise<void>((closed) => server.close(() => closed()))
      })
  )
  const find = (path: string) => heard.find(({ request }) => request.url === path)
  return {
    origin: `http://127.0.0.1:${portOf(server.address())}`,
    heard,
    asked: (path) =>
      eventually(
        Effect.sync(() => find(path)),
        (one) => one !== undefined
      ).pipe(Effect.map((one) => one ?? assert.fail(path)))
  }
})

/** One installation with the wildcard on, in front of that upstream. */
class Subject extends Context.Service<
  Subject,
  {
    readonly deployment: Deployment.Deployment
    readonly gateway: RunningGateway.RunningGateway
    readonly key: { readonly raw: string; readonly id: string }
    readonly upstream: UpstreamSite
  }
>()("test/e2e/Wildcard/Subject") {
  static readonly layer = Layer.effect(
    Subject,
    Effect.gen(function* () {
      const upstream = yield* site
      const deployment = yield* Deployment.make({
        environment: {
          UPSTREAM_BASE_URL: upstream.origin,
          UPSTREAM_SERVICE_KEY: "upstream-secret",
          GATEWAY_UPSTREAM_UI_BIND_ADDR: "127.0.0.1:0",
          UPSTREAM_UI_PATHS: "/acme-assets/*, /acme/.well-known/acme-ui-config"
        }
      })
      const gateway = yield* deployment.start()
      const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      yield* expose(gateway, {})
      yield* eventually(call(gateway, "/v1/empty", key.raw), ({ status }) => status === 200)
      return Subject.of({ deployment, gateway, key, upstream })
    })
  )
}

const expose = (gateway: RunningGateway.RunningGateway, settings: Readonly<Record<string, unknown>>) =>
  Effect.promise(() =>
    gateway.operate("PATCH", "/providers/upstream-passthrough", {
      enabled: true,
      allowed_paths: ["/*"],
      allowed_methods: ["GET", "HEAD", "POST", "PUT", "DELETE"],
      ui_exposure: "disabled",
      admin_api_exposure: "disabled",
      ...settings
    })
  )

const ui = "/admin-ui/upstream-ui"

describe.skipIf(!Deployment.available)("the wildcard, of the whole program", () => {
  layer(Subject.layer, { excludeTestServices: true })((it) => {
    it.effect("answers without a body stay without, and the connection goes on behind them", () =>
      Effect.gen(function* () {
        const { gateway, key } = yield* Subject
        const connection = yield* RawConnection.open(gateway.proxy)
        const asked: ReadonlyArray<readonly [line: string, status: number, head: RegExp]> = [
          ["HEAD /v1/large", 200, /content-length: 50000000/i],
          ["GET /v1/none", 204, /x-own: 1/i],
          ["GET /v1/same", 304, /etag: "1"/i],
          ["GET /v1/empty", 200, /content-length: 0/i],
          ["HEAD /v1/empty", 200, /content-length: 0/i]
        ]
        let seen = 0
        for (const [line, status, head] of asked) {
          connection.write(RawConnection.request(line, { authorization: `Bearer ${key.raw}` }))
          yield* eventually(
            Effect.sync(() => connection.received().length),
            (length) => length > seen && connection.received().endsWith("\r\n\r\n")
          )
          const answer = connection.received().slice(seen)
          seen += answer.length
          assert.strictEqual(answer.indexOf("\r\n\r\n"), answer.length - 4, `${line}: no byte behind the head`)
          assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `))
          assert.match(answer, head)
          assert.match(answer, /x-request-id: /i)
        }
      })
    )

    it.effect("an answer that is too large is refused where its body would come, and only there", () =>
      Effect.gen(function* () {
        const { gateway, key } = yield* Subject
        const answer = yield* call(gateway, "/v1/large", key.raw)
        assert.strictEqual(answer.status, 413)
        assert.include(answer.text, "response_body_too_large")
      })
    )

    it.effect("bodies go on as they come: none, empty, in chunks, with any method", () =>
      Effect.gen(function* () {
        const { gateway, key, upstream } = yield* Subject
        const chunked = "3\r\nabc\r\n8\r\ndé and \r\n0\r\n\r\n"
        const bodies: ReadonlyArray<
          readonly [line: string, headers: Readonly<Record<string, string>>, body: string, got: string]
        > = [
          ["GET /v1/upload/a", {}, "", ""],
          ["POST /v1/upload/b", { "content-length": "0" }, "", ""],
          ["PUT /v1/upload/c", { "transfer-encoding": "chunked" }, "0\r\n\r\n", ""],
          ["POST /v1/upload/d", { "transfer-encoding": "chunked" }, chunked, "abcdé and "],
          ["DELETE /v1/upload/e", { "content-length": "4" }, "no{{", "no{{"]
        ]
        for (const [line, headers, body, got] of bodies) {
          const connection = yield* RawConnection.open(gateway.proxy)
          connection.write(
            RawConnection.request(
              line,
              { connection: "close", authorization: `Bearer ${key.raw}`, ...headers },
              body === "" ? undefined : body
            )
          )
          const answer = RawConnection.answerOf(yield* connection.closed)
          assert.deepStrictEqual([answer.status, answer.body.toString()], [200, JSON.stringify({ got })], line)
          const [method, url] = line.split(" ")
          const { request } = yield* upstream.asked(url ?? "")
          assert.strictEqual(request.method, method)
          assert.strictEqual(request.headers.authorization, "Bearer upstream-secret")
          assert.strictEqual(request.headers["x-svc-key-id"], key.id)
        }
      })
    )

    it.effect("a client that asks whether to go on is told to, once the upstream will have its body", () =>
      Effect.gen(function* () {
        const { gateway, key, upstream } = yield* Subject
        const headers = { connection: "close", authorization: `Bearer ${key.raw}`, expect: "100-continue" }
        const connection = yield* RawConnection.open(gateway.proxy)
        connection.write(RawConnection.request("POST /v1/upload/f", { ...headers, "content-length": "5" }))
        yield* connection.until(/^HTTP\/1\.1 100 [^\r]*\r\n\r\n/)
        connection.write("hello")
        assert.match(yield* connection.closed, /\r\n\r\nHTTP\/1\.1 200 [\s\S]*\{"got":"hello"\}/)
        assert.isUndefined((yield* upstream.asked("/v1/upload/f")).request.headers.expect)
        for (const [more, status] of [
          [{ "content-length": "200000000" }, 413],
          [{ "content-length": "5", authorization: "Bearer sk-x" }, 401]
        ] as const) {
          const refused = yield* RawConnection.open(gateway.proxy)
          refused.write(RawConnection.request("POST /v1/upload/g", { ...headers, ...more }))
          assert.strictEqual(RawConnection.answerOf(yield* refused.closed).status, status)
        }
        assert.isFalse(upstream.heard.some(({ request }) => request.url === "/v1/upload/g"))
      })
    )

    it.effect("a client that hangs up ends the upstream's request too, and the record says how far it came", () =>
      Effect.gen(function* () {
        const { deployment, gateway, upstream } = yield* Subject
        const own = yield* Effect.promise(() => RunningGateway.createKey(gateway))
        const headers = { authorization: `Bearer ${own.raw}` }
        const begun = yield* RawConnection.open(gateway.proxy)
        begun.write(RawConnection.request("GET /v1/begun", headers))
        yield* begun.until(/begun/)
        begun.destroy()
        const silent = yield* RawConnection.open(gateway.proxy)
        silent.write(RawConnection.request("GET /v1/silent", headers))
        const unanswered = yield* upstream.asked("/v1/silent")
        silent.destroy()
        const upload = yield* RawConnection.open(gateway.proxy)
        upload.write(
          RawConnection.request(
            "POST /v1/upload/h",
            { ...headers, "content-type": "multipart/form-data; boundary=b", "transfer-encoding": "chunked" },
            "3\r\nabc\r\n"
          )
        )
        const half = yield* upstream.asked("/v1/upload/h")
        yield* eventually(Effect.sync(half.body), (text) => text === "abc")
        upload.destroy()
        for (const { closed } of [yield* upstream.asked("/v1/begun"), unanswered, half]) {
          yield* Effect.promise(() => closed)
        }
        const records = yield* deployment.recorded(own.id, 3)
        assert.deepStrictEqual(records.map(({ status_code }) => status_code).sort(), [200, 499, 499])
        for (const record of records) assert.deepInclude(record, { route: "/upstream/*", usage_source: "status_only" })
      })
    )

    it.effect("behind a trusted ingress the UI is open by the deployment's names, and closes with the setting", () =>
      Effect.gen(function* () {
        const { gateway, upstream } = yield* Subject
        const headers = { "x-forwarded-proto": "https", "x-forwarded-host": "portal.example" }
        const get = (path: string, method = "GET") => call(gateway, path, undefined, { method, headers })
        assert.strictEqual((yield* get("/ui/")).status, 404)
        assert.strictEqual((yield* get("/acme-assets/main.js")).status, 404)
        yield* expose(gateway, { ui_exposure: "trusted_ingress" })
        const shown = yield* eventually(get("/ui/"), ({ status }) => status === 200)
        assert.strictEqual(shown.text, page)
        const redirected = yield* get("/ui/old")
        assert.strictEqual(redirected.status, 302)
        assert.strictEqual(redirected.headers.get("location"), "https://portal.example/ui/login?next=%2Fui")
        assert.deepStrictEqual(redirected.headers.getSetCookie(), ["token=a.b; Path=/", "seen=1"])
        assert.strictEqual((yield* get("/acme-assets/main.js")).text, `import("/acme-assets/x.js")`)
        assert.strictEqual((yield* upstream.asked("/ui/old")).request.headers.authorization, "Bearer upstream-secret")
        for (const [method, path, status] of [
          ["POST", "/acme-assets/main.js", 401],
          ["GET", "/acme/.well-known/other", 404],
          ["GET", "/v1/empty", 401],
          ["GET", "/key/list", 404],
          ["GET", "/UI/", 404],
          ["GET", "/acme-assets/..;/key/list", 404]
        ] as const) {
          assert.strictEqual((yield* get(path, method)).status, status, `${method} ${path}`)
        }
        yield* expose(gateway, {})
        yield* eventually(get("/ui/"), ({ status }) => status === 404)
      })
    )

    // the last: it changes the operator's token
    it.effect(
      "the operator's UI: for API clients on the control origin, for browsers on its own until the token ends",
      () =>
        Effect.gen(function* () {
          const { deployment, gateway, upstream } = yield* Subject
          const operator = { authorization: `Bearer ${deployment.adminToken}` }
          const get = (path: string, headers: Readonly<Record<string, string>> = {}, method = "GET") =>
            call({ proxy: gateway.control }, path, undefined, { headers, method })
          const browse = (path: string, headers: Readonly<Record<string, string>> = {}, method = "GET") =>
            call({ proxy: gateway.ui }, path, undefined, { headers, method })
          assert.strictEqual((yield* get(`${ui}/`)).status, 401)
          const api = yield* get(`${ui}/`, operator)
          assert.strictEqual(api.text, page)
          assert.include(api.headers.get("content-security-policy"), "sandbox")
          assert.deepStrictEqual(api.headers.getSetCookie(), [])
          assert.strictEqual((yield* get(`${ui}/acme/.well-known/acme-ui-config`, operator)).status, 200)
          assert.strictEqual((yield* upstream.asked("/acme/.well-known/acme-ui-config")).request.method, "GET")
          assert.strictEqual((yield* get(`${ui}/old`, operator)).headers.get("location"), `${ui}/login?next=%2Fui`)

          assert.strictEqual((yield* browse("/ui/", operator)).status, 401)
          const link = yield* Effect.promise(() => gateway.operate("POST", "/upstream-ui/session"))
          const { pathname, search, origin } = new URL(
            Schema.decodeUnknownSync(Schema.Struct({ url: Schema.String }))(link).url
          )
          assert.strictEqual(origin, gateway.ui)
          const opened = yield* browse(pathname + search)
          const cookie = opened.headers.getSetCookie()[0]?.split("; ")[0] ?? ""
          const session = { cookie }
          assert.strictEqual((yield* browse("/ui/", session)).text, page)
          assert.strictEqual((yield* browse("/acme-assets/main.js", session)).text, `import("/acme-assets/x.js")`)
          const redirected = yield* browse("/ui/old", session)
          assert.strictEqual(redirected.headers.get("location"), "/ui/login?next=%2Fui")
          assert.include(redirected.headers.getSetCookie(), "token=a.b; Path=/")
          assert.strictEqual((yield* browse("/key/generate", session, "POST")).status, 403)
          assert.strictEqual((yield* browse("/key/generate", { ...session, origin }, "POST")).status, 200)
          for (const path of ["/admin-ui/admin/keys", `${ui}/`]) {
            assert.strictEqual((yield* get(path, session)).status, 401, path)
          }
          assert.strictEqual((yield* call(gateway, "/ui/", undefined, { headers: session })).status, 404)

          // another header for the gateway's keys: the UI's proxy does not send it on, either
          yield* Effect.promise(() => gateway.operate("PATCH", "/auth/front-door", { svc_key_header: "X-Team-Key" }))
          yield* browse("/ui/named", { ...session, "x-team-key": "rk_live_mine" })
          assert.isUndefined((yield* upstream.asked("/ui/named")).request.headers["x-team-key"])
          const everything = upstream.heard
            .map(({ request }) => [request.url, ...request.rawHeaders].join("\n"))
            .join("\n")
          for (const secret of [deployment.adminToken, cookie, search]) assert.notInclude(everything, secret)

          yield* Effect.promise(() => gateway.operate("POST", "/operator-token/rotate"))
          assert.strictEqual((yield* browse("/ui/", session)).status, 401)
          assert.strictEqual((yield* get(`${ui}/`, operator)).status, 401)
        })
    )
  })
})
