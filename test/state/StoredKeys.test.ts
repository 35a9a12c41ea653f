import { createHash, randomUUID } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { neutral } from "../../src/policy/KeyPolicy.ts"
import { exceededUnusedDays, refusalOf } from "../../src/policy/KeyState.ts"
import { limited } from "../../src/policy/Limit.ts"
import { Database } from "../../src/services/Database.ts"
import * as StoredKeys from "../../src/state/StoredKeys.ts"
import { disableUnused } from "../../src/state/UnusedKeys.ts"
import * as MigratedDatabase from "../MigratedDatabase.ts"

const now = Date.UTC(2026, 4, 5, 12)
const dayMs = 86_400_000

/** Around now, and around a week ago. */
const times = fc.oneof(
  { weight: 1, arbitrary: fc.integer({ min: -2, max: 2 }).map((ms) => now + ms) },
  { weight: 2, arbitrary: fc.integer({ min: -2, max: 2 }).map((ms) => now - 7 * dayMs + ms) }
)
/** As often as not, so that not every key has some reason to be refused. */
const maybe = fc.option(times, { freq: 2 })

const states = fc.record({
  disabled: maybe.map((since) => since !== null),
  revokedAt: maybe,
  expiresAt: maybe,
  createdAt: times,
  lastUsedAt: maybe,
  enabledAt: maybe,
  /** The secret was rotated away, with a grace until then. */
  secretEndsAt: maybe,
  readable: maybe.map((since) => since === null)
})
type State = typeof states extends fc.Arbitrary<infer A> ? A : never

const weekly = { ...neutral, unused_key_auto_disable_after_days: limited(7) }

const Row = Schema.Struct({ ...StoredKeys.fields, ...StoredKeys.secretField })
const decode = Schema.decodeUnknownSync(Row)
const digestOf = (secret: string) => createHash("sha256").update(secret).digest()
const date = (ms: number | null) => (ms === null ? null : new Date(ms))

const stored = Effect.fnUntraced(function* (state: State) {
  const { sql } = yield* Database
  const [id, digest] = [randomUUID(), digestOf(randomUUID())]
  const rotated = state.secretEndsAt !== null
  const policy = state.readable ? { unused_key_auto_disable_after_days: 7 } : { max_things: 3 }
  yield* sql`INSERT INTO api_keys (id, owner_type, key_prefix, key_hash, previous_key_hash, previous_key_expires_at, disabled,
    revoked_at, expires_at, created_at, last_used_at, enabled_at, policy)
    VALUES (${id}, 'individual', 'rk_live_', ${rotated ? digestOf(id) : digest}, ${rotated ? digest : null},
    ${date(state.secretEndsAt)}, ${state.disabled}, ${date(state.revokedAt)}, ${date(state.expiresAt)}, ${date(state.createdAt)},
    ${date(state.lastUsedAt)}, ${date(state.enabledAt)}, ${JSON.stringify(policy)}::jsonb)`
  return { id, digest: digest.toString("hex") }
})

/** The key that the secret leads to. */
const presented = Effect.fnUntraced(function* (digest: string) {
  const { sql } = yield* Database
  const [found] =
    yield* sql`SELECT ${sql.literal(`${StoredKeys.columns}, ${StoredKeys.secretEndsAtSql}`)} FROM api_keys k
    JOIN (SELECT ${digest}::text) AS asked (digest) ON ${sql.literal(StoredKeys.matchesSecretSql)}`
  const row = decode(found)
  return { ...StoredKeys.keyOf(row), secretEndsAt: Option.fromNullOr(row.secret_ends_at) }
})

layer(MigratedDatabase.embedded)("a stored key", (it) => {
  it.effect("is read in the state that its row has, and is retired where that state says so", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(now)
      const promise = Effect.runPromiseWith(yield* Effect.context<Database>())
      const seen = new Set<string | undefined>()
      let retired = 0
      const law = fc.asyncProperty(states, (state) =>
        promise(
          Effect.gen(function* () {
            const { digest, id } = yield* stored(state)
            const key = yield* presented(digest)
            const usedAt = Math.max(state.lastUsedAt ?? state.createdAt, state.enabledAt ?? 0)
            assert.deepInclude(key, {
              id,
              disabled: state.disabled,
              revoked: state.revokedAt !== null,
              readable: state.readable,
              expiresAt: Option.fromNullOr(state.expiresAt),
              secretEndsAt: Option.fromNullOr(state.secretEndsAt),
              lastUsedAt: usedAt
            })
            seen.add(refusalOf(key, now)?.code)
            const lapsed = !key.revoked && !key.disabled && exceededUnusedDays(key, weekly, now) !== undefined
            yield* disableUnused(id, 7, "test")
            assert.strictEqual((yield* presented(digest)).disabled, state.disabled || lapsed)
            if (lapsed) retired++
          })
        )
      )
      yield* Effect.promise(() => fc.assert(law, { numRuns: 300 }))
      assert.isAbove(retired, 0)
      assert.sameMembers(
        [...seen],
        [
          ...["invalid_virtual_key", "revoked_virtual_key", "disabled_virtual_key", "expired_virtual_key"],
          ...["control_state_unavailable", undefined]
        ]
      )
    })
  )

  it.effect("of a rotated secret without an end is nobody's", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const hash = digestOf("rotated")
      yield* sql`INSERT INTO api_keys (owner_type, key_prefix, key_hash, previous_key_hash, policy)
        VALUES ('individual', 'rk_live_', ${digestOf("current")}, ${hash}, '{}')`
      const found = yield* sql`SELECT 1 FROM api_keys k JOIN (SELECT ${hash.toString("hex")}::text) AS asked (digest)
        ON ${sql.literal(StoredKeys.matchesSecretSql)}`
      assert.deepStrictEqual(found, [])
    })
  )
})
