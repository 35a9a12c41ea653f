import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import fc from "fast-check"
import { isMistyped, isWellFormed, mint } from "../../src/state/Secret.ts"

const key = () => Redacted.value(mint("rk_live_"))

describe("a gateway key", () => {
  it("carries a checksum, and one wrong digit is told without asking anybody", () => {
    fc.assert(
      fc.property(fc.nat({ max: 71 }), fc.integer({ min: 1, max: 15 }), (place, shift) => {
        const raw = key()
        const index = "rk_live_".length + place
        const digit = (Number.parseInt(raw[index] ?? "", 16) + shift) % 16
        const wrong = raw.slice(0, index) + digit.toString(16) + raw.slice(index + 1)
        assert.deepStrictEqual([isMistyped(raw), isWellFormed("rk_live_", raw)], [false, true])
        assert.isTrue(isMistyped(wrong))
      })
    )
  })

  it("of an earlier version has none, and is looked up as ever", () => {
    assert.isFalse(isMistyped(key().slice(0, -8)))
    assert.isFalse(isMistyped(`rk_live_${"0".repeat(64)}`))
  })

  it("is no operator token: those are as they were", () => {
    assert.match(Redacted.value(mint("op_live_")), /^op_live_[0-9a-f]{64}$/)
  })
})
