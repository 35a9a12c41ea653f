import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, type Layer } from "effect"
import * as fc from "fast-check"
import { Simulator } from "../../layers/simulator/Simulator.ts"
import { type Exchange, type Sink, Upstream } from "../../src/services/Upstream.ts"
import { collector } from "../upstream/Collector.ts"

/** Where the simulated model proxy is reached through the variant under test. */
export class Target extends Context.Service<Target, { readonly origin: string }>()("test/Target") {}

/** Of the simulated proxy: no pauses in its streams, an instant batch, an answer of `simulate-slow` after a minute. */
export const settings = { paceMs: 0, batchMs: 0, slowMs: 60_000 }

/**
 * The laws of the upstream door. `variant` reaches a fresh simulated proxy with `settings`, whose time follows Effect's
 * clock or stands at zero.
 */
export const suite = (name: string, variant: Layer.Layer<Upstream | Target>): void => {
  describe(name, () => {
    describe("answers", () => {
      for (const [what, request] of Object.entries(requests)) {
        it.effect(`${what}: the proxy's own status, headers and bytes`, () =>
          Effect.gen(function* () {
            const sink = collector()
            yield* exchange(request, sink)
            const expected = new Simulator(settings).respond({ ...request, body: Buffer.from(request.body) }, 0)
            assert.strictEqual(sink.status, expected.status)
            assert.deepStrictEqual(endToEnd(sink.headers), expected.headers)
            assert.strictEqual(sink.body.toString(), Buffer.concat(expected.chunks).toString())
          }).pipe(Effect.provide(variant))
        )
      }

      it.effect("a body that comes in parts is the same request", () =>
        Effect.gen(function* () {
          const whole = collector()
          const parts = collector()
          yield* exchange(requests.chat, whole)
          yield* exchange(requests.chat, parts, { body: inParts(requests.chat.body) })
          assert.strictEqual(parts.status, 200)
          assert.deepStrictEqual(JSON.parse(parts.body.toString()).choices, JSON.parse(whole.body.toString()).choices)
        }).pipe(Effect.provide(variant))
      )

      it.effect("what is streamed is what is said at once, whatever the words", () =>
        Effect.gen(function* () {
          const services = yield* Effect.context<Upstream | Target>()
          const run = Effect.runPromiseWith(services)
          const said = (content: string, stream: boolean) => {
            const sink = collector()
            const body = JSON.stringify({ model: "m", stream, messages: [{ role: "user", content }] })
            return run(Effect.as(exchange({ ...requests.chat, body }, sink), sink))
          }
          yield* Effect.promise(() =>
            fc.assert(
              fc.asyncProperty(fc.string({ unit: "binary" }), async (words) => {
                const [plain, streamed] = await Promise.all([said(words, false), said(words, true)])
                assert.strictEqual(deltas(streamed.body), JSON.parse(plain.body.toString()).choices[0].message.content)
              }),
              { numRuns: 30 }
            )
          )
        }).pipe(Effect.provide(variant))
      )
    })

    describe("flow", () => {
      it.live("a paused exchange sends nothing until it is drained", () =>
        Effect.gen(function* () {
          const paused = yield* Deferred.make<void>()
          const sink = collector({
            chunk: (soFar) => (soFar === 1 ? "pause" : "continue"),
            paused: () => Deferred.doneUnsafe(paused, Effect.void)
          })
          const fiber = yield* Effect.forkChild(exchange(requests.chatStream, sink))
          yield* Deferred.await(paused)
          // Another whole exchange goes by: time enough for a chunk that should not come.
          yield* exchange(requests.chat, collector())
          assert.strictEqual(sink.chunks.length, 1)
          sink.drain()
          yield* Fiber.join(fiber)
          assert.match(sink.body.toString(), /\[DONE\]\n\n$/)
        }).pipe(Effect.provide(variant))
      )

      it.live("a pause is not a stall", () =>
        Effect.gen(function* () {
          const sink = collector({ chunk: (soFar) => (soFar === 1 ? "pause" : "continue") })
          const fiber = yield* Effect.forkChild(exchange(requests.chatStream, sink, { idleWithinMs: 500 }))
          yield* Effect.sleep(1_200)
          sink.drain()
          yield* Fiber.join(fiber)
          assert.match(sink.body.toString(), /\[DONE\]\n\n$/)
        }).pipe(Effect.provide(variant))
      )

      it.live("a sink may pause at the head", () =>
        Effect.gen(function* () {
          const paused = yield* Deferred.make<void>()
          const sink = collector({
            head: () => "pause",
            paused: () => Deferred.doneUnsafe(paused, Effect.void)
          })
          const fiber = yield* Effect.forkChild(exchange(requests.chat, sink))
          yield* Deferred.await(paused)
          yield* Effect.yieldNow
          assert.strictEqual(sink.chunks.length, 0)
          sink.drain()
          yield* Fiber.join(fiber)
          assert.strictEqual(JSON.parse(sink.body.toString()).object, "chat.completion")
        }).pipe(Effect.provide(variant))
      )

      for (const at of ["head", "chunk"] as const) {
        it.live(`a sink that says stop at the ${at} hears nothing more`, () =>
          Effect.gen(function* () {
            const sink = collector({ [at]: () => "stop" })
            const error = yield* Effect.flip(exchange(requests.chatStream, sink))
            assert.deepStrictEqual([error.phase, error.reason], ["body", "stopped"])
            assert.strictEqual(sink.chunks.length, at === "head" ? 0 : 1)
            yield* exchange(requests.chat, collector())
            assert.strictEqual(sink.chunks.length, at === "head" ? 0 : 1)
          }).pipe(Effect.provide(variant))
        )
      }

      it.live("an interrupted exchange hears nothing more", () =>
        Effect.gen(function* () {
          const begun = yield* Deferred.make<void>()
          const sink = collector({
            chunk: () => "pause",
            paused: () => Deferred.doneUnsafe(begun, Effect.void)
          })
          const fiber = yield* Effect.forkChild(exchange(requests.chatStream, sink))
          yield* Deferred.await(begun)
          yield* Fiber.interrupt(fiber)
          sink.drain()
          yield* exchange(requests.chat, collector())
          assert.strictEqual(sink.chunks.length, 1)
        }).pipe(Effect.provide(variant))
      )
    })

    describe("an exchange without a fiber", () => {
      it.live("that is cancelled in the middle hears nothing more, and the upstream has had its request", () =>
        Effect.gen(function* () {
          const begun = yield* Deferred.make<void>()
          const sink = collector({
            chunk: () => "pause",
            paused: () => Deferred.doneUnsafe(begun, Effect.void)
          })
          let ended = 0
          const upstream = yield* Upstream
          const cancel = upstream.exchangeUnsafe(yield* exchangeOf(requests.chatStream), sink, () => ended++)
          yield* Deferred.await(begun)
          assert.isTrue(cancel())
          sink.drain()
          yield* exchange(requests.chat, collector())
          assert.deepStrictEqual([sink.chunks.length, ended], [1, 0])
        }).pipe(Effect.provide(variant))
      )
    })

    describe("faults", () => {
      it.live("an answer that is cut fails, after what came", () =>
        Effect.gen(function* () {
          const sink = collector()
          const error = yield* Effect.flip(exchange(modelled(requests.chatStream, "simulate-cut"), sink))
          assert.deepStrictEqual([error.phase, error.reason], ["body", "reset"])
          assert.isAbove(sink.chunks.length, 0)
        }).pipe(Effect.provide(variant))
      )

      it.live("an answer that falls silent times out", () =>
        Effect.gen(function* () {
          const sink = collector()
          const stalled = exchange(modelled(requests.chatStream, "simulate-stall"), sink, { idleWithinMs: 1_000 })
          const error = yield* Effect.flip(stalled)
          assert.deepStrictEqual([error.phase, error.reason], ["body", "timeout"])
          assert.isAbove(sink.chunks.length, 0)
        }).pipe(Effect.provide(variant))
      )

      it.live("an answer that does not begin times out", () =>
        Effect.gen(function* () {
          const sink = collector()
          const slow = exchange(modelled(requests.chat, "simulate-slow"), sink, { headersWithinMs: 1_000 })
          const error = yield* Effect.flip(slow)
          assert.deepStrictEqual([error.phase, error.reason], ["headers", "timeout"])
          assert.isUndefined(sink.status)
        }).pipe(Effect.provide(variant))
      )

      it.live("a body that fails ends the exchange", () =>
        Effect.gen(function* () {
          const broken = async function* () {
            yield Buffer.from("{")
            throw new Error("the client left")
          }
          const error = yield* Effect.flip(exchange(requests.chat, collector(), { body: broken() }))
          assert.deepStrictEqual([error.phase, error.reason], ["headers", "stopped"])
        }).pipe(Effect.provide(variant))
      )
    })
  })
}

