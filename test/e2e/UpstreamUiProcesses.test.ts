import { createServer, type ServerResponse } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { eventually } from "../Eventually.ts"
import { portOf } from "../upstream/SimulatorServer.ts"
import * as Deployment from "./Deployment.ts"

const Link = Schema.decodeUnknownSync(Schema.Struct({ url: Schema.String }))

/** An upstream whose every answer goes on until the test ends it. */
const streaming = Effect.acquireRelease(
  Effect.promise(async () => {
    const running: Array<ServerResponse> = []
    const server = createServer((_, response) => {
      response.setHeader("content-type", "text/event-stream").write("data: first\n\n")
      running.push(response)
    })
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
    return { server, running }
  }),
  ({ server }) =>
    Effect.promise(() => {
      server.closeAllConnections()
      return new Promise<void>((closed) => server.close(() => closed()))
    })
)

describe.skipIf(!Deployment.available)("The upstream's UI, of several processes", () => {
  it.live("any control process takes a link once, shows its session, and lets running answers end", () =>
    Effect.gen(function* () {
      const { running, server } = yield* streaming
      const deployment = yield* Deployment.make({
        environment: {
          UPSTREAM_BASE_URL: `http://127.0.0.1:${portOf(server.address())}`,
          UPSTREAM_SERVICE_KEY: "upstream-secret",
          GATEWAY_UPSTREAM_UI_BIND_ADDR: "127.0.0.1:0"
        }
      })
      const first = yield* deployment.start({ role: "control" })
      const second = yield* deployment.start({ role: "control" })
      const gateway = yield* deployment.start({ role: "gateway" })
      assert.notMatch(gateway.output(), /^ {2}ui /m)
      const { url } = Link(yield* Effect.promise(() => first.operate("POST", "/upstream-ui/session")))
      const get = (target: string, cookie = "") => Effect.promise(() => fetch(target, { headers: { cookie } }))
      const opened = yield* get(url.replace(first.ui, second.ui))
      assert.strictEqual(opened.status, 200)
      const cookie = opened.headers.getSetCookie()[0]?.split(";")[0]
      assert.strictEqual((yield* get(url)).status, 401)

      const shown = yield* get(`${first.ui}/ui/`, cookie)
      assert.strictEqual(shown.status, 200)
      first.signal("SIGTERM")
      yield* eventually(
        Effect.sync(() => first.output()),
        (output) => output.includes("draining")
      )
      running[0]?.end("data: last\n\n")
      assert.strictEqual(yield* Effect.promise(() => shown.text()), "data: first\n\ndata: last\n\n")
      assert.strictEqual(yield* Effect.promise(() => first.exited), 0)

      const other = yield* get(`${second.ui}/ui/`, cookie)
      assert.strictEqual(other.status, 200)
      running[1]?.end()
      yield* Effect.promise(() => other.text())
    })
  )
})
