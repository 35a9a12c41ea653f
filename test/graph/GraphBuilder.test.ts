import { assert, describe, it, vi } from "@effect/vitest"
import fc from "fast-check"
import { GraphBuilder } from "../../src/graph/draw/GraphBuilder.ts"

const drawn = (ids: ReadonlyArray<string>) => {
  const drawing = new GraphBuilder()
  return ids.map((id) => drawing.addNode(id, "task", "task"))
}

describe("the ids of nodes", () => {
  it("are those that were asked for, or the next that are free", () => {
    const id = fc.constantFrom("a", "a~2", "a~3", "a~5", "a~2~2", "b")
    fc.assert(
      fc.property(fc.array(id, { maxLength: 40 }), (ids) => {
        const taken = new Set<string>()
        const expected = ids.map((id) => {
          let own: string = id
          for (let number = 2; taken.has(own); number++) own = `${id}~${number}`
          taken.add(own)
          return own
        })
        assert.deepStrictEqual(drawn(ids), expected)
      })
    )
  })

  it("are found with as many looks for a thousand of one id as for a thousand of different ones, or few more", () => {
    const has = vi.spyOn(Map.prototype, "has")
    const looks = (ids: ReadonlyArray<string>) => {
      has.mockClear()
      drawn(ids)
      return has.mock.calls.length
    }
    try {
      const thousand = Array.from({ length: 1_000 }, (_, n) => `id-${n}`)
      assert.isAtMost(looks(thousand.map(() => "id")), 2 * looks(thousand))
    } finally {
      has.mockRestore()
    }
  })
})
