import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { advanceMark } from "../../src/gateway/usage/UsageRollup.ts"
import { Database } from "../../src/services/Database.ts"
import type { Redis } from "../../src/services/Redis.ts"
import * as Proxy from "./Proxy.ts"
import * as Upstream from "./ScriptedUpstream.ts"

const clean = Effect.flatMap(Database, ({ sql }) =>
  Effect.all([
    sql`DELETE FROM policy_layers`,
    sql`TRUNCATE usage_rollups`,
    sql`UPDATE usage_rolled SET until = 'epoch'`
  ])
)

/** A request without a price costs a cent. */
const cent = 0.01
const nanos = 10_000_000

/** The policy of a key, as an operator changes it. */
const setPolicy = (key: Proxy.IssuedKey, policy: object) =>
  Effect.flatMap(
    Database,
    ({ sql }) => sql`UPDATE api_keys SET policy = ${JSON.stringify(policy)}::jsonb WHERE id = ${key.id}`
  )

const setLayer = (kind: string, scope: string, policy: object) =>
  Effect.flatMap(Database, ({ sql }) =>
    Effect.andThen(
      clean,
      sql`INSERT INTO policy_layers (layer_kind, scope_id, policy) VALUES (${kind}, ${scope}, ${JSON.stringify(policy)}::jsonb)`
    )
  )

/** The statuses of so many requests in turn, by another process on the same Redis. */
const ask = Effect.fnUntraced(function* (
  redis: Redis["Service"],
  key: Proxy.IssuedKey,
  times: number,
  model = "small"
) {
  const gateway = yield* Proxy.restarted({ redis })
  return yield* Effect.forEach(Array.from({ length: times }), () =>
    Effect.map(gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model } }), ({ status }) => status)
  )
})

