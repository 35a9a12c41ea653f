import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { Database } from "../../src/services/Database.ts"
import * as Changes from "../../src/state/Changes.ts"
import { digest, mint } from "../../src/state/Secret.ts"
import { eventually } from "../Eventually.ts"
import * as RealTime from "../RealTime.ts"
import * as Proxy from "./Proxy.ts"

layer(Proxy.database)("A key that is rotated", (it) => {
  it.effect("opens with either secret until the grace ends, and then with the new one alone", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      const visit = visitor(gateway)
      assert.strictEqual(yield* visit(key.raw), 200)
      const next = yield* rotated(key.id, new Date(Proxy.noon + 60_000))
      yield* soon(visit(next), 200)
      assert.strictEqual(yield* visit(key.raw), 200)
      yield* TestClock.adjust("59 seconds")
      assert.deepStrictEqual([yield* visit(key.raw), yield* visit(next)], [200, 200])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([yield* visit(key.raw), yield* visit(next)], ["invalid_virtual_key", 200])
      // a process that starts now agrees
      const restarted = yield* Proxy.restarted()
      const other = visitor(restarted)
      assert.deepStrictEqual([yield* other(key.raw), yield* other(next)], ["invalid_virtual_key", 200])
      for (const process of [gateway, restarted]) {
        const refused = yield* knock(process, key.raw)
        assert.deepInclude(JSON.parse(refused.text).error, {
          message:
            "The gateway key was rotated, and this secret expired at 2026-11-20T12:01:00.000Z. Use the new secret."
        })
        assert.strictEqual(refused.status, 401)
      }
      assert.deepStrictEqual(
        new Set((yield* gateway.records).map(({ key_id }) => key_id)),
        new Set([key.id]),
        "both count for the one key"
      )
    })
  )

  it.effect("a second rotation ends the first grace, and a revocation ends everything", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      const visit = visitor(gateway)
      const grace = new Date(Proxy.noon + 60_000)
      const second = yield* rotated(key.id, grace)
      yield* soon(visit(second), 200)
      const third = yield* rotated(key.id, grace)
      yield* soon(visit(key.raw), "invalid_virtual_key")
      assert.deepStrictEqual([yield* visit(second), yield* visit(third)], [200, 200])
      yield* sql`UPDATE api_keys SET revoked_at = now() WHERE id = ${key.id}`
      yield* Changes.publish({ _tag: "Key", id: key.id })
      yield* soon(visit(third), "revoked_virtual_key")
      assert.deepStrictEqual(
        [yield* visit(second), yield* visit(key.raw)],
        ["revoked_virtual_key", "invalid_virtual_key"]
      )
    })
  )

  it.effect("without a grace, the secret before is refused as soon as the notice is there", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      const visit = visitor(gateway)
      assert.strictEqual(yield* visit(key.raw), 200)
      const next = yield* rotated(key.id, null)
      yield* soon(visit(key.raw), "invalid_virtual_key")
      // a wrong key is remembered for a second
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* visit(next), 200)
    })
  )
})

/** As control does it. */
const rotated = Effect.fnUntraced(function* (id: string, grace: Date | null) {
  const { sql, transaction } = yield* Database
  const secret = mint("rk_live_")
  yield* transaction(
    Effect.andThen(
      sql`UPDATE api_keys SET key_hash = ${digest(secret)}, previous_key_expires_at = ${grace},
        previous_key_hash = CASE WHEN ${grace}::timestamptz IS NOT NULL THEN key_hash END WHERE id = ${id}`,
      Changes.publish({ _tag: "Key", id })
    )
  )
  return Redacted.value(secret)
})

type Gateway = Effect.Success<ReturnType<typeof Proxy.make>>

const knock = (gateway: Gateway, raw: string) =>
  gateway.ask({ method: "GET", target: "/v1/models", headers: ["authorization", `Bearer ${raw}`] })

/** The status of an answer, or the code of a refusal. */
const visitor =
  (gateway: Gateway) =>
  (raw: string): Effect.Effect<number | string> =>
    Effect.map(knock(gateway, raw), ({ status, text }) => (status === 200 ? 200 : JSON.parse(text).error.code))

const soon = (visit: Effect.Effect<number | string>, expected: number | string) =>
  RealTime.effect(eventually(visit, (answer) => answer === expected))
