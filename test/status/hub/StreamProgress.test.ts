import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import fc from "fast-check"
import { digestOf, StreamProgress } from "../../../src/status/hub/StreamProgress.ts"

const contentOf = (offset: number) => Buffer.from(`message ${offset}`)

describe("StreamProgress", () => {
  it("has reached the last message up to which all are done, in whatever order they are", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.nat(30), { minLength: 1 }).map((offsets) => offsets.toSorted((a, b) => a - b)),
        fc.infiniteStream(fc.nat(1_000)),
        (offsets, choices) => {
          const progress = new StreamProgress()
          const open = offsets.map((offset) => ({
            offset,
            done: progress.delivered(1, offset, contentOf(offset))
          }))
          const left = new Set(offsets)
          while (open.length > 0) {
            const [one] = open.splice((choices.next().value ?? 0) % open.length, 1)
            one?.done()
            left.delete(one?.offset ?? 0)
            const firstOpen = offsets.findIndex((offset) => left.has(offset))
            const reached = offsets[(firstOpen < 0 ? offsets.length : firstOpen) - 1]
            assert.strictEqual(progress.reached?.offset, reached)
            if (reached !== undefined) assert.strictEqual(progress.reached?.digest, digestOf(contentOf(reached)))
          }
        }
      )
    )
  })

  it("does not count what a lost channel still had: it comes again", () => {
    const progress = new StreamProgress()
    const first = progress.delivered(1, 0, contentOf(0))
    const late = progress.delivered(1, 1, contentOf(1))
    first()
    const again = progress.delivered(2, 1, contentOf(1))
    late()
    assert.strictEqual(progress.reached?.offset, 0)
    again()
    assert.strictEqual(progress.reached?.offset, 1)
  })

  it.effect("has no room for ever more beyond one that hangs, and has it again when that is done", () =>
    Effect.gen(function* () {
      const progress = new StreamProgress()
      const hanging = progress.delivered(1, 0, contentOf(0))
      let next = 1
      while (!progress.isFull) progress.delivered(1, next, contentOf(next++))()
      assert.isBelow(next, 20_000)
      const waiting = yield* Effect.forkChild(progress.room, { startImmediately: true })
      assert.isUndefined(waiting.pollUnsafe())
      hanging()
      yield* Fiber.join(waiting)
      assert.isFalse(progress.isFull)
      assert.strictEqual(progress.reached?.offset, next - 1)
    })
  )
})
