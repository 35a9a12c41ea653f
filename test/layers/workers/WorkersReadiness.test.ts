import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import { merge, type WorkerReport } from "../../../layers/workers/WorkersReadiness.ts"
import type { Report } from "../../../src/process/Readiness.ts"

const report = (status: Report["status"], database = "up"): Report => ({
  status,
  checks: { database, redis: "up", listeners: "open" }
})
const worker = (number: number, state: WorkerReport["state"], its?: Report): WorkerReport => ({
  number,
  state,
  report: Option.fromUndefinedOr(its)
})
const one = worker(1, "serving", report("ready"))

describe("the readiness of several workers", () => {
  it("is ready while all are, with the checks that they agree on", () => {
    assert.deepStrictEqual(merge("serving", [one, worker(2, "serving", report("ready"))]), {
      status: "ready",
      checks: {
        database: "up",
        redis: "up",
        listeners: "open",
        workers: "2 of 2",
        worker_1: "ready",
        worker_2: "ready"
      }
    })
  })

  it("is degraded while one is not, and names it and the checks that differ", () => {
    const two = worker(2, "serving", report("degraded", "down"))
    assert.deepStrictEqual(merge("serving", [one, two]), {
      status: "degraded",
      checks: {
        database: "worker_1 up, worker_2 down",
        redis: "up",
        listeners: "open",
        workers: "2 of 2",
        worker_1: "ready",
        worker_2: "degraded"
      }
    })
  })

  it.each([
    ["does not respond", worker(2, "serving"), "silent"],
    ["is not ready itself", worker(2, "serving", report("not_ready")), "not_ready"],
    ["starts", worker(2, "starting"), "starting"],
    ["waits for its restart", worker(2, "restarting"), "restarting"],
    ["crashes again and again", worker(2, "crash_loop"), "crash_loop"]
  ] as const)("is degraded while one %s, and not ready without another one", (_, two, check) => {
    const both = merge("serving", [one, two])
    assert.strictEqual(both.status, "degraded")
    assert.deepInclude(both.checks, { workers: "1 of 2", worker_1: "ready", worker_2: check })
    const alone = merge("serving", [two])
    assert.strictEqual(alone.status, "not_ready")
    assert.deepInclude(alone.checks, { workers: "0 of 1", worker_2: check })
  })

  it.each([
    ["starting", "opening"],
    ["draining", "closing"]
  ] as const)("is not ready while the program is %s", (phase, listeners) => {
    const { checks, status } = merge(phase, [one])
    assert.strictEqual(status, "not_ready")
    assert.strictEqual(checks["listeners"], listeners)
  })
})
