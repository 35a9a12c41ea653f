import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { changedPaths } from "../../../src/status/replay/ChangedPaths.ts"

/** The value with the members of its objects the other way around. */
const turned = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(turned)
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([name, member]) => [name, turned(member)])
  )
}

describe("what an edit has changed", () => {
  it("is told by its places, and never by its values", () => {
    const before = { payload: { order: { id: "secret", lines: [1, 2] } } }
    const after = { payload: { order: { id: "other", lines: [1, 3, 4] }, note: "new" } }
    assert.deepStrictEqual(changedPaths(before, after), [
      "payload.note",
      "payload.order.id",
      "payload.order.lines.1",
      "payload.order.lines.2"
    ])
    assert.deepStrictEqual(changedPaths(undefined, after), ["body"])
  })

  it("is nothing where the values are the same, in whatever order", () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => assert.deepStrictEqual(changedPaths(value, turned(value)), [])))
  })

  it("is told of values of any depth and size", () => {
    const nested = (depth: number) => JSON.parse("[".repeat(depth) + "]".repeat(depth))
    assert.deepStrictEqual(changedPaths(nested(100_000), nested(100_001)), [Array(32).fill("0").join(".")])
    const wide = (value: number) => Array(100_000).fill(value)
    assert.strictEqual(changedPaths(wide(0), wide(1)).length, 50)
  })

  it("is told so that the audit log can keep it, whatever the members are called", () => {
    const told = changedPaths({}, { ["x".repeat(100_000)]: 1, "a\0b": 1, [`${"x".repeat(199)}\u{1f600}`]: 1 })
    assert.deepStrictEqual(told, ["a\u{fffd}b", "x".repeat(200), `${"x".repeat(199)}\u{fffd}`])
  })
})
