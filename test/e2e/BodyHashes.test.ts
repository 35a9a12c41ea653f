import { createHash, randomBytes } from "node:crypto"
import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, type Scope } from "effect"
import { eventually } from "../Eventually.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { portOf } from "../upstream/SimulatorServer.ts"

const events = 'data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: {"choices":[],"usage":null}\n\ndata: [DONE]\n\n'

/** Repeats the request's `seed`, as JSON or as a stream; breaks a stream whose seed is 13 off half-way. */
const upstream: Effect.Effect<string, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer((request, response) => {
        let body = ""
        request.setEncoding("utf8").on("data", (text) => {
          body += text
        })
        request.on("end", () => {
          const { seed, stream } = decodeAsked(body)
          response.setHeader("content-type", stream === true ? "text/event-stream" : "application/json")
          if (stream !== true) response.end(JSON.stringify({ seed }))
          else if (seed !== 13) response.end(events)
          else response.write(events.slice(0, 60), () => response.destroy())
        })
      })
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
      return server
    }),
    (server) =>
      Effect.promise(
        () =>
          new Promise((closed) => {
            server.closeAllConnections()
            server.close(closed)
          })
      )
  ),
  (server) => `http://127.0.0.1:${portOf(server.address())}`
)

const decodeAsked = Schema.decodeUnknownSync(
  Schema.fromJsonString(
    Schema.Struct({ seed: Schema.optionalKey(Schema.Int), stream: Schema.optionalKey(Schema.Boolean) })
  )
)
const Hashes = Schema.Struct({
  request_hash: Schema.NullOr(Schema.String),
  response_hash: Schema.NullOr(Schema.String)
})

/** An installation, and what its debug bundles say of the bodies of a request. */
const installation = Effect.fnUntraced(function* (environment: Readonly<Record<string, string>> = {}) {
  const origin = yield* upstream
  const gateway = yield* RunningGateway.start({
    environment: { UPSTREAM_BASE_URL: origin, UPSTREAM_SERVICE_KEY: "secret", ...environment }
  })
  const { raw } = yield* Effect.promise(() => RunningGateway.createKey(gateway, {}))
  let asked = 0
  return Effect.fnUntraced(function* (body: string) {
    const id = `r-${++asked}`
    const answer = yield* Effect.option(
      Effect.tryPromise(async () => {
        const response = await fetch(`${gateway.proxy}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${raw}`, "content-type": "application/json", "x-request-id": id },
          body
        })
        return await response.text()
      })
    )
    const bundle = yield* eventually(
      Effect.option(Effect.tryPromise(() => gateway.operate("GET", `/debug-bundles/${id}`))),
      ({ _tag }) => _tag === "Some"
    )
    return { answer, hashes: Schema.decodeUnknownSync(Schema.Struct({ value: Hashes }))(bundle).value }
  })
})

const asking = (seed: number, more = "") =>
  `{"model":"m","seed":${seed}${more},"messages":[{"role":"user","content":"hello"}]}`

const keyed = /^keyed-sha256:[\w-]{22}$/

describe("the hashes of a debug bundle", () => {
  it.live("tell equal bodies from others, and cannot be had without the installation's key", () =>
    Effect.gen(function* () {
      const ask = yield* installation()
      const first = yield* ask(asking(1))
      assert.match(first.hashes.request_hash ?? "", keyed)
      assert.match(first.hashes.response_hash ?? "", keyed)
      assert.notStrictEqual(first.hashes.request_hash, first.hashes.response_hash)
      assert.deepStrictEqual((yield* ask(asking(1))).hashes, first.hashes)
      const other = yield* ask(asking(2))
      assert.notStrictEqual(other.hashes.request_hash, first.hashes.request_hash)
      assert.notStrictEqual(other.hashes.response_hash, first.hashes.response_hash)
      // the hash is of what the client sent, which the gateway changes on its way
      const spaced = yield* ask(`${asking(1)} `)
      assert.notStrictEqual(spaced.hashes.request_hash, first.hashes.request_hash)
      assert.strictEqual(spaced.hashes.response_hash, first.hashes.response_hash)
      const plain = createHash("sha256").update(asking(1)).digest("base64url")
      assert.notInclude(first.hashes.request_hash ?? "", plain.slice(0, 22))

      const elsewhere = yield* installation()
      const sealed = yield* installation({ GATEWAY_ENCRYPTION_KEY: randomBytes(32).toString("base64") })
      for (const asks of [elsewhere, sealed]) {
        const { hashes } = yield* asks(asking(1))
        assert.match(hashes.request_hash ?? "", keyed)
        assert.notStrictEqual(hashes.request_hash, first.hashes.request_hash)
        assert.notStrictEqual(hashes.response_hash, first.hashes.response_hash)
      }
    })
  )

  it.live("are of streams as the client gets them, and not of one that breaks off", () =>
    Effect.gen(function* () {
      const ask = yield* installation()
      const first = yield* ask(asking(1, ',"stream":true'))
      const again = yield* ask(asking(2, ',"stream":true'))
      assert.match(first.hashes.response_hash ?? "", keyed)
      assert.strictEqual(again.hashes.response_hash, first.hashes.response_hash)
      assert.notStrictEqual(again.hashes.request_hash, first.hashes.request_hash)
      const asksForUsage = yield* ask(asking(1, ',"stream":true,"stream_options":{"include_usage":true}'))
      assert.notDeepEqual(asksForUsage.answer, first.answer)
      assert.notStrictEqual(asksForUsage.hashes.response_hash, first.hashes.response_hash)
      const broken = yield* ask(asking(13, ',"stream":true'))
      assert.match(broken.hashes.request_hash ?? "", keyed)
      assert.isNull(broken.hashes.response_hash)
      const refused = yield* ask("no JSON")
      assert.match(refused.hashes.request_hash ?? "", keyed)
      assert.isNull(refused.hashes.response_hash)
    })
  )
})
