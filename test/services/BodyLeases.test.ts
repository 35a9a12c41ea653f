import { assert, describe, it } from "@effect/vitest"
import { BodyLeases } from "../../src/services/BodyLeases.ts"

/** Takes bodies of so many bytes until one is refused, and returns how many it has. */
const fill = (leases: BodyLeases, caller: string, bytes: number): number => {
  for (let taken = 0; ; taken++) if (leases.lease(caller).grow(bytes) !== undefined) return taken
}

describe("room for bodies", () => {
  it.each([
    [20, 8],
    [80, 1]
  ])("has a place for one more caller when %i others have all the places that they may", (others, atLeast) => {
    const leases = new BodyLeases({ requests: 4_096, bytes: 1_000_000_000 })
    const taken = Array.from({ length: others }, (_, index) => fill(leases, `greedy ${index}`, 1))
    assert.strictEqual(taken[0], 1_024)
    assert.isAtLeast(fill(leases, "late", 1), atLeast)
  })

  it("has bytes for one more caller when fifty others have all the bytes that they may", () => {
    const leases = new BodyLeases({ requests: 1_000_000, bytes: 67_108_864 })
    for (let index = 0; index < 50; index++) fill(leases, `greedy ${index}`, 65_536)
    assert.isAtLeast(fill(leases, "late", 65_536), 1)
  })

  it("is given back once, by whoever releases it", () => {
    const leases = new BodyLeases({ requests: 8, bytes: 1_000 })
    const lease = leases.lease("caller")
    lease.grow(100)
    lease.grow(100)
    assert.deepStrictEqual({ ...leases.usage }, { requests: 1, bytes: 200 })
    lease.release()
    lease.release()
    assert.deepStrictEqual({ ...leases.usage }, { requests: 0, bytes: 0 })
  })
})
