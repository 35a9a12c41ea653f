import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { neutral } from "../../src/policy/KeyPolicy.ts"
import * as StoredPolicies from "../../src/policy/StoredPolicies.ts"
import { policy as policies } from "./Policies.ts"

describe("a stored policy", () => {
  it("holds nothing of what is neutral, so that an older version can read it", () => {
    assert.strictEqual(StoredPolicies.encode(neutral), "{}")
    assert.strictEqual(StoredPolicies.encode({ ...neutral, deny: true }), '{"deny":true}')
  })

  it("is read back as it was", () => {
    fc.assert(
      fc.property(policies, (policy) => {
        const row = { policy: JSON.parse(StoredPolicies.encode(policy)), guardrail_policy: {} }
        assert.deepStrictEqual(StoredPolicies.decode(row).policy, policy)
      })
    )
  })
})
