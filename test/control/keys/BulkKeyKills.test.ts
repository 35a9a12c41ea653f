import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema, Scope } from "effect"
import { eventually } from "../../Eventually.ts"
import * as Deployment from "../../e2e/Deployment.ts"
import type { RunningGateway } from "../../RunningGateway.ts"

const Change = Schema.Struct({
  id: Schema.String,
  state: Schema.String,
  keys: Schema.Struct({ selected: Schema.Int, changed: Schema.Int })
})
const decode = Schema.decodeUnknownEffect(Change)

const ask = (gateway: RunningGateway, method: string, path: string, body?: object) =>
  Effect.flatMap(
    Effect.promise(() => gateway.operate(method, path, body)),
    decode
  )

const count = 400

describe.skipIf(!Deployment.available)("a change of many keys", () => {
  it.live(
    "goes on after kill -9 in another process, and changes each key once",
    () =>
      Effect.gen(function* () {
        const deployment = yield* Deployment.make()
        const firstScope = yield* Scope.make()
        const first = yield* deployment.start({ role: "control" }).pipe(Scope.provide(firstScope))
        yield* deployment.rows(
          Schema.Unknown,
          `INSERT INTO api_keys (name, owner_type, key_prefix, key_hash, policy)
            SELECT 'many', 'individual', 'rk_live_' || lpad(i::text, 8, '0'), sha256(i::text::bytea), '{}'
            FROM generate_series(1, ${count}) AS i`
        )
        const { id } = yield* ask(first, "POST", "/bulk-key-changes", { action: "disable", filter: { q: "many" } })
        yield* eventually(ask(first, "GET", `/bulk-key-changes/${id}`), ({ keys }) => keys.changed > 0, "20 seconds")
        yield* Scope.close(firstScope, Exit.void)
        const second = yield* deployment.start({ role: "control" })
        const left = yield* ask(second, "GET", `/bulk-key-changes/${id}`)
        const ended = yield* eventually(
          ask(second, "GET", `/bulk-key-changes/${id}`),
          ({ state }) => state === "done",
          "60 seconds"
        )
        assert.deepStrictEqual(ended.keys, { selected: count, changed: count })
        assert.isBelow(left.keys.changed, count, "it was killed on its way")
        const [events] = yield* deployment.rows(
          Schema.Struct({ all: Schema.Int, keys: Schema.Int }),
          `SELECT count(*)::int AS "all", count(DISTINCT target_id)::int AS keys FROM audit_events WHERE action = 'keys:disable'`
        )
        assert.deepStrictEqual(events, { all: count, keys: count })
      }),
    180_000
  )
})
