import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { isCrossed } from "../../../src/gateway/limits/LiveLimits.ts"

describe("a part of a limit", () => {
  it("is crossed once by requests that raise the counter, and not before it is used", () => {
    const amounts = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 20 })
    fc.assert(
      fc.property(
        amounts,
        fc.integer({ min: 1, max: 200 }),
        fc.constantFrom(50, 80, 100),
        (amounts, limit, percent) => {
          let used = 0
          const crossings = amounts.filter((amount) => {
            used += amount
            return isCrossed(percent, limit, used, amount)
          })
          assert.lengthOf(crossings, used * 100 >= limit * percent ? 1 : 0)
        }
      )
    )
  })
})
