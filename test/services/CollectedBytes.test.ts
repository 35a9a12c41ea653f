import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { CollectedBytes } from "../../src/services/CollectedBytes.ts"
import { heldMiB } from "../HeldMemory.ts"

const chunks = fc.array(
  fc.oneof(fc.uint8Array({ maxLength: 8 }), fc.uint8Array({ minLength: 4_000, maxLength: 9_000 })).map(Buffer.from),
  { maxLength: 40 }
)

describe("CollectedBytes", () => {
  it("gives back what was added, in its order, also when more comes after a look", () => {
    fc.assert(
      fc.property(chunks, chunks, (before, after) => {
        const collected = new CollectedBytes()
        for (const chunk of before) collected.add(chunk)
        assert.deepStrictEqual(collected.toBuffer(), Buffer.concat(before))
        for (const chunk of after) collected.add(chunk)
        const all = Buffer.concat([...before, ...after])
        assert.strictEqual(collected.length, all.length)
        assert.deepStrictEqual(collected.take(), all)
        assert.deepStrictEqual([collected.length, collected.take().length], [0, 0])
      })
    )
  })

  it("does not copy a body that is one chunk", () => {
    const collected = new CollectedBytes()
    const chunk = Buffer.from("one")
    collected.add(chunk)
    assert.strictEqual(collected.take(), chunk)
  })

  for (const [name, length, chunkOf] of [
    ["chunks of one byte", 1_048_576, () => Buffer.alloc(1, 1)],
    ["chunks around the bound for copying", 512, (index: number) => Buffer.alloc(index % 2 === 0 ? 1 : 4_096, 1)],
    ["small parts of large buffers", 64, () => Buffer.alloc(1_048_576, 1).subarray(0, 16_384)]
  ] as const) {
    it(`holds about as much memory for ${name} as they have bytes`, () => {
      const collected = new CollectedBytes()
      const held = heldMiB(() => {
        for (let index = 0; index < length; index++) collected.add(chunkOf(index))
      })
      assert.isAtMost(held, 3, `for ${collected.length} bytes`)
    })
  }
})
