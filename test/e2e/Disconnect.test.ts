import { readFileSync } from "node:fs"
import { createServer, type IncomingMessage, request } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { eventually } from "../Eventually.ts"
import * as RawConnection from "../RawConnection.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as ScriptedServer from "../upstream/ScriptedServer.ts"
import { portOf } from "../upstream/SimulatorServer.ts"
import { hello } from "./Calls.ts"
import { configure } from "./Configure.ts"
import * as Deployment from "./Deployment.ts"
import * as GatedUpstream from "./GatedUpstream.ts"

const setting = Effect.fnUntraced(function* (
  origin: string,
  more: Readonly<Record<string, unknown>> = {},
  stream = true
) {
  const deployment = yield* Deployment.make({
    environment: { UPSTREAM_BASE_URL: origin, UPSTREAM_SERVICE_KEY: "k" }
  })
  const gateway = yield* deployment.start()
  const key = yield* Effect.promise(() =>
    RunningGateway.createKey(gateway, { policy: { daily_budget_usd: 1, tpm_limit: 100_000 }, ...more })
  )
  const connection = yield* RawConnection.open(gateway.proxy)
  const headers = { authorization: `Bearer ${key.raw}`, "content-type": "application/json" }
  const body = JSON.stringify({ model: "m", messages: hello, stream })
  connection.write(RawConnection.request("POST /v1/chat/completions", headers, body))
  const open = deployment.redis("ZCARD", deployment.key(`limits:open:${key.id}`))
  return { connection, deployment, gateway, key, open }
})

describe.skipIf(!Deployment.available)("a client that hangs up", () => {
  it.live("in the middle of a stream: the upstream's request is closed, the use estimated and settled", () =>
    Effect.gen(function* () {
      const upstream = yield* GatedUpstream.make
      const { connection, deployment, key, open } = yield* setting(upstream.origin)
      yield* connection.until(/"two"/)
      assert.strictEqual(yield* open, 1)
      connection.destroy()
      yield* Effect.promise(() => upstream.peers[0]?.closed ?? Promise.reject(new Error("nobody asked")))
      const [record, ...others] = yield* deployment.recorded(key.id, 1)
      assert.deepStrictEqual(others, [])
      assert.deepInclude(record, { status_code: 200, usage_source: "estimated", cost_nanos: 10_000_000 })
      assert.isAbove(record?.total_tokens ?? 0, 1)
      assert.strictEqual(yield* open, 0)
    })
  )

  it.live("before the answer began: likewise, with status 499", () =>
    Effect.gen(function* () {
      const asked = Promise.withResolvers<void>()
      const upstream = yield* ScriptedServer.serve(async (peer) => {
        await peer.request()
        asked.resolve()
      })
      const { connection, deployment, key, open } = yield* setting(upstream.origin)
      yield* Effect.promise(() => asked.promise)
      connection.destroy()
      yield* Effect.promise(() => upstream.peers[0]?.closed ?? Promise.reject(new Error("nobody asked")))
      const [record] = yield* deployment.recorded(key.id, 1)
      assert.deepInclude(record, { status_code: 499, usage_source: "estimated" })
      assert.strictEqual(yield* open, 0)
    })
  )

  it.live.each([
    ["a plain answer", {}],
    ["an answer that a guardrail is to hold", { guardrail_policy: { mandatory_guardrails: ["pii-redact"] } }]
  ] as const)("before the upstream has answered its TLS (%s): nothing was had, and nothing is charged", ([_, more]) =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedServer.serve(() => {})
      const { connection, deployment, key, open } = yield* setting(upstream.secureOrigin, more, false)
      const peer = yield* eventually(
        Effect.sync(() => upstream.peers[0]),
        (connected) => connected !== undefined
      )
      assert.strictEqual(yield* open, 1)
      connection.destroy()
      yield* Effect.promise(() => peer?.closed ?? Promise.resolve())
      const [record] = yield* deployment.recorded(key.id, 1)
      assert.deepInclude(record, { status_code: 499, usage_source: "status_only", cost_nanos: null })
      assert.strictEqual(yield* open, 0)
    })
  )
})

