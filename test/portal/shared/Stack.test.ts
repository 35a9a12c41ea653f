import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { withGapsAtZero } from "../../../src/portal/shared/charts/stack.ts"

const series = ["fine", "limited", "failed"].map((key) => ({ key, label: key }))

const drawnOf = (counts: ReadonlyArray<readonly [fine: number, limited: number, failed: number]>) =>
  withGapsAtZero(
    counts.map(([fine, limited, failed], at) => ({ at, values: { fine, limited, failed } })),
    series
  ).map(({ values }) => series.map(({ key }) => values[key] ?? null))

describe("The areas of a stack", () => {
  it("are outlined in the colour of errors only where errors are", () => {
    assert.deepStrictEqual(
      drawnOf([
        [3, 0, 0],
        [4, 0, 0],
        [0, 0, 2],
        [5, 0, 0],
        [6, 0, 0]
      ]),
      [
        [3, null, null],
        [4, null, 0],
        [0, null, 2],
        [5, null, 0],
        [6, null, null]
      ]
    )
  })

  it("take what a point lacks as zero", () => {
    const counts = [{ fine: 3 }, { fine: 3, failed: 5 }, {}]
    const drawn = withGapsAtZero(
      counts.map((values, at) => ({ at, values })),
      series
    )
    assert.deepStrictEqual(
      drawn.map(({ values }) => values),
      [
        { fine: 3, limited: null, failed: 0 },
        { fine: 3, limited: null, failed: 5 },
        { fine: 0, limited: null, failed: 0 }
      ]
    )
  })

  it("lose no value, and keep the whole of the lowest one", () => {
    const count = fc.oneof(fc.constant(0), fc.nat(9))
    fc.assert(
      fc.property(fc.array(fc.tuple(count, count, count)), (counts) => {
        for (const [place, [fine, ...others]] of drawnOf(counts).entries()) {
          assert.strictEqual(fine, counts[place]?.[0])
          others.forEach((value, other) => {
            const near = [place - 1, place, place + 1].map((one) => counts[one]?.[other + 1] ?? 0)
            assert.strictEqual(value, near.some((one) => one !== 0) ? (counts[place]?.[other + 1] ?? 0) : null)
          })
        }
      })
    )
  })
})
