import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import * as ConsumerTimeout from "../../../src/messaging/consume/ConsumerTimeout.ts"
import { shared } from "../SampleTopologies.ts"

const queueWith = (milliseconds?: number, type: "classic" | "quorum" = "classic") =>
  shared({
    task_queue_type: type,
    ...(milliseconds !== undefined && { task_consumer_timeout_ms: milliseconds })
  }).tasks.family

const minute = 60_000

describe("ConsumerTimeout", () => {
  it.each([
    ["nobody sets anything", undefined, "classic", "3.13.1", undefined, false],
    ["the handler's is below the broker's own", undefined, "classic", "3.10.8", 29, false],
    ["the handler's is not below the broker's own", undefined, "classic", "3.10.8", 30, true],
    ["the handler's is below the queue's", 10 * minute, "classic", "3.12.0", 9, false],
    ["the handler's is not below the queue's", 10 * minute, "classic", "3.12.0", 10, true],
    ["the queue has one, and the handler none", 10 * minute, "classic", "3.12.0", undefined, true],
    ["a release that ignores the queue's: the broker's own counts", 10 * minute, "classic", "3.10.8", 20, false],
    ["a release that ignores it on classic queues", 10 * minute, "classic", "4.3.0", undefined, false],
    ["the same release on quorum queues", 10 * minute, "quorum", "4.3.0", 10, true]
  ] as const)("%s", (_name, queueMs, type, version, minutes, warns) => {
    const handleWithin = minutes === undefined ? undefined : Duration.minutes(minutes)
    assert.strictEqual(ConsumerTimeout.warning(queueWith(queueMs, type), version, handleWithin) !== undefined, warns)
  })

  it("says both times and what to do", () => {
    assert.strictEqual(
      ConsumerTimeout.warning(queueWith(10 * minute), "3.12.0", Duration.minutes(45)),
      "Handlers may take 45m, but the broker redelivers a message that is not acknowledged within 10m. Set a shorter time limit (handleWithin or timeout_seconds), or raise the broker's consumer timeout."
    )
  })
})
