import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import * as ControlStore from "../../../src/messaging/control/ControlStore.ts"
import { Redis } from "../../../src/services/Redis.ts"

describe("requests to cancel", () => {
  it.effect("are read in their order, each once, and again from the beginning after Redis has lost its data", () =>
    Effect.gen(function* () {
      const store = yield* ControlStore.ControlStore
      const redis = yield* Redis
      const request = (taskId: string) => store.requestCancel({ taskId, reason: "not needed", by: null })
      yield* request("a")
      yield* request("b")
      const first = yield* store.cancelsAfter(0)
      assert.deepStrictEqual(first, { taskIds: ["a", "b"], sequence: 2 })
      assert.deepStrictEqual(yield* store.cancelsAfter(2), { taskIds: [], sequence: 2 })
      for (const name of ["cancels", "cancel-order", "cancel-expiry", "cancel-sequence"])
        yield* redis.command("DEL", redis.key(`svc:{work}:${name}`))
      yield* request("c")
      const lost = yield* store.cancelsAfter(2)
      assert.deepStrictEqual(yield* store.cancelsAfter(lost.sequence), { taskIds: ["c"], sequence: 1 })
    }).pipe(Effect.provide(ControlStore.layer().pipe(Layer.provideMerge(RedisMemory.layer()))))
  )
})
