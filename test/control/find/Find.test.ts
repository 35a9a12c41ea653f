import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { Scope } from "../../../src/control/api/schema/Security.ts"
import * as StoredSources from "../../../src/control/find/StoredSources.ts"
import * as LateIndexes from "../../../src/gateway/LateIndexes.ts"
import { Database } from "../../../src/services/Database.ts"
import * as Secret from "../../../src/state/Secret.ts"
import { sequentialScans } from "../../SequentialScans.ts"
import { admin, at, call, idOf, ok, refusalOf, suite } from "../Listener.ts"

const find = (q: string, ...scopes: ReadonlyArray<Scope>) =>
  Effect.gen(function* () {
    const path = `/admin-ui/find?q=${encodeURIComponent(q)}`
    if (scopes.length === 0) return yield* ok("GET", path)
    const { sql } = yield* Database
    const value = Secret.mint(Secret.operatorTokenPrefix)
    yield* sql`INSERT INTO operator_tokens (token_prefix, token_hash, scopes)
      VALUES (${Secret.displayPrefix(value)}, ${Secret.digest(value)}, ${scopes})`
    return yield* ok("GET", path, { authorization: `Bearer ${Redacted.value(value)}` })
  })

const kinds = (...request: Parameters<typeof find>) =>
  Effect.map(find(...request), (json) => {
    const found = at(json, "found")
    return Array.isArray(found) ? found.map((one) => [at(one, "kind"), at(one, "id")]) : []
  })

const searchedAs = (...request: Parameters<typeof find>) =>
  Effect.map(find(...request), (json) => {
    const searched = at(json, "searched")
    return Array.isArray(searched) ? searched.map((one) => `${at(one, "kind")}: ${at(one, "state")}`) : []
  })

/** Makes a key in a project, and two requests of a session with it. */
const seed = Effect.gen(function* () {
  const { sql } = yield* Database
  const project = idOf(yield* ok("POST", `${admin}/projects`, { body: { name: `P ${Math.random()}` } }))
  const made = yield* ok("POST", `${admin}/keys`, { body: { project_id: project } })
  const key = idOf(made, "key")
  const prefix = String(at(made, "key", "key_prefix"))
  const event = (request: string) => sql`
    INSERT INTO usage_events (id, created_at, request_id, key_id, project_id, route, provider, status, status_code, latency_ms, usage_source,
      session_id, cost_source, streamed)
    VALUES (gen_random_uuid(), now(), ${request}, ${key}, ${project}, 'chat_completions', 'upstream', 'success', 200, 5, 'reported', ${`s-${key}`},
      'none', false)`
  yield* event(`r-${key}`)
  yield* event(`r2-${key}`)
  return { key, prefix, project }
})

suite("Find", (it) => {
  it.effect("resolves ids of every kind, and prefixes of keys", () =>
    Effect.gen(function* () {
      const { key, prefix, project } = yield* seed
      assert.deepStrictEqual(yield* kinds(`r-${key}`), [["request", `r-${key}`]])
      assert.deepStrictEqual(yield* kinds(`s-${key}`), [["session", `s-${key}`]])
      assert.deepStrictEqual(yield* kinds(key), [["key", key]])
      assert.deepStrictEqual(yield* kinds(prefix), [["key", key]])
      assert.deepStrictEqual(yield* kinds(` ${project} `), [["project", project]])
      assert.deepStrictEqual(yield* kinds("1"), [["audit_event", "1"]])
      assert.deepStrictEqual(yield* kinds("nothing"), [])
    })
  )

  it.effect("leads to a path that shows what was found", () =>
    Effect.gen(function* () {
      const { key, project } = yield* seed
      for (const id of [`r-${key}`, `s-${key}`, key, project, "1"]) {
        const path = at(yield* find(id), "found", 0, "path")
        assert.strictEqual((yield* call("GET", String(path))).status, 200, String(path))
      }
      const events = yield* ok("GET", String(at(yield* find("1"), "found", 0, "path")))
      assert.strictEqual(at(events, 0, "sequence"), 1)
      assert.strictEqual(at(events, 1), undefined)
    })
  )

  it.effect("finds nothing that the token may not read, and says so", () =>
    Effect.gen(function* () {
      const { key, project } = yield* seed
      assert.deepStrictEqual(yield* kinds(key, "usage:read"), [])
      assert.deepStrictEqual(yield* kinds(project, "audit:read"), [])
      assert.deepStrictEqual(yield* kinds("1", "operators:manage"), [])
      assert.deepStrictEqual(yield* kinds(`r-${key}`, "tasks:read"), [])
      assert.deepStrictEqual(yield* kinds(`r-${key}`, "usage:read"), [["request", `r-${key}`]])
      assert.deepStrictEqual(yield* searchedAs(key, "usage:read"), [
        "request: searched",
        "session: searched",
        "key: not_allowed",
        "project: not_allowed",
        "audit_event: not_allowed",
        "task: not_here",
        "dead_letter: not_here",
        "replay: not_here",
        "cancellation: not_here"
      ])
    })
  )

  it.effect("says how long a store remembers", () =>
    Effect.gen(function* () {
      yield* seed
      const { sql } = yield* Database
      yield* sql`UPDATE usage_events SET created_at = '2026-01-02T03:04:05Z' WHERE id = (SELECT id FROM usage_events LIMIT 1)`
      assert.strictEqual(at(yield* find("x"), "searched", 0, "since"), "2026-01-02T03:04:05.000Z")
    })
  )

  it.effect("refuses a whole secret, an empty id, a long one and one that no store can have", () =>
    Effect.gen(function* () {
      const asked = (q: string) => Effect.map(call("GET", `/admin-ui/find?q=${q}`), refusalOf)
      const refused = { status: 422, code: "invalid_request", param: "q" }
      assert.deepStrictEqual(yield* asked(Redacted.value(Secret.mint(Secret.keyPrefix))), refused)
      assert.deepStrictEqual(yield* asked(""), refused)
      assert.deepStrictEqual(yield* asked("x".repeat(257)), refused)
      assert.deepStrictEqual(yield* asked("%00"), refused)
      assert.deepStrictEqual(yield* kinds("9".repeat(200)), [])
    })
  )

  it.effect("reads no large table as a whole", () =>
    Effect.gen(function* () {
      const { key, prefix } = yield* seed
      const { sql } = yield* Database
      yield* sql`
        INSERT INTO usage_events (id, request_id, key_id, route, provider, status, status_code, latency_ms, usage_source, session_id, cost_source,
          streamed, created_at)
        SELECT gen_random_uuid(), 'many ' || i, ${key}, 'chat_completions', 'upstream', 'success', 200, 5, 'reported', 'many ' || i % 100, 'none', false,
          now() - i * interval '1 second' FROM generate_series(1, 5000) AS i`
      yield* sql`
        INSERT INTO api_keys (owner_type, key_prefix, key_hash, policy)
        SELECT 'individual', 'rk_live_' || left(md5(i::text), 8), sha256(i::text::bytea), '{}' FROM generate_series(1, 5000) AS i`
      yield* LateIndexes.build
      yield* sql`ANALYZE`
      const sources = StoredSources.make(sql)
      for (const id of ["many 7", prefix, key, "1"]) {
        const reads = sources.flatMap(
          (source): ReadonlyArray<Effect.Effect<unknown, unknown>> => [source.find(id), source.since]
        )
        assert.deepStrictEqual((yield* sequentialScans(Effect.all(reads))).scanned, [], id)
      }
    })
  )
})
