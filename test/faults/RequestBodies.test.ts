import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../Eventually.ts"
import { call, codeOf, messageOf } from "../e2e/Calls.ts"
import * as RawConnection from "../RawConnection.ts"
import { asking, available, headersOf, limits, Subject } from "./Subject.ts"

const chat = "/v1/chat/completions"
const line = `POST ${chat}`

/** Bodies that are whole and wrong: what they are told. */
const wrong: ReadonlyArray<readonly [name: string, body: string, message: RegExp]> = [
  ["is empty", "", /The body is empty/],
  ["is no JSON", "hello", /not valid JSON/],
  ["is cut off", `{"model":"m","messages":[`, /not valid JSON/],
  ["is two bodies", `${asking("m")}${asking("m")}`, /not valid JSON/],
  ["is no object", `["model"]`, /must be a JSON object/],
  ["says one thing twice", `{"model":"cheap","model":"dear"}`, /"model" appears more than once/],
  ["says one thing twice in disguise", `{"model":"cheap","mod\\u0065l":"dear"}`, /"model" appears more than once/],
  ["has a model that is no name", `{"model":{"$ne":1}}`, /"model" must be a string/],
  ["is not UTF-8", '{"model":"\xff\xfe"}', /not valid UTF-8/],
  ["begins with a byte order mark", "\xef\xbb\xbf{}", /not valid JSON/],
  ["is nested without end", "[".repeat(4_000), /deeper than 256 levels/],
  ["is nested too deep", `{"a":${"[".repeat(256)}${"]".repeat(256)}}`, /deeper than 256 levels/]
]

describe.skipIf(!available)("a request body that", () => {
  layer(Subject.layer, { excludeTestServices: true })((it) => {
    for (const [name, body, message] of wrong) {
      it.effect(`${name} is refused by name, and no upstream hears of it`, () =>
        Effect.gen(function* () {
          const subject = yield* Subject
          const before = subject.upstreamSaw().length
          const connection = yield* subject.connect
          const headers = { ...headersOf(subject), "content-length": String(body.length) }
          connection.write(Buffer.from(RawConnection.request(line, headers, body), "latin1"))
          const answer = yield* connection.until(/\}$/)
          const { body: refusal, status } = RawConnection.answerOf(answer)
          const text = refusal.toString()
          assert.deepStrictEqual([status, codeOf({ text })], [400, "invalid_request_body"])
          assert.match(messageOf({ text }), message)
          assert.strictEqual(subject.upstreamSaw().length, before)
          yield* subject.unharmed
        })
      )
    }

    it.effect("is deeply nested and valid is passed on", () =>
      Effect.gen(function* () {
        const { gateway, key, unharmed } = yield* Subject
        const body = `{"model":"m","metadata":${"[".repeat(255)}${"]".repeat(255)}}`
        assert.strictEqual((yield* call(gateway, chat, key.raw, { body })).status, 200)
        yield* unharmed
      })
    )

    it.effect("is not JSON by its type, or is compressed, is refused with 415 and the way out", () =>
      Effect.gen(function* () {
        const { gateway, key, unharmed } = yield* Subject
        const typed = yield* call(gateway, chat, key.raw, {
          body: "model=m",
          headers: { "content-type": "application/x-www-form-urlencoded" }
        })
        const compressed = yield* call(gateway, chat, key.raw, { body: "x", headers: { "content-encoding": "gzip" } })
        for (const answer of [typed, compressed]) {
          assert.deepStrictEqual([answer.status, codeOf(answer)], [415, "unsupported_media_type"])
        }
        assert.match(messageOf(typed), /content-type: application\/json/)
        assert.match(messageOf(compressed), /without content-encoding/)
        yield* unharmed
      })
    )

    it.effect("announces more than the limit is refused before a byte of it is awaited", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const connection = yield* subject.connect
        const headers = { ...headersOf(subject), "content-length": String(limits.max_request_body_bytes + 1) }
        connection.write(RawConnection.request(line, headers, ""))
        const { body, status } = RawConnection.answerOf(yield* connection.until(/\}$/))
        assert.deepStrictEqual([status, codeOf({ text: body.toString() })], [413, "request_body_too_large"])
        assert.match(body.toString(), /larger than 4096 bytes/)
        connection.destroy()
        yield* subject.unharmed
      })
    )

    it.effect("goes past the limit chunk by chunk is refused as soon as it does", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const connection = yield* subject.connect
        const headers = { ...headersOf(subject), "transfer-encoding": "chunked" }
        connection.write(RawConnection.request(line, headers, ""))
        connection.write(`800\r\n${"x".repeat(0x800)}\r\n801\r\n${"x".repeat(0x801)}\r\n`)
        const { body, status } = RawConnection.answerOf(yield* connection.until(/\}$/))
        assert.deepStrictEqual([status, codeOf({ text: body.toString() })], [413, "request_body_too_large"])
        connection.destroy()
        yield* subject.unharmed
      })
    )

    it.effect("does not come in time is given up", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const connection = yield* subject.connect
        const headers = { ...headersOf(subject), "content-length": "100" }
        connection.write(RawConnection.request(line, headers, `{"model":"m",`))
        const { body, status } = RawConnection.answerOf(yield* connection.until(/\}$/))
        assert.deepStrictEqual([status, codeOf({ text: body.toString() })], [408, "request_body_timeout"])
        assert.match(body.toString(), /did not arrive within 1500 ms/)
        connection.destroy()
        yield* subject.unharmed
      })
    )

    it.effect("trickles in is given up just as soon: the time is for all of it", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const connection = yield* subject.connect
        const headers = { ...headersOf(subject), "content-length": "4000" }
        connection.write(RawConnection.request(line, headers, `{"model":"`))
        const trickle = yield* Effect.forkChild(
          Effect.forever(
            Effect.delay(
              Effect.sync(() => connection.write("x")),
              "100 millis"
            )
          )
        )
        const { status } = RawConnection.answerOf(yield* connection.until(/\}$/))
        assert.strictEqual(status, 408)
        yield* Effect.sync(() => trickle.interruptUnsafe())
        connection.destroy()
        yield* subject.unharmed
      })
    )

    it.effect("ends with its client: nothing is sent on, nothing is held, and it is on record", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const before = subject.upstreamSaw().length
        const connection = yield* subject.connect
        const headers = { ...headersOf(subject), "content-length": "4000", "x-request-id": "truncated" }
        connection.write(RawConnection.request(line, headers, `{"model":"m",`))
        connection.destroy()
        yield* subject.unharmed
        // the one of `unharmed`
        assert.strictEqual(subject.upstreamSaw().length, before + 1)
        const records = yield* subject.deployment.recorded(subject.key.id, 1)
        const record = records.find(({ request_id }) => request_id === "truncated")
        assert.deepInclude(record, { status_code: 499, usage_source: "status_only", cost_nanos: null })
      })
    )
  })
})

