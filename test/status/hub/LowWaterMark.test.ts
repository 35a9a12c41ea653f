import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import fc from "fast-check"
import { digestOf, LowWaterMark } from "../../../src/status/hub/LowWaterMark.ts"

const contentOf = (offset: number) => Buffer.from(`message ${offset}`)

describe("LowWaterMark", () => {
  it("has reached the last message up to which all are done, in whatever order they are", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.nat(30), { minLength: 1 }).map((offsets) => offsets.toSorted((a, b) => a - b)),
        fc.infiniteStream(fc.nat(1_000)),
        (offsets, choices) => {
          const progress = new LowWaterMark()
          const open = offsets.map((offset) => ({
            offset,
            done: progress.track(1, offset, contentOf(offset))
          }))
          const left = new Set(offsets)
          while (open.length > 0) {
            const [one] = open.splice((choices.next().value ?? 0) % open.length, 1)
            one?.done()
            left.delete(one?.offset ?? 0)
            const firstOpen = offsets.findIndex((offset) => left.has(offset))
            const reached = offsets[(firstOpen < 0 ? offsets.length : firstOpen) - 1]
            assert.strictEqual(progress.latest?.offset, reached)
            if (reached !== undefined) assert.strictEqual(progress.latest?.digest, digestOf(contentOf(reached)))
          }
        }
      )
    )
  })

  it("does not count what a lost channel still had: it comes again", () => {
    const progress = new LowWaterMark()
    const first = progress.track(1, 0, contentOf(0))
    const late = progress.track(1, 1, contentOf(1))
    first()
    const again = progress.track(2, 1, contentOf(1))
    late()
    assert.strictEqual(progress.latest?.offset, 0)
    again()
    assert.strictEqual(progress.latest?.offset, 1)
  })

  it.effect("has no room for ever more beyond one that hangs, and has it again when that is done", () =>
    Effect.gen(function* () {
      const progress = new LowWaterMark()
      const hanging = progress.track(1, 0, contentOf(0))
      let next = 1
      while (!progress.isFull) progress.track(1, next, contentOf(next++))()
      assert.isBelow(next, 20_000)
      const waiting = yield* Effect.forkChild(progress.whenNotFull, { startImmediately: true })
      assert.isUndefined(waiting.pollUnsafe())
      hanging()
      yield* Fiber.join(waiting)
      assert.isFalse(progress.isFull)
      assert.strictEqual(progress.latest?.offset, next - 1)
    })
  )
})
