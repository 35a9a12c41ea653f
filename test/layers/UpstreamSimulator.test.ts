import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as UpstreamSimulator from "../../layers/UpstreamSimulator.ts"
import { Upstream } from "../../src/services/Upstream.ts"
import { type Collector, collector } from "../upstream/Collector.ts"

describe("UpstreamSimulator", () => {
  it.effect("streams at the pace of Effect's clock", () =>
    Effect.gen(function* () {
      const sink = collector()
      const fiber = yield* Effect.forkChild(ask("m", sink))
      yield* TestClock.adjust(0)
      assert.strictEqual(sink.chunks.length, 1)
      yield* TestClock.adjust("59 millis")
      assert.strictEqual(sink.chunks.length, 3)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.match(sink.body.toString(), /\[DONE\]\n\n$/)
    }).pipe(Effect.provide(UpstreamSimulator.layer))
  )

  it.effect("an interrupted stream is silent", () =>
    Effect.gen(function* () {
      const sink = collector()
      const fiber = yield* Effect.forkChild(ask("m", sink))
      yield* TestClock.adjust("20 millis")
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(sink.chunks.length, 2)
    }).pipe(Effect.provide(UpstreamSimulator.layer))
  )

  it.effect("a slow model answers late, or too late", () =>
    Effect.gen(function* () {
      const sink = collector()
      const patient = yield* Effect.forkChild(ask("simulate-slow", sink, 60_000))
      const hasty = yield* Effect.forkChild(Effect.flip(ask("simulate-slow", collector(), 5_000)))
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(phaseAndReason(yield* Fiber.join(hasty)), ["headers", "timeout"])
      assert.isUndefined(sink.status)
      yield* TestClock.adjust("6 seconds")
      yield* Fiber.join(patient)
      assert.strictEqual(sink.status, 200)
    }).pipe(Effect.provide(UpstreamSimulator.layer))
  )

  it.effect("says who answers, and how to reach what was meant, for a path that is no model's", () =>
    Effect.gen(function* () {
      const sink = collector()
      const upstream = yield* Upstream
      const asked = { method: "GET", target: "/charges", headers: ["authorization", "Bearer any"], body: null }
      yield* upstream.exchange(
        { origin: "http://payments", ...asked, headersWithinMs: 1_000, idleWithinMs: 1_000 },
        sink
      )
      assert.strictEqual(sink.status, 404)
      assert.match(sink.body.toString(), /GET \/charges\. This is the simulator, .* Set UPSTREAM_BASE_URL/)
    }).pipe(Effect.provide(UpstreamSimulator.layer))
  )

  it.effect("a pace beyond the idle deadline is a stall", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(Effect.flip(ask("m", collector())))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(phaseAndReason(yield* Fiber.join(fiber)), ["body", "timeout"])
    }).pipe(Effect.provide(UpstreamSimulator.layerWith({ paceMs: 2_000 })))
  )
})

const phaseAndReason = (error: { readonly phase: string; readonly reason: string }) => [error.phase, error.reason]

const ask = (model: string, sink: Collector, headersWithinMs = 1_000) =>
  Effect.gen(function* () {
    const upstream = yield* Upstream
    yield* upstream.exchange(
      {
        origin: "http://simulator",
        method: "POST",
        target: "/v1/chat/completions",
        headers: ["authorization", "Bearer any"],
        body: Buffer.from(JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "one two" }] })),
        headersWithinMs,
        idleWithinMs: 1_000
      },
      sink
    )
  })