const large = 50 * 1024 * 1024
const piece = Buffer.from(`data: ${"x".repeat(64 * 1024 - 8)}\n\n`)

/** Sends `large` bytes of events as fast as they are taken, behind those of `first`. */
const plentiful = (first = "") =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      let sent = 0
      const left = Promise.withResolvers<void>()
      const server = createServer((request, response) => {
        request.resume()
        response.on("close", left.resolve)
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write(first)
        const more = () => {
          while (sent < large) {
            sent += piece.length
            if (!response.write(piece)) return void response.once("drain", more)
          }
          response.end()
        }
        more()
      })
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
      return { server, sent: () => sent, left: left.promise, origin: `http://127.0.0.1:${portOf(server.address())}` }
    }),
    ({ server }) => Effect.sync(() => server.closeAllConnections() ?? server.close())
  )

/** A stream whose head has come, and of whose body nothing is read until somebody does. */
const unread = (gateway: RunningGateway.RunningGateway, key: string) =>
  Effect.promise(
    () =>
      new Promise<IncomingMessage>((begun, failed) =>
        request(
          `${gateway.proxy}/v1/chat/completions`,
          { method: "POST", headers: { authorization: `Bearer ${key}`, "content-type": "application/json" } },
          begun
        )
          .on("error", failed)
          .end(JSON.stringify({ model: "m", messages: hello, stream: true }))
      )
  )

const residentMiB = ({ pid }: RunningGateway.RunningGateway): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024

/** What does not move any more between two looks, a third of a second apart. */
const settled = (look: () => number) => {
  let last = -1
  return Effect.sync(() => {
    const now = look()
    const still = now === last
    last = now
    return still ? now : undefined
  }).pipe(
    Effect.filterOrFail((now) => now !== undefined && now > 0),
    Effect.retry(Schedule.spaced("300 millis")),
    Effect.map(Number)
  )
}

describe.skipIf(!Deployment.available || process.platform !== "linux")("a client that does not read", () => {
  it.live.each([
    ["an answer of 50 MiB", ""],
    ["one that says it is over, and goes on,", "data: [DONE]\n\n"]
  ] as const)("%s waits at the upstream, and the gateway's memory stays flat", ([_, first]) =>
    Effect.gen(function* () {
      const upstream = yield* plentiful(first)
      const deployment = yield* Deployment.make({
        environment: { UPSTREAM_BASE_URL: upstream.origin, UPSTREAM_SERVICE_KEY: "k" }
      })
      const gateway = yield* deployment.start()
      const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      yield* configure(gateway, "/family-a-routes/chat-completions", { max_response_body_bytes: 104_857_600 })
      const before = residentMiB(gateway)
      const answer = yield* unread(gateway, key.raw)
      const taken = yield* settled(upstream.sent)
      assert.isBelow(taken, large / 2)
      assert.isBelow(residentMiB(gateway) - before, 25)
      let read = 0
      yield* Effect.promise(async () => {
        for await (const bytes of answer) read += bytes.length
      })
      assert.strictEqual(read, first.length + upstream.sent())
      assert.isTrue(answer.complete)
    })
  )

  it.live("one that never reads on is cut off when the route's time is over, and the upstream with it", () =>
    Effect.gen(function* () {
      const upstream = yield* plentiful()
      const deployment = yield* Deployment.make({
        environment: { UPSTREAM_BASE_URL: upstream.origin, UPSTREAM_SERVICE_KEY: "k" }
      })
      const gateway = yield* deployment.start()
      const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      yield* configure(gateway, "/family-a-routes/chat-completions", {
        max_response_body_bytes: 104_857_600,
        timeout_ms: 2_000
      })
      yield* unread(gateway, key.raw)
      yield* Effect.promise(() => upstream.left)
      const [record] = yield* deployment.recorded(key.id, 1)
      assert.deepInclude(record, { status_code: 200, usage_source: "estimated" })
    })
  )
})
