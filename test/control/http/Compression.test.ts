import { gunzipSync } from "node:zlib"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { HttpServer } from "effect/http"
import { admin, call, ok, operatorToken, suite } from "../Listener.ts"
import { rawRequest } from "../portal/RawRequest.ts"

const manyModels = Array.from({ length: 300 }, (_, n) => `model-of-a-long-name-${n}`)

const withKeys = Effect.forEach(Array.from({ length: 10 }), (_, n) =>
  ok("POST", `${admin}/keys`, {
    body: { owner_type: "individual", name: `key ${n}`, policy: { allowed_models: manyModels } }
  })
)

const read = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  rawRequest("GET", path, { authorization: `Bearer ${operatorToken}`, ...headers })

const unzipped = (latin1: string) => gunzipSync(Buffer.from(latin1, "latin1")).toString("latin1")

suite("What is read", (it) => {
  it.effect("is compressed for a client that accepts gzip, and says so to caches", () =>
    Effect.gen(function* () {
      yield* withKeys
      const path = `${admin}/keys?sort_by=expires_at`
      const plain = yield* read(path)
      const compressed = yield* read(path, { "accept-encoding": "br, gzip;q=0.5" })
      assert.isUndefined(plain.headers["content-encoding"])
      assert.strictEqual(compressed.headers["content-encoding"], "gzip")
      for (const { headers } of [plain, compressed]) {
        assert.strictEqual(headers["vary"], "Accept-Encoding")
        assert.strictEqual(headers["cache-control"], "no-store")
        assert.strictEqual(headers["content-type"], "application/json")
      }
      assert.strictEqual(compressed.headers["content-length"], String(compressed.text.length))
      assert.isBelow(compressed.text.length, plain.text.length / 5)
      assert.strictEqual(unzipped(compressed.text), plain.text)
      for (const refused of ["gzip;q=0", "br", "nonsense;;", "*;q=0"])
        assert.isUndefined((yield* read(path, { "accept-encoding": refused })).headers["content-encoding"], refused)
    })
  )

  it.effect("is compressed while it streams, and remains the same", () =>
    Effect.gen(function* () {
      const path = `${admin}/usage/export.csv?all=true`
      const plain = yield* read(path)
      const compressed = yield* read(path, { "accept-encoding": "gzip" })
      assert.strictEqual(compressed.headers["content-encoding"], "gzip")
      assert.strictEqual(unzipped(compressed.text), plain.text)
    })
  )

  it.effect("is not compressed where it is small or unchanged", () =>
    Effect.gen(function* () {
      const accepting = { "accept-encoding": "gzip" }
      const small = yield* read("/admin-ui/healthz", accepting)
      const document = yield* read("/admin-ui/openapi.json", accepting)
      assert.strictEqual(document.headers["content-encoding"], "gzip")
      const unchanged = yield* read("/admin-ui/openapi.json", {
        ...accepting,
        "if-none-match": document.headers["etag"] ?? ""
      })
      assert.deepStrictEqual([small.status, unchanged.status], [200, 304])
      for (const { headers } of [small, unchanged]) assert.isUndefined(headers["content-encoding"])
    })
  )

  it.effect("is compressed once in the public documents, also for clients that accept any encoding", () =>
    Effect.gen(function* () {
      for (const [accepted, encoding] of [
        ["*", "gzip"],
        ["identity, *;q=0.1", "gzip"],
        ["gzip;q=0, *", undefined],
        ["*;q=0", undefined]
      ] as const) {
        const { headers } = yield* read("/admin-ui/openapi.json", { "accept-encoding": accepted })
        assert.deepStrictEqual([headers["content-encoding"], headers["vary"]], [encoding, "accept-encoding"], accepted)
      }
    })
  )

  it.effect("is not compressed in event streams, which would wait for more", () =>
    Effect.gen(function* () {
      const { port } = new URL(yield* HttpServer.addressFormattedWith(Effect.succeed))
      const response = yield* Effect.promise((signal) =>
        fetch(`http://127.0.0.1:${port}/admin-ui/live`, {
          headers: { authorization: `Bearer ${operatorToken}`, "accept-encoding": "gzip" },
          signal
        })
      )
      assert.strictEqual(response.headers.get("content-type"), "text/event-stream; charset=utf-8")
      assert.isNull(response.headers.get("content-encoding"))
      yield* Effect.promise(async () => response.body?.cancel())
    })
  )
})

suite("The response to a change", (it) => {
  it.effect("is never compressed, because it may have a secret beside what the client wrote", () =>
    Effect.gen(function* () {
      const { headers, status, text } = yield* call("POST", `${admin}/keys`, {
        headers: { "accept-encoding": "gzip" },
        body: { owner_type: "individual", policy: { allowed_models: manyModels } }
      })
      assert.strictEqual(status, 200, text)
      assert.isAbove(text.length, 4_096)
      assert.isUndefined(headers["content-encoding"])
    })
  )
})
