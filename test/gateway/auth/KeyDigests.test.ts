import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { KeyDigests } from "../../../src/gateway/auth/KeyDigests.ts"
import { digestHex } from "../../../src/state/Secret.ts"

describe("digests of the keys that connections present", () => {
  it("are those of the presented keys, whatever was presented before", () => {
    const connections = [{}, {}]
    const presented = fc.tuple(fc.constantFrom(...connections), fc.constantFrom("rk_live_a", "rk_live_b", "rk_live_c"))
    fc.assert(
      fc.property(fc.array(presented), (requests) => {
        const digests = new KeyDigests()
        for (const [connection, raw] of requests) assert.strictEqual(digests.of(connection, raw), digestHex(raw))
      })
    )
  })
})
