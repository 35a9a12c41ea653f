import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Metric } from "effect"
import { TestClock } from "effect/testing"
import { timed } from "../../../src/messaging/observe/HandlerMetrics.ts"

const measured = Effect.map(Metric.snapshot, (all) =>
  all.flatMap(({ attributes, id, state }) =>
    id === "svc_messaging_handler_duration_seconds" && "sum" in state
      ? [[attributes?.["queue"], attributes?.["outcome"], state.count, state.sum]]
      : []
  )
)

describe("how long handlers take", () => {
  it.effect("is measured in seconds by queue and outcome, and changes nothing of the outcome", () =>
    Effect.gen(function* () {
      const run = Effect.fnUntraced(function* <A, E>(queue: string, handler: Effect.Effect<A, E>) {
        const fiber = yield* Effect.forkChild(timed(queue, Effect.delay(handler, "250 millis")), {
          startImmediately: true
        })
        yield* TestClock.adjust("250 millis")
        return yield* Fiber.join(fiber)
      })
      assert.strictEqual(yield* run("mail", Effect.succeed(1)), 1)
      yield* run("mail", Effect.void)
      assert.strictEqual(yield* Effect.flip(run("mail", Effect.fail("no"))), "no")
      const stopped = yield* Effect.forkChild(timed("scan", Effect.never), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(stopped)
      assert.sameDeepMembers(yield* measured, [
        ["mail", "succeeded", 2, 0.5],
        ["mail", "failed", 1, 0.25],
        ["scan", "interrupted", 1, 1]
      ])
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  it.effect("has a bounded number of series", () =>
    Effect.gen(function* () {
      for (let index = 0; index < 1_200; index++) yield* timed(`series-${index}`, Effect.void)
      const series = yield* measured
      assert.isAtMost(series.length, 1_001)
      assert.isTrue(series.some(([queue]) => queue === "other"))
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )
})
