import { assert, it } from "@effect/vitest"
import * as FairShare from "../../src/services/FairShare.ts"

it("a share is a quarter, and at least one", () => {
  assert.deepStrictEqual([1_024, 10, 3, 1].map(FairShare.maximum), [256, 2, 1, 1])
})

it("where others hold much, a share is half of what they leave, and the last of it is for many", () => {
  const left = [4_096, 2_048, 1_024, 512, 256, 65, 64, 1, 0]
  const shares = left.map((left) => FairShare.allowance(4_096, 4_096 - left))
  assert.deepStrictEqual(shares, [1_024, 896, 384, 128, 8, 8, 1, 1, 1])
  assert.deepStrictEqual(
    [64, 8, 1].map((total) => FairShare.allowance(total, 0)),
    [16, 2, 1]
  )
})

it.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "::ffff:192.0.2.1"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
  ["2001:db8:1:2::6", "2001:db8:1:2"],
  ["2001:db8::6", "2001:db8:0:0"],
  ["::1", "0:0:0:0"],
  ["fe80::", "fe80:0:0:0"]
])("the caller at %s is %s", (address, caller) => {
  assert.strictEqual(FairShare.callerOfAddress(address), caller)
})
