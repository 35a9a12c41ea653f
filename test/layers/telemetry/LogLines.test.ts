import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Logger, Redacted, Schema } from "effect"
import * as fc from "fast-check"
import * as LogLines from "../../../layers/telemetry/LogLines.ts"

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

const output = () => {
  const writes: Array<string> = []
  return {
    writableLength: 0,
    writes,
    write: (bytes: Uint8Array, taken: () => void) => {
      writes.push(Buffer.from(bytes).toString())
      taken()
    },
    lines: () =>
      writes.flatMap((text) =>
        text
          .trimEnd()
          .split("\n")
          .map((line) => decode(line))
      )
  }
}

const logged = (program: Effect.Effect<unknown>) =>
  Effect.gen(function* () {
    const to = output()
    yield* Effect.scoped(
      Effect.flatMap(LogLines.make(to, { role: "gateway" }), ({ logger }) =>
        Effect.provide(program, Logger.layer([logger]))
      )
    )
    return to.lines()
  })

describe("lines of the log", () => {
  it.effect("name the worker that wrote them, where there are several", () =>
    Effect.gen(function* () {
      const to = output()
      const source = { role: "gateway", worker: 2 }
      yield* Effect.scoped(
        Effect.flatMap(LogLines.make(to, source), ({ info, logger }) =>
          Effect.andThen(
            Effect.sync(() => info("request")(0, ',"status":200')),
            Effect.provide(Effect.logInfo("draining", { worker: "a field" }), Logger.layer([logger]))
          )
        )
      )
      const [request, draining] = to.lines()
      assert.deepInclude(request, { ...source, message: "request", status: 200 })
      assert.deepInclude(draining, { ...source, message: "draining", worker_: "a field" })
    })
  )

  it.effect("have a message that is a string, and fields that say something", () =>
    Effect.gen(function* () {
      const lines = yield* logged(
        Effect.gen(function* () {
          yield* Effect.logInfo("draining")
          yield* Effect.logWarning("RabbitMQ refuses us", "queue q", {
            attempts: 3,
            empty: "",
            none: null,
            nothing: {}
          })
          yield* Effect.logError("it failed", Cause.fail(new Error("because", { cause: new Error("of that") })))
          yield* Effect.logWarning("twice", { cause: new RangeError("too far"), secret: Redacted.make("canary") })
          yield* Effect.logInfo("named", { message: "mine", level: "mine", list: [1] })
        }).pipe(Effect.annotateLogs("part", "test"))
      )
      const shown = lines.map(({ timestamp, ...rest }) => {
        assert.match(String(timestamp), /^\d{4}-.*Z$/)
        return rest
      })
      const common = { role: "gateway", part: "test" }
      assert.deepStrictEqual(shown[0], { ...common, level: "INFO", message: "draining" })
      assert.deepStrictEqual(shown[1], {
        ...common,
        level: "WARN",
        message: "RabbitMQ refuses us: queue q",
        attempts: 3
      })
      assert.deepInclude(shown[2], { ...common, level: "ERROR", message: "it failed" })
      assert.match(String(shown[2]?.["cause"]), /because[\s\S]*of that/)
      assert.deepStrictEqual(shown[3], {
        ...common,
        level: "WARN",
        message: "twice",
        cause: "RangeError: too far",
        secret: "<redacted>"
      })
      assert.deepStrictEqual(shown[4], {
        ...common,
        level: "INFO",
        message: "named",
        message_: "mine",
        level_: "mine",
        list: [1]
      })
    })
  )

  it.effect("have a message also where only an error or fields were logged", () =>
    Effect.gen(function* () {
      const lines = yield* logged(
        Effect.gen(function* () {
          yield* Effect.logInfo(Cause.fail(new RangeError("too far")))
          yield* Effect.logError(new RangeError("too far"))
          yield* Effect.logInfo("", Cause.die("no ink"))
          yield* Effect.logInfo({ attempts: 3 })
        })
      )
      const messages = ["RangeError: too far", "RangeError: too far", "Error: no ink", "no message"]
      assert.deepStrictEqual(
        lines.map(({ message }) => message),
        messages
      )
      assert.strictEqual(lines[0]?.["cause"], "RangeError: too far")
      assert.strictEqual(lines[3]?.["attempts"], 3)
    })
  )

  it.effect("name no trace where nothing is traced", () =>
    Effect.gen(function* () {
      const traced = Effect.withSpan(Effect.logInfo("asked"), "request")
      const [line] = yield* logged(Effect.withTracerEnabled(traced, false))
      assert.notProperty(line, "trace_id")
      assert.notProperty(line, "span_id")
      const [other] = yield* logged(traced)
      assert.isString(other?.["trace_id"])
    })
  )

  it.effect("of requests are written together, and before a warning", () =>
    Effect.gen(function* () {
      const to = output()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { info, logger } = yield* LogLines.make(to, { role: "gateway" })
          const request = info("request")
          for (let i = 0; i < 3; i++) request(0, `,"n":${i}`)
          assert.lengthOf(to.writes, 0)
          yield* Effect.provide(Effect.logWarning("stop"), Logger.layer([logger]))
          assert.lengthOf(to.writes, 1)
          request(0, "")
        })
      )
      assert.lengthOf(to.writes, 2)
      assert.deepStrictEqual(
        to.lines().map(({ message, n }) => [message, n]),
        [
          ["request", 0],
          ["request", 1],
          ["request", 2],
          ["stop", undefined],
          ["request", undefined]
        ]
      )
    })
  )

  it.effect("are dropped and counted while nobody reads them", () =>
    Effect.gen(function* () {
      const to = output()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const request = (yield* LogLines.make(to, { role: "gateway" })).info("request")
          to.writableLength = 1_000_000_000
          for (let i = 0; i < 3; i++) request(0, "")
          to.writableLength = 0
          request(0, "")
        })
      )
      assert.deepStrictEqual(
        to.lines().map(({ lines, message }) => [message, lines]),
        [
          ["log lines were dropped because nothing read the output", 3],
          ["request", undefined]
        ]
      )
    })
  )

  it.effect("stay as they are until the output has taken them, however long they are", () =>
    Effect.gen(function* () {
      const held: Array<{ readonly bytes: Uint8Array; readonly taken: () => void }> = []
      const texts = ["a", "é".repeat(30_000), "🦊".repeat(20_000), "b".repeat(70_000), "c"]
      const read: Array<unknown> = []
      const take = () => {
        for (const { bytes, taken } of held.splice(0)) {
          for (const line of Buffer.from(bytes).toString().trimEnd().split("\n")) read.push(decode(line)["text"])
          taken()
        }
      }
      const to = { writableLength: 0, write: (bytes: Uint8Array, taken: () => void) => held.push({ bytes, taken }) }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const request = (yield* LogLines.make(to, { role: "gateway" })).info("request")
          for (const text of texts) request(0, `,"text":${JSON.stringify(text)}`)
          take()
          for (const text of texts) request(0, `,"text":${JSON.stringify(text)}`)
        })
      )
      take()
      assert.deepStrictEqual(read, [...texts, ...texts])
    })
  )

  it.effect("tell the time to the millisecond", () =>
    Effect.gen(function* () {
      const times = fc
        .sample(fc.integer({ min: 0, max: 4_102_444_800_000 }), 100)
        .flatMap((at) => [at, at + 1, at + 99])
      const to = output()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const request = (yield* LogLines.make(to, { role: "gateway" })).info("request")
          for (const at of times) request(at, "")
        })
      )
      assert.deepStrictEqual(
        to.lines().map(({ timestamp }) => timestamp),
        times.map((at) => new Date(at).toISOString())
      )
    })
  )
})
