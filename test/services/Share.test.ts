import { assert, it } from "@effect/vitest"
import * as Share from "../../src/services/Share.ts"

it("a share is a quarter, and at least one", () => {
  assert.deepStrictEqual([1_024, 10, 3, 1].map(Share.of), [256, 2, 1, 1])
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
  assert.strictEqual(Share.callerAt(address), caller)
})
