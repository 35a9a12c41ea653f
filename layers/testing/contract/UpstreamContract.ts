import assert from "node:assert/strict"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Upstream } from "../../../src/services/Upstream.ts"
import { Simulator } from "../../simulator/Simulator.ts"
import type * as UpstreamSimulator from "../../UpstreamSimulator.ts"
import { law, type Suite } from "./law/Law.ts"
import { collector } from "./upstream/Collector.ts"
import * as SimulatorServer from "./upstream/SimulatorServer.ts"
import { exchange, exchangeOf, inParts, modelled, requests, Target, words } from "./upstream/TargetRequests.ts"

export { Target } from "./upstream/TargetRequests.ts"

/**
 * Settings of the simulated model API that the laws need: streams without pauses, batches that end at once, and a
 * minute until `simulate-slow` responds.
 */
export const settings: UpstreamSimulator.Options = { paceMs: 0, batchMs: 0, slowMs: 60_000 }

/** Serves the simulated model API on a port of 127.0.0.1. Its clock stands at zero. */
export const layerTarget: Layer.Layer<Target> = Layer.effect(
  Target,
  Effect.map(SimulatorServer.serve({ ...settings, now: () => 0 }), ({ origin }) => Target.of({ origin }))
)

/** The clock of these laws stands at zero, as that of the simulated model API. */
const atZero = <E, R>(name: string, effect: Effect.Effect<unknown, E, R>) =>
  law(name, Effect.provide(effect, TestClock.layer(), { local: true }))

/** The laws of `Upstream`. Their requests go to a simulated model API. */
export const suite: Suite<Upstream | Target> = {
  door: "Upstream",
  laws: [
    ...Object.entries(requests).map(([what, request]) =>
      atZero(
        `passes the status, headers and bytes of a response unchanged: ${what}`,
        Effect.gen(function* () {
          const sink = collector()
          yield* exchange(request, sink)
          const expected = new Simulator(settings).respond({ ...request, body: Buffer.from(request.body) }, 0)
          assert.strictEqual(sink.status, expected.status)
          assert.deepStrictEqual(endToEnd(sink.headers).map(withoutSerial), expected.headers.map(withoutSerial))
          assert.strictEqual(
            withoutSerial(sink.body.toString()),
            withoutSerial(Buffer.concat(expected.chunks).toString())
          )
        })
      )
    ),

    atZero(
      "sends a body that comes in parts as one request",
      Effect.gen(function* () {
        const whole = collector()
        const parts = collector()
        yield* exchange(requests.chat, whole)
        yield* exchange(requests.chat, parts, { body: inParts(requests.chat.body) })
        assert.strictEqual(parts.status, 200)
        assert.deepStrictEqual(JSON.parse(parts.body.toString()).choices, JSON.parse(whole.body.toString()).choices)
      })
    ),

    atZero(
      "passes streamed text unchanged",
      Effect.forEach(words, (content) =>
        Effect.gen(function* () {
          const [plain, streamed] = [collector(), collector()]
          const asked = (stream: boolean) =>
            JSON.stringify({ model: "m", stream, messages: [{ role: "user", content }] })
          yield* exchange({ ...requests.chat, body: asked(false) }, plain)
          yield* exchange({ ...requests.chat, body: asked(true) }, streamed)
          assert.strictEqual(deltas(streamed.body), JSON.parse(plain.body.toString()).choices[0].message.content)
        })
      )
    ),

    law(
      "sends nothing to a paused sink until it resumes",
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
      })
    ),

    law(
      "does not time out while the sink is paused",
      Effect.gen(function* () {
        const sink = collector({ chunk: (soFar) => (soFar === 1 ? "pause" : "continue") })
        const fiber = yield* Effect.forkChild(exchange(requests.chatStream, sink, { idleWithinMs: 500 }))
        yield* Effect.sleep(1_200)
        sink.drain()
        yield* Fiber.join(fiber)
        assert.match(sink.body.toString(), /\[DONE\]\n\n$/)
      })
    ),

    law(
      "lets a sink pause at the head",
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
      })
    ),

    ...(["head", "chunk"] as const).map((at) =>
      law(
        `sends nothing to a sink that has stopped at the ${at}`,
        Effect.gen(function* () {
          const sink = collector({ [at]: () => "stop" })
          const error = yield* Effect.flip(exchange(requests.chatStream, sink))
          assert.deepStrictEqual([error.phase, error.reason], ["body", "stopped"])
          assert.strictEqual(sink.chunks.length, at === "head" ? 0 : 1)
          yield* exchange(requests.chat, collector())
          assert.strictEqual(sink.chunks.length, at === "head" ? 0 : 1)
        })
      )
    ),

    law(
      "sends nothing to the sink of an interrupted exchange",
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
      })
    ),

    law(
      "sends nothing to the sink of a cancelled `exchangeUnsafe`, and reports that the request was sent",
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
        assert.ok(cancel())
        sink.drain()
        yield* exchange(requests.chat, collector())
        assert.deepStrictEqual([sink.chunks.length, ended], [1, 0])
      })
    ),

    law(
      "fails after the bytes of a response that is cut",
      Effect.gen(function* () {
        const sink = collector()
        const error = yield* Effect.flip(exchange(modelled(requests.chatStream, "simulate-cut"), sink))
        assert.deepStrictEqual([error.phase, error.reason], ["body", "reset"])
        assert.ok(sink.chunks.length > 0)
      })
    ),

    law(
      "times out when a response falls silent",
      Effect.gen(function* () {
        const sink = collector()
        const stalled = exchange(modelled(requests.chatStream, "simulate-stall"), sink, { idleWithinMs: 1_000 })
        const error = yield* Effect.flip(stalled)
        assert.deepStrictEqual([error.phase, error.reason], ["body", "timeout"])
        assert.ok(sink.chunks.length > 0)
      })
    ),

    law(
      "times out when a response does not begin",
      Effect.gen(function* () {
        const sink = collector()
        const slow = exchange(modelled(requests.chat, "simulate-slow"), sink, { headersWithinMs: 1_000 })
        const error = yield* Effect.flip(slow)
        assert.deepStrictEqual([error.phase, error.reason], ["headers", "timeout"])
        assert.strictEqual(sink.status, undefined)
      })
    ),

    law(
      "fails when the request body fails",
      Effect.gen(function* () {
        const broken = async function* () {
          yield Buffer.from("{")
          throw new Error("the client left")
        }
        const error = yield* Effect.flip(exchange(requests.chat, collector(), { body: broken() }))
        assert.deepStrictEqual([error.phase, error.reason], ["headers", "stopped"])
      })
    )
  ]
}

/** The simulator numbers its responses. */
const withoutSerial = (text: string): string => text.replaceAll(/sim[0-9a-z]{21}/g, "sim…")

/** Omits the headers that Node's server adds: the date, and those of the connection. */
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
