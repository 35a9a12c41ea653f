import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Answer, call, codeOf, messageOf } from "../e2e/Calls.ts"
import * as RawConnection from "../RawConnection.ts"
import { answer, chunk, head, type Script } from "../upstream/ScriptedServer.ts"
import { asking, available, headersOf, limits, Subject } from "./Subject.ts"

const json = ["content-type", "application/json"]
const chunked = [...json, "transfer-encoding", "chunked"]
const events = ["content-type", "text/event-stream", "transfer-encoding", "chunked"]

type Refused = readonly [
  name: string,
  script: Script,
  status: number,
  code: string,
  message: RegExp,
  /** Of an answer that was had, and kept from the client. */
  costNanos?: number
]

/** Faults that come before the answer's head: the client gets the gateway's own refusal. */
const refused: ReadonlyArray<Refused> = [
  ["stalls before its head", () => {}, 504, "upstream_timeout", /did not begin its response within 1500 ms/],
  [
    "stalls within its head",
    (peer) => peer.write("HTTP/1.1 200 OK\r\ncontent-ty"),
    504,
    "upstream_timeout",
    /did not begin its response within 1500 ms/
  ],
  ["hangs up before its head", (peer) => peer.end(), 502, "upstream_connection", /closed the connection/],
  ["resets before its head", (peer) => peer.reset(), 502, "upstream_connection", /closed the connection/],
  [
    "hangs up within its head",
    async (peer) => {
      await peer.write("HTTP/1.1 200 OK\r\ncontent-le")
      peer.end()
    },
    502,
    "upstream_connection",
    /closed the connection/
  ],
  [
    "answers garbage",
    (peer) => peer.write("\x00\x01 no HTTP at all\r\n\r\n"),
    502,
    "upstream_connection",
    /not valid HTTP/
  ],
  [
    "answers with two lengths that disagree",
    (peer) => peer.write(`${head(200, ["content-length", "2", "content-length", "4"])}okay`),
    502,
    "upstream_connection",
    /not valid HTTP/
  ],
  [
    "switches protocols unasked",
    (peer) => peer.write(head(101, ["upgrade", "websocket", "connection", "upgrade"])),
    502,
    "upstream_connection",
    /not valid HTTP/
  ],
  [
    "answers with a head that never ends",
    (peer) => peer.write(`HTTP/1.1 200 OK\r\n${`x-filler: ${"x".repeat(1_000)}\r\n`.repeat(64)}`),
    502,
    "upstream_connection",
    /not valid HTTP/
  ],
  [
    "announces more than the limit",
    (peer) => peer.write(answer("x".repeat(limits.max_response_body_bytes + 1))),
    413,
    "response_body_too_large",
    /larger than 2048 bytes/,
    10_000_000
  ]
]

/** Faults behind the head: the client sees exactly what came, and that it is not whole. */
const cut: ReadonlyArray<readonly [name: string, script: Script, seen: string, code: string]> = [
  [
    "stalls in the middle",
    async (peer) => {
      await peer.write(head(200, events))
      await peer.write(chunk("data: {}\n\n"))
    },
    "data: {}\n\n",
    "upstream_timeout"
  ],
  [
    "cuts the connection within a chunk",
    async (peer) => {
      await peer.write(head(200, events))
      await peer.write('20\r\ndata: {"half"')
      peer.end()
    },
    'data: {"half"',
    "upstream_connection"
  ],
  [
    "resets within a character of UTF-8",
    async (peer) => {
      await peer.write(head(200, events))
      await peer.write(chunk("data: caf\u00e9"))
      await peer.write(chunk(Uint8Array.of(0xe2, 0x82)))
      peer.reset()
    },
    "data: caf\u00e9\ufffd",
    "upstream_connection"
  ],
  [
    "ends short of its length",
    async (peer) => {
      await peer.write(`${head(200, [...json, "content-length", "100"])}{}`)
      peer.end()
    },
    "{}",
    "upstream_connection"
  ],
  [
    "sends bad chunks",
    async (peer) => {
      await peer.write(head(200, chunked))
      await peer.write(chunk("{}"))
      await peer.write("this is no length\r\n")
    },
    "{}",
    "upstream_connection"
  ],
  [
    "goes past the limit in a body of no announced length",
    async (peer) => {
      await peer.write(head(200, chunked))
      await peer.write(chunk("x".repeat(2_000)))
      await peer.write(chunk("y".repeat(100)))
    },
    "x".repeat(2_000),
    "response_body_too_large"
  ]
]

