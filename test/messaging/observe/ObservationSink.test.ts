import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as Observation from "../../../src/messaging/observe/Observation.ts"
import * as ObservationSink from "../../../src/messaging/observe/ObservationSink.ts"
import { eventually } from "../../Eventually.ts"

const started = (stage: string) =>
  Observation.of("WorkflowStageStarted", "1970-01-01T00:00:00Z", {
    consumer_name: "svc-workflow-consumer",
    stage,
    queue_name: "q"
  })

const stageOf = (observation: Observation.Observed) => ("stage" in observation ? observation.stage : "")

describe("ObservationSink", () => {
  it.effect("is told of what is observed, and when", () =>
    Effect.gen(function* () {
      const told: Array<Observation.Observed> = []
      const observe = yield* ObservationSink.makeObserve((observation) => void told.push(observation))
      yield* TestClock.setTime(1500)
      observe((at) => Observation.of("WorkflowStageStarted", at, { consumer_name: "c", stage: "s", queue_name: "q" }))
      assert.deepStrictEqual(told, [
        {
          consumer_name: "c",
          stage: "s",
          queue_name: "q",
          timestamp: "1970-01-01T00:00:01.500000+00:00",
          component: "workflow",
          event_type: "WorkflowStageStarted"
        }
      ])
    })
  )

  it.effect("disturbs nobody by throwing, and costs nothing where there is none", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const observe = yield* ObservationSink.makeObserve((observation) => {
        told.push(stageOf(observation))
        throw new Error("sink")
      })
      observe(() => started("one"))
      const later = observe.deferred(() => started("two"))
      later()
      assert.deepStrictEqual(told, ["one", "two"])
      let asked = 0
      const unobserved = yield* ObservationSink.makeObserve(undefined)
      unobserved(() => started(`${asked++}`))
      unobserved.deferred(() => started(`${asked++}`))()
      assert.strictEqual(asked, 0)
    })
  )

  describe("queued", () => {
    it.effect("writes what waits before the scope closes", () =>
      Effect.gen(function* () {
        const written: Array<string> = []
        const scope = yield* Scope.make()
        const sink = yield* Scope.provide(
          ObservationSink.queued((observation) => Effect.sync(() => written.push(stageOf(observation)))),
          scope
        )
        for (const stage of ["a", "b", "c"]) sink(started(stage))
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(written, ["a", "b", "c"])
        sink(started("late"))
        assert.strictEqual(written.length, 3)
      })
    )

    it.effect("goes on after a failure, and reports how many were lost", () => {
      const logged: Array<unknown> = []
      return Effect.gen(function* () {
        const written: Array<string> = []
        const sink = yield* ObservationSink.queued((observation) =>
          stageOf(observation) === "bad"
            ? Effect.die(new Error("store"))
            : Effect.sync(() => written.push(stageOf(observation)))
        )
        for (const stage of ["bad", "good", "bad"]) sink(started(stage))
        yield* eventually(
          Effect.sync(() => logged),
          (logged) => logged.length > 0
        ).pipe(TestClock.withLive)
        assert.deepStrictEqual(written, ["good"])
        assert.deepStrictEqual(logged, [
          ["2 observations were not stored, because their store failed or was too slow: execution graphs have gaps"]
        ])
      }).pipe(Effect.scoped, Effect.provide(Logger.layer([Logger.make(({ message }) => void logged.push(message))])))
    })

    it.effect("drops what finds no room, and holds up neither the sender nor the end", () =>
      Effect.gen(function* () {
        const stuck = yield* Deferred.make<void>()
        let written = 0
        const scope = yield* Scope.make()
        const sink = yield* Scope.provide(
          ObservationSink.queued(() =>
            Effect.andThen(
              Deferred.await(stuck),
              Effect.sync(() => written++)
            )
          ),
          scope
        )
        for (let n = 0; n < 30_000; n++) sink(started("s"))
        const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        yield* TestClock.adjust("3 seconds")
        yield* Fiber.join(closing)
        assert.strictEqual(written, 0)
      })
    )
  })
})