layer(Proxy.database)("ProxyApp, budgets that change", (it) => {
  it.effect("a budget that is lifted and set again counts what was spent meanwhile", () =>
    Effect.gen(function* () {
      const { redis } = yield* Proxy.make()
      const key = yield* Proxy.issueKey({ monthly_budget_usd: 5 * cent })
      assert.deepStrictEqual(yield* ask(redis, key, 2), [200, 200])
      yield* setPolicy(key, {})
      assert.deepStrictEqual(yield* ask(redis, key, 2), [200, 200])
      yield* setPolicy(key, { monthly_budget_usd: 5 * cent })
      assert.deepStrictEqual(yield* ask(redis, key, 3), [200, 402, 402])
    })
  )

  it.effect("a budget that is raised goes on where it stood, without a look at the records", () =>
    Effect.gen(function* () {
      const { redis } = yield* Proxy.make()
      const key = yield* Proxy.issueKey({ daily_budget_usd: 2 * cent })
      assert.deepStrictEqual(yield* ask(redis, key, 3), [200, 200, 402])
      yield* setPolicy(key, { daily_budget_usd: 3 * cent })
      const gateway = yield* Proxy.restarted({ redis })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: {} })
      assert.deepStrictEqual([wire.status, gateway.journal.includes("restoration")], [200, false])
    })
  )

  it.effect("the budget of a model's layer is not taken for the key's own", () =>
    Effect.gen(function* () {
      const { redis } = yield* Proxy.make({ configured: setLayer("model", "large", { monthly_budget_usd: 5 * cent }) })
      const key = yield* Proxy.issueKey()
      assert.deepStrictEqual(yield* ask(redis, key, 1, "large"), [200])
      assert.deepStrictEqual(yield* ask(redis, key, 4), [200, 200, 200, 200])
      yield* setPolicy(key, { monthly_budget_usd: 5 * cent })
      assert.deepStrictEqual(yield* ask(redis, key, 1), [402])
      yield* setPolicy(key, {})
      assert.deepStrictEqual(yield* ask(redis, key, 5, "large"), [200, 200, 200, 200, 402])
    })
  )

  it.effect("a key that leaves its team and comes back brings along what it spent meanwhile", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { redis } = yield* Proxy.make({ configured: setLayer("team", "blue", { daily_budget_usd: 3 * cent }) })
      const key = yield* Proxy.issueKey()
      const join = (team: string | null) => sql`UPDATE api_keys SET team_id = ${team} WHERE id = ${key.id}`
      yield* join("blue")
      assert.deepStrictEqual(yield* ask(redis, key, 1), [200])
      yield* join(null)
      assert.deepStrictEqual(yield* ask(redis, key, 2), [200, 200])
      yield* join("blue")
      assert.deepStrictEqual(yield* ask(redis, key, 1), [402])
    })
  )

  it.effect("a limit that bounds the key alone is in the record, with the policy that sets it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const gateway = yield* Proxy.make({
        configured: Effect.andThen(
          clean,
          sql`INSERT INTO policy_layers (layer_kind, scope_id, policy) VALUES ('team', 'red', '{"rpm_limit":1}'::jsonb)`
        )
      })
      const poor = yield* Proxy.issueKey({ daily_budget_usd: cent, rpm_limit: 100 })
      const slow = yield* Proxy.issueKey({ daily_budget_usd: 100, rpm_limit: 100 })
      yield* sql`UPDATE api_keys SET team_id = 'red' WHERE id = ${slow.id}`
      const ask = (key: Proxy.IssuedKey) =>
        gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model: "small" } })
      const wires = yield* Effect.forEach([poor, poor, slow, slow], ask)
      assert.deepStrictEqual(
        wires.map(({ status }) => status),
        [200, 402, 200, 429]
      )
      const records = yield* gateway.records
      assert.deepStrictEqual(
        records.map(({ denial }) => denial),
        [
          null,
          { check: "daily_budget_usd", layer: "key", amounts: { wanted: nanos, used: nanos, limit: nanos } },
          null,
          { check: "rpm_limit", layer: "team:red", amounts: { wanted: 1, used: 1, limit: 1 } }
        ]
      )
    })
  )

  it.effect("a limit that an exception raised is that of the policy below it, with what did not fit", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const gateway = yield* Proxy.make({ configured: clean })
      const key = yield* Proxy.issueKey({ daily_budget_usd: cent })
      yield* sql`INSERT INTO limit_raises (key_id, limits, until, reason)
        VALUES (${key.id}, ${JSON.stringify({ daily_budget_usd: 2.5 * cent })}::jsonb, '2030-01-01', 'a demo')`
      const ask = gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model: "small" } })
      const statuses = [(yield* ask).status, (yield* ask).status, (yield* ask).status]
      assert.deepStrictEqual(statuses, [200, 200, 402])
      assert.deepStrictEqual((yield* gateway.records)[2]?.denial, {
        check: "daily_budget_usd",
        layer: "key",
        amounts: { wanted: nanos, used: 2 * nanos, limit: 2.5 * nanos }
      })
    })
  )

  it.effect("keys of a team spend a budget that they share together, and the refusal names the team", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const shared = { daily_budget_usd: 3 * cent, rpm_limit: 100 }
      const gateway = yield* Proxy.make({
        configured: Effect.andThen(
          clean,
          sql`INSERT INTO policy_layers (layer_kind, scope_id, shared)
            VALUES ('team', 'blue & green', ${JSON.stringify(shared)}::jsonb)`
        )
      })
      const keys = yield* Effect.all([Proxy.issueKey({ rpm_limit: 200 }), Proxy.issueKey(), Proxy.issueKey()])
      yield* sql`UPDATE api_keys SET team_id = 'blue & green'`
      const stranger = yield* Proxy.issueKey()
      const ask = (key: Proxy.IssuedKey) =>
        gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model: "small" } })
      const wires = yield* Effect.forEach([...keys, ...keys], ask)
      assert.deepStrictEqual(
        wires.map(({ status }) => status),
        [200, 200, 200, 402, 402, 402]
      )
      assert.include(wires[3]?.text, "shared daily_budget_usd of team blue & green ($0.03 a day)")
      assert.strictEqual(wires[0]?.header("x-ratelimit-remaining-requests"), "99")
      assert.deepInclude((yield* gateway.records)[3], {
        error_code: "budget_exceeded",
        denial: {
          check: "shared_daily_budget_usd",
          layer: "team:blue & green",
          amounts: { wanted: nanos, used: 3 * nanos, limit: 3 * nanos }
        }
      })
      assert.strictEqual((yield* ask(stranger)).status, 200)
      // what one of them spent alone is restored as what the team spent
      yield* gateway.redis.command("DEL", gateway.redis.key("budget:daily:team:blue%20%26%20green:20261120"))
      assert.strictEqual((yield* ask(keys[1])).status, 402)
    })
  )

  it.effect.each<[kind: string, scope: (key: Proxy.IssuedKey) => string | null]>([
    ["global", () => null],
    ["project", ({ projectId }) => projectId],
    ["route", () => Proxy.chat],
    ["model", () => "large"]
  ])("a budget that is shared by all under a %s layer is restored from all of their records", ([kind, scope]) =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* Proxy.reset
      yield* clean
      const key = yield* Proxy.issueKey({}, { project: true })
      yield* sql`INSERT INTO policy_layers (layer_kind, scope_id, shared)
        VALUES (${kind}, ${scope(key)}, '{"monthly_budget_usd":0.05,"max_requests_per_day":9}')`
      const spent = (at: number, nanos: number) =>
        sql`INSERT INTO usage_events (id, created_at, request_id, key_id, project_id, route, model, provider, status,
          status_code, latency_ms, usage_source, cost_nanos, cost_source, streamed) VALUES (gen_random_uuid(),
          ${new Date(Proxy.noon - at)}, 'r', gen_random_uuid(), ${key.projectId}, ${Proxy.chat}, 'large', 'upstream',
          'success', 200, 1, 'reported', ${nanos}, 'price_table', false)`
      yield* spent(2 * 86_400_000, 20_000_000)
      yield* advanceMark(Proxy.noon - 60_000)
      yield* spent(1000, 20_000_000)
      const gateway = yield* Proxy.restarted()
      const ask = gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model: "large" } })
      assert.deepStrictEqual([(yield* ask).status, (yield* ask).status], [200, 402])
      const id = kind === "global" ? kind : `${kind}:${encodeURIComponent(scope(key) ?? "")}`
      const requests = yield* gateway.redis.command("GET", gateway.redis.key(`rl:rpd:${id}:20261120`))
      assert.strictEqual(requests, "2")
    })
  )

  it.effect("a counter that is lost alone is restored", () =>
    Effect.gen(function* () {
      const { redis } = yield* Proxy.make()
      const key = yield* Proxy.issueKey({ daily_budget_usd: 2 * cent, monthly_budget_usd: 9 * cent })
      assert.deepStrictEqual(yield* ask(redis, key, 3), [200, 200, 402])
      yield* redis.command("DEL", redis.key(`budget:daily:${key.id}:20261120`))
      assert.deepStrictEqual(yield* ask(redis, key, 1), [402])
    })
  )

  it.effect("a new day begins at nothing, without a look at the records", () =>
    Effect.gen(function* () {
      yield* Proxy.reset
      yield* TestClock.setTime(Date.parse("2026-11-20T23:59:58Z"))
      const { redis } = yield* Proxy.restarted()
      const key = yield* Proxy.issueKey({ daily_budget_usd: 2 * cent })
      assert.deepStrictEqual(yield* ask(redis, key, 3), [200, 200, 402])
      yield* TestClock.adjust("2 seconds")
      const gateway = yield* Proxy.restarted({ redis })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: {} })
      assert.deepStrictEqual([wire.status, gateway.journal.includes("restoration")], [200, false])
    })
  )

  it.effect("what an answer takes beyond its reservation counts in the minute in which it ends", () =>
    Effect.gen(function* () {
      const [asked, answered] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const usage = { prompt_tokens: 10, completion_tokens: 5000, total_tokens: 5010 }
      const gateway = yield* Proxy.make({
        upstream: (sink, request) =>
          Deferred.succeed(asked, undefined).pipe(
            Effect.andThen(Deferred.await(answered)),
            Effect.andThen(Upstream.json({ usage })(sink, request))
          )
      })
      const key = yield* Proxy.issueKey({ tpm_limit: 10_000 })
      const request = { target: Proxy.chat, headers: key.headers, body: { model: "small", max_tokens: 10 } }
      const slow = yield* Effect.forkChild(gateway.ask(request))
      yield* Deferred.await(asked)
      yield* TestClock.adjust("1 minute")
      yield* Deferred.succeed(answered, undefined)
      assert.strictEqual((yield* Fiber.join(slow)).status, 200)
      const counters = yield* Effect.forEach(["202611201200", "202611201201"], (minute) =>
        Effect.map(gateway.redis.command("GET", gateway.redis.key(`rl:tpm:${key.id}:${minute}`)), Number)
      )
      const [reserved = 0, excess = 0] = counters
      assert.strictEqual(reserved + excess, 5010)
      assert.isAbove(excess, 4900)
    })
  )
})
