import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import fc from "fast-check"
import * as Timestamp from "../../../src/messaging/envelope/Timestamp.ts"

const read = Schema.decodeUnknownResult(Timestamp.Timestamp)

describe("a Timestamp that is none", () => {
  it.each([new Date(0), true, {}, null])("is refused with the name of its format: %j", (given) => {
    const refused = read(given)
    assert.include(Result.isFailure(refused) ? refused.failure.message : "", "an ISO 8601 date-time or an epoch number")
  })
})

describe("Timestamp", () => {
  it.each([
    ["2026-04-06T10:00:00.123456Z", "2026-04-06T10:00:00.123456Z"],
    ["2026-04-06T10:00:00Z", "2026-04-06T10:00:00Z"],
    ["2026-04-06T10:00:00.000000Z", "2026-04-06T10:00:00Z"],
    ["2026-04-06T10:00:00.123Z", "2026-04-06T10:00:00.123000Z"],
    ["2026-04-06T10:00:00.1Z", "2026-04-06T10:00:00.100000Z"],
    ["2026-04-06T10:00:00.000001Z", "2026-04-06T10:00:00.000001Z"],
    ["2026-04-06T10:00:00.123456789Z", "2026-04-06T10:00:00.123456Z"],
    ["2026-04-06T12:00:00.5+02:00", "2026-04-06T10:00:00.500000Z"],
    ["2026-04-06T05:30:00-0430", "2026-04-06T10:00:00Z"],
    ["2026-04-06 10:00:00", "2026-04-06T10:00:00Z"],
    ["2026-04-06T10:00", "2026-04-06T10:00:00Z"],
    ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"],
    [1_775_469_600, "2026-04-06T10:00:00Z"],
    [1_775_469_600.25, "2026-04-06T10:00:00.250000Z"],
    [1_775_469_600_123, "2026-04-06T10:00:00.123000Z"],
    [0, "1970-01-01T00:00:00Z"],
    [-1, "1969-12-31T23:59:59Z"]
  ])("reads %j as %s", (input, expected) => {
    assert.deepStrictEqual(read(input), Result.succeed(expected))
  })

  it("reads its own form as it is, on every day of four years", () => {
    for (let millis = Date.UTC(2024, 0, 1); millis < Date.UTC(2028, 0, 1); millis += 86_399_877) {
      const text = Timestamp.ofMillis(millis)
      assert.deepStrictEqual(read(text), Result.succeed(text))
      assert.strictEqual(Timestamp.toMillis(text), millis)
    }
  })

  it.each([
    ["yesterday"],
    [""],
    ["2026-04-06"],
    ["2026-02-30T10:00:00Z"],
    ["2026-02-29T10:00:00Z"],
    ["2026-04-31T10:00:00.000001Z"],
    ["2026-01-32T10:00:00Z"],
    ["2026-00-01T10:00:00Z"],
    ["0000-01-01T00:00:00Z"],
    ["2026-04-06T10:60:00Z"],
    ["2026-13-01T10:00:00Z"],
    ["2026-04-06T24:00:00Z"],
    ["2026-04-06T10:00:60Z"],
    ["2026-04-06T10:00:00+25:00"],
    ["0001-01-01T00:00:00+01:00"],
    ["9999-12-31T23:59:59-01:00"],
    [1e20],
    [true],
    [null],
    [{}]
  ])("refuses %j", (input) => {
    assert.isTrue(Result.isFailure(read(input)))
  })

  it("reads again what it wrote, and orders by instants where text would not", () => {
    const instant = fc.record({
      millis: fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }),
      micros: fc.integer({ min: 0, max: 999 })
    })
    fc.assert(
      fc.property(instant, instant, (one, other) => {
        const [left, right] = [one, other].map(({ micros, millis }) => {
          const text = new Date(millis).toISOString().replace("Z", `${String(micros).padStart(3, "0")}Z`)
          return Result.getOrThrow(read(text))
        })
        assert.deepStrictEqual(read(left), Result.succeed(left ?? ""))
        assert.strictEqual(Timestamp.toMillis(left ?? ""), one.millis)
        assert.strictEqual(
          Math.sign(Timestamp.compare(left ?? "", right ?? "")),
          Math.sign(one.millis - other.millis || one.micros - other.micros)
        )
      })
    )
    assert.isBelow(Timestamp.compare("2026-04-06T10:00:00Z", "2026-04-06T10:00:00.500000Z"), 0)
  })

  it("writes an observation's with an offset", () => {
    assert.strictEqual(Timestamp.withOffset(Timestamp.ofMillis(1_775_469_600_001)), "2026-04-06T10:00:00.001000+00:00")
  })
})
