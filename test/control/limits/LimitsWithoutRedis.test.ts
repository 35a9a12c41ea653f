import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import { Redis, RedisError } from "../../../src/services/Redis.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import * as Listener from "../Listener.ts"
import { admin, call, ok, refusalOf } from "../Listener.ts"
import * as Metered from "./Metered.ts"

const gone = new RedisError({ operation: "script", retryable: true, cause: new Error("gone") })

const unreachable = Layer.effect(
  Redis,
  Effect.map(Redis, (redis) => Redis.of({ ...redis, run: () => Effect.fail(gone) }))
).pipe(Layer.provide(RedisMemory.layer({ prefix: "test:" })))

layer(Listener.layer(EmbeddedDatabase.layer, { redis: unreachable }), { excludeTestServices: true })(
  "While Redis is gone",
  (it) => {
    it.effect("limits are refused with a sentence, and the rest of the API works", () =>
      Effect.gen(function* () {
        const key = yield* Metered.newKey({ policy: { daily_budget_usd: 1 } })
        for (const path of [`limits/state?scope=key&id=${key.id}`, "keys?near_limit=true"]) {
          const answer = yield* call("GET", `${admin}/${path}`)
          assert.deepInclude(refusalOf(answer), { status: 503, code: "store_unavailable" })
          assert.include(answer.text, "Redis")
        }
        const reset = yield* call("POST", `${admin}/limits/reset`, {
          body: { scope: "key", scope_id: key.id, meter: "daily_budget_usd", reason: "a demo" }
        })
        assert.deepInclude(refusalOf(reset), { status: 503, code: "store_unavailable" })
        assert.notInclude((yield* call("GET", `${admin}/audit-events?target_id=${key.id}`)).text, "limits:reset")
        yield* ok("GET", `${admin}/keys`)
        yield* ok("POST", `${admin}/limits/${key.id}/raise`, {
          body: { daily_budget_usd: 2, until: new Date(Date.now() + 60_000).toISOString(), reason: "a demo" }
        })
      })
    )
  }
)
