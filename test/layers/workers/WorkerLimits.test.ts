import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import * as Environment from "../../../layers/Environment.ts"
import { partOf, settingsOf } from "../../../layers/workers/WorkerLimits.ts"

describe("the limits of a worker", () => {
  it("are parts that add up to the whole, differ by one at most, and are never zero", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e12 }), fc.integer({ min: 1, max: 64 }), (total, of) => {
        const parts = Array.from({ length: of }, (_, index) => partOf(total, { number: index + 1, of }))
        assert.strictEqual(
          parts.reduce((sum, part) => sum + part, 0),
          Math.max(total, of)
        )
        assert.isAtMost(Math.max(...parts) - Math.min(...parts), 1)
      })
    )
  })

  it("are those that each process counts by itself", () => {
    const settings = Result.getOrThrow(
      Environment.read({
        GATEWAY_MAX_CONNECTIONS: "101",
        GATEWAY_MAX_CONNECTIONS_PER_ADDRESS: "10",
        GATEWAY_MAX_BUFFERED_REQUESTS: "3",
        GATEWAY_MAX_INFLIGHT_BUFFER_BYTES: "1000"
      })
    )
    assert.deepInclude(settingsOf(settings, { number: 1, of: 4 }), {
      ...settings,
      connectionLimits: { total: 26, perAddress: 3 },
      maxBufferedRequests: 1,
      maxInflightBufferBytes: 250,
      pools: {
        databaseSessions: 3,
        upstream: { connectionsPerOrigin: 1_024, waitingPerOrigin: 1_024, idleConnections: 256 }
      }
    })
    assert.strictEqual(settingsOf(settings, { number: 64, of: 64 }).pools.databaseSessions, 2)
  })
})