describe.skipIf(!available)("a client that asks first (Expect: 100-continue)", () => {
  layer(Subject.layer, { excludeTestServices: true })((it) => {
    it.effect("is told to go on, once it is known that the body is wanted", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const connection = yield* subject.connect
        const body = asking("m")
        const headers = {
          ...headersOf(subject),
          expect: "100-continue",
          "content-length": String(body.length)
        }
        connection.write(RawConnection.request(line, headers, ""))
        yield* connection.until(/^HTTP\/1\.1 100 Continue\r\n\r\n$/)
        connection.write(body)
        yield* connection.until(/\r\n\r\nHTTP\/1\.1 200 OK[\s\S]*\}$/)
        assert.notMatch(subject.upstreamSaw().at(-1) ?? "", /^expect:/im)
        yield* subject.unharmed
      })
    )

    it.effect("in HTTP/1.0, which knows no such question, has its answer alone", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const connection = yield* subject.connect
        const body = asking("m")
        const headers = { ...headersOf(subject), expect: "100-continue", "content-length": String(body.length) }
        connection.write(RawConnection.request(line, headers, body.slice(0, 5)).replace("HTTP/1.1", "HTTP/1.0"))
        // now it is being read, and the client would have been asked for it
        const metrics = async () => (await fetch(`${subject.gateway.control}/admin-ui/metrics`)).text()
        yield* eventually(Effect.promise(metrics), (page) => /^gateway_buffered_requests 1$/m.test(page))
        connection.write(body.slice(5))
        assert.match(yield* connection.closed, /^HTTP\/1\.1 200 OK/)
        yield* subject.unharmed
      })
    )

    it.effect.each([
      [
        "a key that is not known",
        "401",
        { authorization: `Bearer rk_live_${"0".repeat(64)}`, "content-length": "100" }
      ],
      ["more than the limit", "413", { "content-length": "5000" }],
      ["another type", "415", { "content-type": "text/plain", "content-length": "100" }]
    ] as const)("with %s is refused with %s and never told to go on", ([, status, more]) =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const connection = yield* subject.connect
        const headers = { ...headersOf(subject), expect: "100-continue", ...more }
        connection.write(RawConnection.request(line, headers, ""))
        const answer = yield* connection.until(/\}$/)
        assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `))
        connection.destroy()
        yield* subject.unharmed
      })
    )

    it.effect("with an expectation that nobody knows is refused", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const connection = yield* subject.connect
        connection.write(RawConnection.request(line, { ...headersOf(subject), expect: "a miracle" }, asking("m")))
        yield* connection.until(/^HTTP\/1\.1 417 /)
        yield* subject.unharmed
      })
    )
  })
})
