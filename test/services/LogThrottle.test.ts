import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as LogThrottle from "../../src/services/LogThrottle.ts"

describe("Seldom", () => {
  it.effect("logs each cause once a second, and says how many lines were left out", () =>
    Effect.gen(function* () {
      const seldom = yield* LogThrottle.make
      const lines: Array<string> = []
      const log = (cause: string) =>
        seldom(cause, ({ left_out }) => Effect.sync(() => void lines.push(`${cause} ${left_out ?? 0}`)))
      for (let i = 0; i < 5; i++) yield* log("Redis")
      yield* log("database")
      yield* TestClock.adjust("1 second")
      yield* log("Redis")
      yield* log("database")
      assert.deepStrictEqual(lines, ["Redis 0", "database 0", "Redis 4", "database 0"])
    })
  )

  it.effect("keeps few causes, whatever they are called", () =>
    Effect.gen(function* () {
      const seldom = yield* LogThrottle.make
      let lines = 0
      const log = (cause: string) => seldom(cause, () => Effect.sync(() => void lines++))
      yield* log("first")
      for (let i = 0; i < 100; i++) yield* log(`cause ${i}`)
      // forgotten, so logged at once
      yield* log("first")
      assert.strictEqual(lines, 102)
    })
  )
})