interface Request {
  readonly method: string
  readonly target: string
  readonly headers: ReadonlyArray<string>
  readonly body: string
}

const exchange = (request: Request, sink: Sink, options: Partial<Exchange> = {}) =>
  Effect.gen(function* () {
    const upstream = yield* Upstream
    yield* upstream.exchange({ ...(yield* exchangeOf(request)), ...options }, sink)
  })

const exchangeOf = (request: Request) =>
  Effect.map(Target, ({ origin }): Exchange => {
    const body = request.body === "" ? null : Buffer.from(request.body)
    return { ...request, body, origin, headersWithinMs: 5_000, idleWithinMs: 5_000 }
  })

const request = (method: string, target: string, body?: object): Request => ({
  method,
  target,
  headers: ["Authorization", "Bearer any", "Content-Type", "application/json"],
  body: body === undefined ? "" : JSON.stringify(body)
})

const conversation = { model: "m", messages: [{ role: "user", content: "Grüß Gott, 世界 👋" }], max_tokens: 100 }

const requests = {
  chat: request("POST", "/v1/chat/completions", conversation),
  chatStream: request("POST", "/v1/chat/completions", {
    ...conversation,
    stream: true,
    stream_options: { include_usage: true }
  }),
  responses: request("POST", "/v1/responses", { model: "m", input: "hello" }),
  responsesStream: request("POST", "/v1/responses", { model: "m", input: "hello", stream: true }),
  embeddings: request("POST", "/v1/embeddings", { model: "m", input: ["a", "b"], encoding_format: "base64" }),
  messages: request("POST", "/v1/messages", conversation),
  messagesStream: request("POST", "/v1/messages", { ...conversation, stream: true }),
  countTokens: request("POST", "/v1/messages/count_tokens", conversation),
  batch: request("POST", "/v1/messages/batches", { requests: [{ custom_id: "1", params: conversation }] }),
  models: request("GET", "/v1/models?limit=10"),
  withoutCredential: { ...request("GET", "/v1/models"), headers: ["accept", "*/*"] },
  tooMany: request("POST", "/v1/messages", { ...conversation, model: "simulate-429" }),
  notJson: { ...request("POST", "/v1/responses"), body: "{" },
  unknownPath: request("DELETE", "/v2/nothing")
}

const modelled = (of: Request, model: string): Request => ({
  ...of,
  body: JSON.stringify({ ...JSON.parse(of.body), model })
})

const inParts = async function* (text: string) {
  for (const byte of Buffer.from(text)) yield Buffer.of(byte)
}

/** What Node's server adds is of the connection, or a date. */
const endToEnd = (headers: ReadonlyArray<string>): ReadonlyArray<string> => {
  const added = new Set(["date", "connection", "keep-alive", "transfer-encoding"])
  return headers.flatMap((name, i) =>
    i % 2 === 0 && !added.has(name.toLowerCase()) ? [name, headers[i + 1] ?? ""] : []
  )
}

const deltas = (body: Buffer): string =>
  body
    .toString()
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => JSON.parse(event.slice(6)).choices[0]?.delta.content ?? "")
    .join("")
