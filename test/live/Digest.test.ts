import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import fc from "fast-check"
import * as Digest from "../../src/live/Digest.ts"
import { DigestBuffer } from "../../src/live/DigestBuffer.ts"

const most = 3
const kind = fc.constantFrom("started", "ended", "refused")
const merge = (earlier: Digest.Digest, later: Digest.Digest) => Digest.merge(earlier, later, most)

/** Kinds of what happened, in its order. */
const happened = fc.array(kind, { maxLength: 12 })

const one = (kind: string, at: number): Digest.Digest => ({ [kind]: { count: 1, latest: [{ at }] } })

const digestOf = (kinds: ReadonlyArray<string>): Digest.Digest =>
  kinds.map(one).reduce<Digest.Digest>(merge, Digest.empty)

describe("a digest", () => {
  it("is the same, however what happened is grouped", () => {
    fc.assert(
      fc.property(happened, happened, happened, (a, b, c) => {
        const [x, y, z] = [digestOf(a), digestOf(b), digestOf(c)]
        assert.deepStrictEqual(merge(merge(x, y), z), merge(x, merge(y, z)))
        assert.deepStrictEqual(merge(Digest.empty, x), x)
        assert.deepStrictEqual(merge(x, Digest.empty), x)
      })
    )
  })

  it("counts everything, describes the latest in their order, and survives its journey", () => {
    fc.assert(
      fc.property(happened, (kinds) => {
        const digest = digestOf(kinds)
        for (const kind of new Set(kinds)) {
          const places = kinds.flatMap((one, at) => (one === kind ? [{ at }] : []))
          assert.deepStrictEqual(digest[kind], { count: places.length, latest: places.slice(-most) })
        }
        assert.deepStrictEqual(Digest.decode(Digest.encode(digest)), Option.some(digest))
      })
    )
  })

  it("comes from a buffer as it would from merging, also after a failed send", () => {
    const step = fc.oneof(kind, fc.constantFrom("(fails)"))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const buffer = new DigestBuffer(most)
        for (const [at, kind] of steps.entries()) {
          if (kind !== "(fails)") buffer.add(kind, () => ({ at }))
          else {
            const taken = buffer.take()
            if (taken !== undefined) buffer.putBack(taken)
          }
        }
        const all = steps.flatMap((kind, at) => (kind === "(fails)" ? [] : [one(kind, at)]))
        assert.deepStrictEqual(buffer.take() ?? Digest.empty, all.reduce<Digest.Digest>(merge, Digest.empty))
        assert.isUndefined(buffer.take())
      })
    )
  })
})
