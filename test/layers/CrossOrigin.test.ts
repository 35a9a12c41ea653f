import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as ProxyListener from "../../layers/ProxyListener.ts"
import { ProxyApp } from "../../src/gateway/ProxyApp.ts"
import * as Billing from "../../src/gateway/usage/Billing.ts"
import * as LocalPort from "../LocalPort.ts"

const program = Layer.succeed(ProxyApp, {
  handleUnsafe: (wire, done) => {
    wire.respond(wire.method === "OPTIONS" ? 404 : 200, ["vary", "accept", "x-request-id", "r"], wire.method)
    done({ status: 200, error: undefined, streamed: false, aborted: false, bill: Billing.unbilled })
    return () => {}
  }
})

const listening = Effect.fnUntraced(function* (origins: ReadonlyArray<string>) {
  const port = yield* LocalPort.free
  const most = { total: 100, perAddress: 100 }
  yield* Layer.build(
    ProxyListener.layer({ host: "127.0.0.1", port }, "1 millis", most, origins).pipe(Layer.provide(program))
  )
  return (method: string, headers: Record<string, string>) =>
    Effect.promise(async () => {
      const response = await fetch(`http://127.0.0.1:${port}/v1/models`, { method, headers })
      const cors = [...response.headers].filter(([name]) => name.startsWith("access-control-"))
      return { status: response.status, cors: Object.fromEntries(cors), text: await response.text() }
    })
})

const page = "https://app.example"
const preflight = {
  origin: page,
  "access-control-request-method": "POST",
  "access-control-request-headers": "authorization,content-type"
}

it.live("a page that may ask is told so, before and with the answer", () =>
  Effect.gen(function* () {
    const ask = yield* listening([page])
    assert.deepStrictEqual(yield* ask("OPTIONS", preflight), {
      status: 204,
      cors: {
        "access-control-allow-origin": page,
        "access-control-expose-headers": "*",
        "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
        "access-control-allow-headers": "authorization,content-type",
        "access-control-max-age": "7200"
      },
      text: ""
    })
    assert.deepStrictEqual(yield* ask("POST", { origin: page }), {
      status: 200,
      cors: { "access-control-allow-origin": page, "access-control-expose-headers": "*" },
      text: "POST"
    })
    // no preflight
    assert.strictEqual((yield* ask("OPTIONS", { origin: page })).status, 404)
    const split = yield* ask("OPTIONS", { ...preflight, "access-control-request-headers": "a;b" })
    assert.notProperty(split.cors, "access-control-allow-headers")
  }).pipe(Effect.scoped)
)

it.live("other pages, and all of them where no origin is set, are told nothing", () =>
  Effect.gen(function* () {
    const ask = yield* listening([page])
    for (const origin of ["https://app.example.evil", "http://app.example", "null"]) {
      assert.deepStrictEqual(yield* ask("OPTIONS", { ...preflight, origin }), {
        status: 404,
        cors: {},
        text: "OPTIONS"
      })
      assert.deepStrictEqual(yield* ask("GET", { origin }), { status: 200, cors: {}, text: "GET" })
    }
    const closed = yield* listening([])
    assert.deepStrictEqual(yield* closed("OPTIONS", preflight), { status: 404, cors: {}, text: "OPTIONS" })
  }).pipe(Effect.scoped)
)

it.live("with * every page may ask", () =>
  Effect.gen(function* () {
    const ask = yield* listening(["*"])
    const { cors, status } = yield* ask("OPTIONS", preflight)
    assert.deepStrictEqual([status, cors["access-control-allow-origin"]], [204, "*"])
  }).pipe(Effect.scoped)
)
