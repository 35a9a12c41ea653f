import { assert, describe, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { eventually } from "../Eventually.ts"
import { codeOf } from "../e2e/Calls.ts"
import * as RawConnection from "../RawConnection.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { asking, available, headersOf, Subject } from "./Subject.ts"

/** Targets that some upstream would read as another route's, or as its own control API. */
const tricks = [
  "/v1/../v1/models",
  "/v1/./models",
  "/v1/models/..",
  "/v1/..;/key/info",
  "/v1/%2e%2e/key/info",
  "/v1/%2E%2E/key/info",
  "/v1/.%2e/key/info",
  "/v1%2fmodels",
  "/v1/chat%2Fcompletions",
  "/v1%5cmodels",
  "/v1\\models",
  "/v1//models",
  "//v1/models",
  "/v1/models//",
  "/v1/models%00",
  "/v1/models%0d%0ax-injected:1",
  "/v1/models%",
  "/v1/models%zz",
  "/v1/models%c0%ae",
  "/v1/%252e%252e/key/info",
  "/v1/models;jsessionid=1",
  "/v1/models#",
  "/V1/MODELS",
  "/v1/messages/batches//results",
  "/v1/messages/batches/../../models/results",
  "/v1/messages/batches/%2e%2e/results",
  "/v1/messages/batches/a/b/results",
  "/providers/compat/../v1/models",
  "/providers/compat/%2e%2e/v1/models",
  "/admin-ui/admin/keys",
  "/admin-ui/metrics",
  "/key/info",
  "/",
  "*"
]

/** Methods that a canonical path does not have. */
const wrongMethods = [
  "GET /v1/chat/completions",
  "DELETE /v1/models",
  "PUT /v1/messages",
  "POST /v1/messages/batches/a"
]

const get = Effect.fnUntraced(function* (line: string, fields: string) {
  const subject = yield* Subject
  const connection = yield* subject.connect
  connection.write(Buffer.from(`${line} HTTP/1.1\r\nhost: gateway\r\n${fields}\r\n`, "latin1"))
  const { body, head, status } = RawConnection.answerOf(yield* connection.until(/\}$/))
  return { status, code: codeOf({ text: body.toString() }), text: body.toString(), head }
})