/** Odd, but whole: passed on as it is. */
const passed: ReadonlyArray<readonly [name: string, script: Script, status: number, body: string]> = [
  [
    "redirects",
    (peer) => peer.write(head(307, ["location", "http://127.0.0.1:1/elsewhere", "content-length", "0"])),
    307,
    ""
  ],
  ["answers what is no JSON", (peer) => peer.write(`${head(200, [...json, "content-length", "3"])}{{{`), 200, "{{{"],
  [
    "answers with invalid UTF-8",
    (peer) => peer.write(Buffer.from(`${head(200, [...json, "content-length", "2"])}\xff\xfe`, "latin1")),
    200,
    "\ufffd\ufffd"
  ],
  ["has no content", (peer) => peer.write(head(204)), 204, ""],
  [
    "fails with a body of its own",
    (peer) => peer.write(`${head(500, [...json, "content-length", "13"])}{"mine":true}`),
    500,
    `{"mine":true}`
  ],
  [
    "sends an early hint first",
    (peer) => peer.write(`${head(103, ["link", "</x>"]) + head(200, [...json, "content-length", "2"])}{}`),
    200,
    "{}"
  ],
  [
    "ends its body with the connection",
    async (peer) => {
      await peer.write(`${head(200, [...json, "connection", "close"])}{"whole":1}`)
      peer.end()
    },
    200,
    `{"whole":1}`
  ]
]

const idOf = (name: string): string => name.replaceAll(" ", "-")

describe.skipIf(!available)("an upstream that", () => {
  layer(Subject.layer, { excludeTestServices: true })((it) => {
    const ask = (model: string, path = "/v1/chat/completions") =>
      Effect.flatMap(Subject, ({ gateway, key }) =>
        call(gateway, path, key.raw, {
          body: asking(model, { max_tokens: 9 }),
          headers: { "x-request-id": idOf(model) }
        })
      )
    const recordOf = (name: string) =>
      Effect.gen(function* () {
        const { deployment, key } = yield* Subject
        const found = (yield* deployment.recorded(key.id, 1)).filter(({ request_id }) => request_id === idOf(name))
        assert.lengthOf(found, 1)
        return found[0]
      })
    const shapeB = (answer: Answer) => assert.match(answer.text, /^\{"type":"error","error":\{/)

    for (const [name, script, status, code, message, costNanos = null] of refused) {
      it.effect(`${name}: ${status} ${code}, in the caller's shape`, () =>
        Effect.gen(function* () {
          const { unharmed, whenAsked } = yield* Subject
          yield* whenAsked(name, script)
          yield* whenAsked(`${name} (b)`, script)
          const [a, b] = yield* Effect.all([ask(name), ask(`${name} (b)`, "/v1/messages")], { concurrency: 2 })
          for (const answer of [a, b]) {
            assert.deepStrictEqual([answer.status, codeOf(answer)], [status, code])
            assert.match(messageOf(answer), message)
          }
          shapeB(b)
          assert.deepInclude(yield* recordOf(name), { status_code: status, error_code: code, cost_nanos: costNanos })
          yield* unharmed
        })
      )
    }

    for (const [name, script, seen, code] of cut) {
      it.effect(`${name}: the client has what came, and sees that it is not whole`, () =>
        Effect.gen(function* () {
          const subject = yield* Subject
          yield* subject.whenAsked(name, script)
          const connection = yield* subject.connect
          const headers = { ...headersOf(subject), "x-request-id": idOf(name) }
          connection.write(RawConnection.request("POST /v1/chat/completions", headers, asking(name)))
          const received = yield* connection.closed
          const { body, status, whole } = RawConnection.answerOf(received)
          assert.deepStrictEqual([status, body.toString(), whole], [200, seen, false])
          const record = yield* recordOf(name)
          assert.deepInclude(record, { status_code: 200, error_code: code, usage_source: "estimated" })
          yield* subject.unharmed
        })
      )
    }

    for (const [name, script, status, body] of passed) {
      it.effect(`${name}: the client gets it as it is`, () =>
        Effect.gen(function* () {
          const { unharmed, upstreamSaw, whenAsked } = yield* Subject
          yield* whenAsked(name, script)
          const before = upstreamSaw().length
          const answer = yield* ask(name)
          assert.deepStrictEqual([answer.status, answer.text], [status, body])
          if (status === 307) assert.strictEqual(answer.headers.get("location"), "http://127.0.0.1:1/elsewhere")
          assert.strictEqual(upstreamSaw().length, before + 1)
          assert.deepInclude(yield* recordOf(name), { status_code: status, error_code: null })
          yield* unharmed
        })
      )
    }
  })
})
