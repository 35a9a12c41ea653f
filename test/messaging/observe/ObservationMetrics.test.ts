import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"
import * as Timestamp from "../../../src/messaging/envelope/Timestamp.ts"
import * as Observation from "../../../src/messaging/observe/Observation.ts"
import { countingSink } from "../../../src/messaging/observe/ObservationMetrics.ts"

const at = Timestamp.ofMillis(0)
const scheduled = (queue: string) =>
  Observation.of("ConsumerRetryScheduled", at, {
    consumer_name: "worker",
    task_id: "t",
    queue_name: `${queue}.retry`,
    source_queue_name: queue,
    retry_attempt: 1,
    max_retries: 3,
    reason: "handler_error",
    correlation_id: null,
    task_type: null
  })

const linesOf = (queue: string) =>
  Effect.map(PrometheusMetrics.format(), (text) =>
    text.split("\n").filter((line) => line.startsWith("svc_messaging_observations_total") && line.includes(queue))
  )

describe("what consumers observe, counted", () => {
  it.effect("is under the queue that the message failed in, and told on", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const sink = yield* countingSink(({ event_type }) => told.push(event_type))
      sink(scheduled("mail"))
      sink(scheduled("mail"))
      sink(Observation.of("SSEKeepaliveSent", at, { task_id: "t" }))
      assert.deepStrictEqual(told, ["ConsumerRetryScheduled", "ConsumerRetryScheduled", "SSEKeepaliveSent"])
      assert.deepStrictEqual(
        (yield* linesOf(`"mail"`)).map((line) => [line.includes("ConsumerRetryScheduled"), line.endsWith(" 2")]),
        [[true, true]]
      )
    })
  )

  it.effect("has a bounded number of series", () =>
    Effect.gen(function* () {
      const sink = yield* countingSink()
      for (let index = 0; index < 1_200; index++) sink(scheduled(`series-${index}`))
      assert.isAtMost((yield* linesOf("series-")).length, 1_000)
    })
  )
})
