import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { DenseSet, DenseSetItem } from "../../src/services/DenseSet.ts"

class Thing extends DenseSetItem {}

describe("a bag", () => {
  const step = fc.tuple(fc.constantFrom("add", "delete"), fc.nat(9))

  it("holds what a set would", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const things = Array.from({ length: 10 }, () => new Thing())
        const [bag, set] = [new DenseSet<Thing>(), new Set<Thing>()]
        for (const [what, n] of steps) {
          const thing = things[n]!
          bag[what](thing)
          set[what](thing)
          assert.strictEqual(bag.size, set.size)
          assert.sameMembers([...bag], [...set])
        }
      })
    )
  })
})
