import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import { Broker, BrokerError } from "../../../src/services/Broker.ts"
import * as WaitingMessages from "../../../src/status/history/WaitingMessages.ts"

type Inspect = Broker["Service"]["inspect"]

/** A broker that tells of its queues by `inspect`. */
const telling = (inspect: Inspect) =>
  Layer.effect(
    Broker,
    Effect.map(Broker, (broker) => Broker.of({ ...broker, inspect }))
  ).pipe(Layer.provide(BrokerMemory.layer()))

const asking = (queues: ReadonlyArray<string>, inspect: Inspect) =>
  Effect.map(Layer.build(WaitingMessages.layer(queues).pipe(Layer.provide(telling(inspect)))), (context) =>
    WaitingMessages.queues.pipe(Effect.provideContext(context))
  )

const down = new BrokerError({ operation: "inspect", reason: "down", message: "The node of the queue is not there" })

describe("the queues in which messages wait", () => {
  it.effect("are named where another queue cannot be inspected", () =>
    Effect.gen(function* () {
      const queues = yield* asking(["away", "tasks", "none"], (queue) => {
        if (queue === "away") return Effect.fail(down)
        return Effect.succeed(queue === "tasks" ? Option.some({ messages: 2, consumers: 1 }) : Option.none())
      })
      assert.deepStrictEqual(yield* queues, [{ queue: "tasks", ready: 2, consumers: 1 }])
    }).pipe(Effect.scoped)
  )

  it.effect("are named where another queue takes too long", () =>
    Effect.gen(function* () {
      const queues = yield* asking(["slow", "tasks"], (queue) =>
        queue === "slow" ? Effect.never : Effect.succeed(Option.some({ messages: 2, consumers: 1 }))
      )
      const asked = yield* Effect.forkChild(queues, { startImmediately: true })
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* Fiber.join(asked), [{ queue: "tasks", ready: 2, consumers: 1 }])
    }).pipe(Effect.scoped)
  )

  it.effect("are asked for once a second, however many clients poll and hang up", () =>
    Effect.gen(function* () {
      let inspected = 0
      const queues = yield* asking(["tasks"], () =>
        Effect.suspend(() => {
          inspected++
          return Effect.as(Effect.sleep("100 millis"), Option.some({ messages: 1, consumers: 0 }))
        })
      )
      const polls = yield* Effect.forEach(Array.from({ length: 1_000 }), () =>
        Effect.forkChild(queues, { startImmediately: true })
      )
      for (const poll of polls.slice(0, 999)) yield* Fiber.interrupt(poll)
      yield* TestClock.adjust("100 millis")
      const told = [{ queue: "tasks", ready: 1, consumers: 0 }]
      for (const poll of polls.slice(999)) assert.deepStrictEqual(yield* Fiber.join(poll), told)
      assert.deepStrictEqual(yield* queues, told)
      assert.strictEqual(inspected, 1)
    }).pipe(Effect.scoped)
  )
})