describe.skipIf(!available)("refused before any upstream hears of it:", () => {
  layer(Subject.layer, { excludeTestServices: true })((it) => {
    const silently = <A, E, R>(test: Effect.Effect<A, E, R>) =>
      Effect.gen(function* () {
        const { unharmed, upstreamSaw } = yield* Subject
        const before = upstreamSaw().length
        yield* test
        assert.strictEqual(upstreamSaw().length, before)
        yield* unharmed
      })

    it.effect.each(tricks)("the path %s", (path) =>
      silently(
        Effect.gen(function* () {
          const { key } = yield* Subject
          const { code, status } = yield* get(`GET ${path}`, `authorization: Bearer ${key.raw}\r\n`)
          assert.deepStrictEqual([status, code], [404, "unsupported_route"])
        })
      )
    )

    it.effect.each(wrongMethods)("%s", (line) =>
      silently(
        Effect.gen(function* () {
          const { key } = yield* Subject
          const { code, status, text } = yield* get(line, `authorization: Bearer ${key.raw}\r\ncontent-length: 0\r\n`)
          assert.deepStrictEqual([status, code], [404, "unsupported_route"])
          assert.match(text, /This path accepts (GET|POST)( and (GET|POST))* only/)
        })
      )
    )

    const credentials: ReadonlyArray<readonly [name: string, field: (key: string) => string, code: string]> = [
      ["none", () => "", "missing_authorization"],
      ["an empty one", () => "authorization: \r\n", "malformed_authorization"],
      ["a scheme alone", () => "authorization: Bearer\r\n", "malformed_authorization"],
      ["another scheme", (key) => `authorization: Basic ${key}\r\n`, "malformed_authorization"],
      ["a key without a scheme", (key) => `authorization: ${key}\r\n`, "malformed_authorization"],
      ["a key that is too short", () => "authorization: Bearer rk_live_short\r\n", "malformed_authorization"],
      [
        "a key that is too long",
        () => `authorization: Bearer rk_live_${"0".repeat(300)}\r\n`,
        "malformed_authorization"
      ],
      [
        "an upstream's own credential",
        () => "authorization: Bearer sk-upstream-1234567890\r\n",
        "malformed_authorization"
      ],
      ["two keys in one field", (key) => `authorization: Bearer ${key}, Bearer ${key}\r\n`, "invalid_virtual_key"],
      ["a key that is not known", () => `authorization: Bearer rk_live_${"0".repeat(64)}\r\n`, "invalid_virtual_key"],
      ["a key in another case", (key) => `authorization: Bearer ${key.toUpperCase()}\r\n`, "malformed_authorization"],
      ["a key in x-svc-key alone", (key) => `x-svc-key: ${key}\r\n`, "missing_authorization"],
      ["a key in a cookie", (key) => `cookie: authorization=${key}\r\n`, "missing_authorization"]
    ]
    for (const [name, field, code] of credentials) {
      it.effect(`as credential ${name}: ${code}, in the shape of each family`, () =>
        silently(
          Effect.gen(function* () {
            const { key } = yield* Subject
            const a = yield* get("POST /v1/chat/completions", `${field(key.raw)}content-length: 0\r\n`)
            assert.deepStrictEqual([a.status, a.code], [401, code])
            assert.include(a.text, `"type":"authentication_error"`)
            const b = yield* get("POST /v1/messages", `${field(key.raw)}content-length: 0\r\n`)
            assert.deepStrictEqual([b.status, b.code], [401, code])
            assert.match(b.text, /^\{"type":"error","error":\{"type":"authentication_error"/)
            for (const { text } of [a, b]) assert.notInclude(text, key.raw)
          })
        )
      )
    }

    it.effect("keys that expired, were disabled or were revoked, each by its own name", () =>
      silently(
        Effect.gen(function* () {
          const { gateway } = yield* Subject
          const keys = yield* Effect.promise(() =>
            Promise.all([
              RunningGateway.createKey(gateway, { expires_at: "2020-01-01T00:00:00Z" }),
              RunningGateway.createKey(gateway),
              RunningGateway.createKey(gateway)
            ])
          )
          const [expired, disabled, revoked] = keys
          yield* Effect.promise(() => gateway.operate("POST", `/keys/${disabled.id}/disable`))
          yield* Effect.promise(() => gateway.operate("POST", `/keys/${revoked.id}/revoke`))
          for (const [{ raw }, code] of [
            [expired, "expired_virtual_key"],
            [disabled, "disabled_virtual_key"],
            [revoked, "revoked_virtual_key"]
          ] as const) {
            const refusal = yield* get("GET /v1/models", `authorization: Bearer ${raw}\r\n`)
            assert.deepStrictEqual([refusal.status, refusal.code], [401, code])
          }
        })
      )
    )
  })
})

describe.skipIf(!available)("in direct mode, with the client's own credential,", () => {
  layer(Subject.layer, { excludeTestServices: true })((it) => {
    const own = { authorization: "Bearer of-the-client", "content-type": "application/json" }
    const line = "POST /v1/chat/completions"

    const direct = Effect.gen(function* () {
      const subject = yield* Subject
      const route = "/family-a-routes/chat-completions/mode"
      yield* Effect.promise(() => subject.gateway.operate("PATCH", route, { mode: "direct_upstream_passthrough" }))
      yield* eventually(
        get(line, "authorization: Bearer of-the-client\r\ncontent-length: 2\r\n\r\n{}"),
        ({ status }) => status === 200
      )
      return subject
    })

    it.effect("a body that is too large, by its word or in fact, is refused or cut off", () =>
      Effect.gen(function* () {
        const subject = yield* direct
        const announced = yield* subject.connect
        announced.write(RawConnection.request(line, { ...own, "content-length": "5000" }, ""))
        const first = RawConnection.answerOf(yield* announced.until(/\}$/))
        assert.deepStrictEqual([first.status, codeOf({ text: first.body.toString() })], [413, "request_body_too_large"])
        const chunked = yield* subject.connect
        chunked.write(RawConnection.request(line, { ...own, "transfer-encoding": "chunked" }, ""))
        chunked.write(`1001\r\n${"x".repeat(0x1001)}\r\n`)
        const second = RawConnection.answerOf(yield* chunked.until(/\}$/))
        assert.deepStrictEqual(
          [second.status, codeOf({ text: second.body.toString() })],
          [413, "request_body_too_large"]
        )
        announced.destroy()
        chunked.destroy()
        yield* subject.unharmed
      })
    )

    it.effect("a body that stops coming is given up with 408", () =>
      Effect.gen(function* () {
        const subject = yield* direct
        const connection = yield* subject.connect
        connection.write(RawConnection.request(line, { ...own, "content-length": "100" }, `{"model":`))
        const { body, status } = RawConnection.answerOf(yield* connection.until(/\}$/))
        assert.deepStrictEqual([status, codeOf({ text: body.toString() })], [408, "request_body_timeout"])
        connection.destroy()
        yield* subject.unharmed
      })
    )

    it.effect(
      "a body that takes longer than the upstream's time, and keeps coming, is not held against the upstream",
      () =>
        Effect.gen(function* () {
          const subject = yield* direct
          const connection = yield* subject.connect
          const pieces = asking("m").match(/.{1,20}/g) ?? []
          connection.write(
            RawConnection.request(line, { ...own, "content-length": String(pieces.join("").length) }, "")
          )
          const slowly = Effect.forEach(pieces, (piece) =>
            Effect.delay(
              Effect.sync(() => connection.write(piece)),
              "250 millis"
            )
          )
          yield* Effect.forkChild(slowly)
          yield* connection.until(/^HTTP\/1\.1 200 /)
          yield* subject.unharmed
        })
    )

    it.effect("a client that hangs up in its body leaves nothing behind", () =>
      Effect.gen(function* () {
        const subject = yield* direct
        const connection = yield* subject.connect
        connection.write(RawConnection.request(line, { ...own, "content-length": "100" }, `{"model":`))
        connection.destroy()
        yield* subject.unharmed
      })
    )

    it.effect("what is no JSON is the upstream's matter, and no record is made", () =>
      Effect.gen(function* () {
        const subject = yield* direct
        const Count = Schema.Struct({ count: Schema.FiniteFromString })
        const events = subject.deployment.rows(Count, "SELECT count(*)::text AS count FROM usage_events")
        yield* subject.unharmed
        const counted = Effect.andThen(subject.deployment.recorded(subject.key.id, 1), events)
        const before = yield* counted
        const connection = yield* subject.connect
        connection.write(RawConnection.request(line, own, "no JSON"))
        yield* connection.until(/^HTTP\/1\.1 200 /)
        assert.match(subject.upstreamSaw().at(-1) ?? "", /\r\n\r\n[\s\S]*no JSON/)
        assert.deepStrictEqual(yield* counted, before)
      })
    )

    it.effect("gateway keys are governed as ever", () =>
      Effect.gen(function* () {
        const subject = yield* direct
        const connection = yield* subject.connect
        connection.write(RawConnection.request(line, headersOf(subject), "no JSON"))
        yield* connection.until(/^HTTP\/1\.1 400 [\s\S]*invalid_request_body/)
        const governed = yield* subject.connect
        governed.write(RawConnection.request(line, headersOf(subject), asking("m")))
        yield* governed.until(/^HTTP\/1\.1 200 /)
        assert.match(subject.upstreamSaw().at(-1) ?? "", /^authorization: Bearer k$/im)
        yield* subject.unharmed
      })
    )
  })
})
