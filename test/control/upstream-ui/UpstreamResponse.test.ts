import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Stream } from "effect"
import * as UpstreamResponse from "../../../src/control/upstream-ui/UpstreamResponse.ts"
import { type Exchange, fromCallbacks, Upstream, UpstreamError } from "../../../src/services/Upstream.ts"

const exchange: Exchange = {
  origin: "https://upstream.test",
  method: "GET",
  target: "/ui",
  headers: [],
  body: null,
  headersWithinMs: 1000,
  idleWithinMs: 1000
}

const piece = Buffer.alloc(65_536, "x")

/** An upstream that sends `pieces`, as fast as it is let, and ends as `end` says; and how far it has come. */
const sending = (pieces: number, end: Exit.Exit<void, UpstreamError> = Exit.void) => {
  const seen = { sent: 0, cancelled: false }
  const door = fromCallbacks((_, sink, done) => {
    const send = () => {
      while (seen.sent < pieces) {
        seen.sent++
        if (sink.chunk(piece) === "pause") return sink.onDrain(send)
      }
      done(end)
    }
    sink.head(200, ["a", "b"])
    send()
    return () => {
      seen.cancelled = true
      return true
    }
  })
  return { seen, layer: Layer.succeed(Upstream, door) }
}

const sizeOf = (body: UpstreamResponse.UpstreamResponse["body"]) =>
  Stream.runFold(
    body,
    () => 0,
    (size, bytes: Uint8Array) => size + bytes.length
  )

describe("UpstreamAnswer", () => {
  it.effect("lets the upstream send only as fast as it is read, and no byte is lost", () => {
    const { layer, seen } = sending(100)
    return Effect.gen(function* () {
      const { body, headers, status } = yield* UpstreamResponse.request(exchange)
      assert.deepStrictEqual([status, headers], [200, ["a", "b"]])
      assert.isAtMost(seen.sent, 5)
      assert.strictEqual(yield* sizeOf(body), 100 * piece.length)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("hands out a short body whole, and one that is too long as the stream that it is", () =>
    Effect.gen(function* () {
      const short = sending(3)
      const size = yield* Effect.gen(function* () {
        return (yield* (yield* UpstreamResponse.request(exchange)).bufferUpTo(3 * piece.length))?.length
      }).pipe(Effect.scoped, Effect.provide(short.layer))
      assert.strictEqual(size, 3 * piece.length)
      const long = sending(20)
      yield* Effect.gen(function* () {
        const { body, bufferUpTo } = yield* UpstreamResponse.request(exchange)
        assert.isUndefined(yield* bufferUpTo(2 * piece.length))
        assert.isAtMost(long.seen.sent, 9)
        assert.strictEqual(yield* sizeOf(body), 20 * piece.length)
      }).pipe(Effect.scoped, Effect.provide(long.layer))
    })
  )

  it.effect("ends the exchange with its scope", () => {
    const { layer, seen } = sending(100)
    return Effect.gen(function* () {
      yield* Effect.scoped(UpstreamResponse.request(exchange))
      assert.isTrue(seen.cancelled)
    }).pipe(Effect.provide(layer))
  })

  it.effect("fails where the upstream does", () => {
    const error = new UpstreamError({ phase: "body", reason: "reset" })
    const { layer } = sending(1, Exit.fail(error))
    return Effect.gen(function* () {
      const { body } = yield* UpstreamResponse.request(exchange)
      assert.strictEqual(yield* Effect.flip(sizeOf(body)), error)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })
})
